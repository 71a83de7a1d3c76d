//! Skills where there is no gating map: each upstream becomes one, a large one several, by its tools' natural prefixes.

use std::collections::BTreeMap;

use super::{
    registry::{Registered, Registry},
    snapshot::{CatalogSkill, Origin, UpstreamFacts},
};
use crate::{
    gate::map::{NamePattern, Pattern},
    model::{
        diagnostic::Diagnostic,
        limits::AUTO_SKILL_TOOLS,
        name::{SkillName, UpstreamName},
        tool::first_sentence,
        trust::{Trust, TrustRules},
    },
};

/// Tools that share a prefix make a skill of their own from this many.
const GROUP_TOOLS: usize = 3;
/// First words that say what is done, not what it is done to.
const VERBS: &[&str] = &[
    "add", "call", "cancel", "check", "create", "delete", "describe", "do", "edit", "execute", "fetch", "find", "get",
    "insert", "list", "move", "open", "patch", "post", "put", "query", "read", "remove", "rename", "run", "search",
    "send", "set", "show", "start", "stop", "update", "upload", "write",
];

/// Makes the skills of one upstream; `facts` are what it said of itself.
pub(super) fn skills_of(upstream: &UpstreamName, facts: &UpstreamFacts, registry: &Registry) -> Vec<CatalogSkill> {
    let own: Vec<&Registered> = registry.tools().iter().filter(|tool| tool.upstream == *upstream).collect();
    if own.len() <= AUTO_SKILL_TOOLS {
        let patterns = vec![Pattern::all_of(upstream)];
        return vec![skill(upstream, upstream.as_str().to_owned(), facts, &own, patterns)];
    }
    let mut groups: BTreeMap<String, Vec<&Registered>> = BTreeMap::new();
    for tool in &own {
        groups.entry(subject(tool.tool.name.as_str())).or_default().push(tool);
    }
    let mut skills = Vec::new();
    let mut rest = Vec::new();
    for (subject, tools) in groups {
        if subject.is_empty() || tools.len() < GROUP_TOOLS || tools.len() == own.len() {
            rest.extend(tools);
        } else {
            let patterns = patterns_for(upstream, &subject, &tools, &own);
            skills.push(skill(upstream, format!("{upstream}-{subject}"), facts, &tools, patterns));
        }
    }
    if !rest.is_empty() {
        rest.sort_by(|a, b| a.exposed.cmp(&b.exposed));
        let patterns = if skills.is_empty() { vec![Pattern::all_of(upstream)] } else { exact(upstream, &rest) };
        skills.push(skill(upstream, upstream.as_str().to_owned(), facts, &rest, patterns));
    }
    skills
}

/// Adds skills that were made of upstreams to those of folders. None takes another's tools away: a folder's skill of the
/// same name is the playbook of what it would have opened; among upstreams, one's own name goes before the name of a part
/// of another, which gets a number.
pub(super) fn add(
    skills: &mut BTreeMap<SkillName, CatalogSkill>,
    made: Vec<CatalogSkill>,
    findings: &mut Vec<Diagnostic>,
) {
    let is_whole =
        |skill: &CatalogSkill| matches!(&skill.origin, Origin::Upstream(name) if name.as_str() == skill.name.as_str());
    let (whole, parts): (Vec<_>, Vec<_>) = made.into_iter().partition(is_whole);
    for mut skill in whole.into_iter().chain(parts) {
        match skills.get_mut(&skill.name) {
            None => {}
            Some(own) if own.origin == Origin::Folder && !own.rule.opens => {
                let message =
                    format!("skill `{}` is left out: an upstream is called so, and it is {}", skill.name, own.trust);
                findings.push(Diagnostic::warning("skill-of-upstream", message).hint("rename it, or approve it"));
            }
            Some(own) if own.origin == Origin::Folder => {
                let message = format!("skill `{}` of a folder is the playbook of the upstream's tools", skill.name);
                findings.push(Diagnostic::note("skill-of-upstream", message));
                own.patterns.extend(skill.patterns);
                continue;
            }
            Some(_) => {
                let numbered = (2..).map(|number| SkillName::new(format!("{}-{number}", skill.name)));
                let name = numbered.into_iter().find(|name| !skills.contains_key(name)).unwrap_or(skill.name.clone());
                let message = format!("two skills are called `{}`; one is `{name}` now", skill.name);
                findings.push(Diagnostic::warning("skill-renamed", message).hint("a gating map gives skills names"));
                skill.name = name;
            }
        }
        skills.insert(skill.name.clone(), skill);
    }
}

/// A prefix where the group's tools and no others have one, so that a new tool joins by its name; else their names.
fn patterns_for(upstream: &UpstreamName, subject: &str, tools: &[&Registered], own: &[&Registered]) -> Vec<Pattern> {
    // The last one is for `orderCancel`.
    for separator in ["_", "-", ""] {
        let prefix = format!("{subject}{separator}");
        let rest = |tool: &&Registered| tool.exposed.as_str().strip_prefix(&prefix).map(str::to_owned);
        let matching = own.iter().filter(|tool| rest(tool).is_some()).count();
        let is_whole = |rest: String| !separator.is_empty() || rest.starts_with(char::is_uppercase);
        let is_common = tools.iter().all(|tool| rest(tool).is_some_and(is_whole));
        if is_common && matching == tools.len() {
            return vec![Pattern { upstream: Some(upstream.clone()), name: NamePattern::Prefix(prefix) }];
        }
    }
    exact(upstream, tools)
}

fn exact(upstream: &UpstreamName, tools: &[&Registered]) -> Vec<Pattern> {
    let pattern = |tool: &&Registered| Pattern {
        upstream: Some(upstream.clone()),
        name: NamePattern::Exact(tool.exposed.as_str().to_owned()),
    };
    tools.iter().map(pattern).collect()
}

/// Whether a word says what is done.
pub(super) fn is_verb(word: &str) -> bool {
    VERBS.contains(&word)
}

/// What a tool is about, by its name: the first word, or the second where the first is a verb. Lower case; empty where
/// the name has no second word.
pub(super) fn subject(name: &str) -> String {
    let words = words(name);
    let subject = match words.first() {
        Some(first) if words.len() > 1 && is_verb(first) => words.get(1),
        Some(first) if words.len() > 1 => Some(first),
        _ => None,
    };
    let is_second = subject != words.first();
    // `get_order` and `list_orders` are about the same.
    let plural =
        |word: &String| if is_second && word.len() > 3 { word.trim_end_matches('s').to_owned() } else { word.clone() };
    subject.map(plural).unwrap_or_default()
}

/// The words of `snake_case`, `kebab-case`, `dotted.names` and `camelCase`, in lower case.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let is_break = !c.is_alphanumeric() || (c.is_uppercase() && was_lower);
        if is_break && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

fn skill(
    upstream: &UpstreamName,
    name: String,
    facts: &UpstreamFacts,
    tools: &[&Registered],
    patterns: Vec<Pattern>,
) -> CatalogSkill {
    CatalogSkill {
        name: SkillName::new(name),
        description: description(upstream, facts),
        body: body(upstream, facts, tools),
        patterns,
        origin: Origin::Upstream(upstream.clone()),
        // The user has put the upstream where it is; what it says is its author's.
        trust: Trust::User,
        rule: TrustRules::default().user,
        on_disk: None,
        is_hidden: false,
        tags: Vec::new(),
        tools: Vec::new(),
    }
}

fn description(upstream: &UpstreamName, facts: &UpstreamFacts) -> String {
    let title = facts.title.as_deref().unwrap_or(upstream.as_str());
    let mut text = facts.instructions.as_deref().map(|text| first_sentence(text, 200)).unwrap_or_default();
    if text.is_empty() {
        text = format!("Tools of {title}.");
    }
    text
}

fn body(upstream: &UpstreamName, facts: &UpstreamFacts, tools: &[&Registered]) -> String {
    let mut text = match facts.instructions.as_deref() {
        Some(instructions) => format!("What `{upstream}` says of itself:\n\n{}\n", instructions.trim()),
        None => format!("`{upstream}` gives no instructions of its own; go by its tools' descriptions.\n"),
    };
    if tools.is_empty() {
        text.push_str("\nIt has not listed any tools yet.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A skill with one pattern, `*` of this upstream.
    fn made(name: &str, origin: Origin) -> CatalogSkill {
        let patterns = match &origin {
            Origin::Folder => Vec::new(),
            Origin::Upstream(upstream) => vec![Pattern::all_of(upstream)],
        };
        CatalogSkill {
            name: SkillName::new(name),
            description: String::new(),
            body: String::new(),
            patterns,
            origin,
            trust: Trust::User,
            rule: TrustRules::default().user,
            on_disk: None,
            is_hidden: false,
            tags: Vec::new(),
            tools: Vec::new(),
        }
    }

    #[test]
    fn no_skill_takes_the_tools_of_another_of_its_name() {
        let of = |name: &str, upstream: &str| made(name, Origin::Upstream(UpstreamName::new(upstream)));
        let mut skills = BTreeMap::new();
        skills.insert(SkillName::new("files"), made("files", Origin::Folder));
        let mut findings = Vec::new();
        let parts = vec![of("shop-orders", "shop"), of("shop", "shop"), of("files", "files")];
        let all = parts.into_iter().chain([of("shop-orders", "shop-orders")]).collect();
        add(&mut skills, all, &mut findings);
        let seen: Vec<String> = skills
            .values()
            .map(|skill| {
                let patterns: Vec<String> = skill.patterns.iter().map(Pattern::to_string).collect();
                let whose = if skill.origin == Origin::Folder { "folder" } else { "made" };
                format!("{} {whose} {}", skill.name, patterns.join(","))
            })
            .collect();
        assert_eq!(
            seen,
            ["files folder files:*", "shop made shop:*", "shop-orders made shop-orders:*", "shop-orders-2 made shop:*",]
        );
        let codes: Vec<&str> = findings.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, ["skill-of-upstream", "skill-renamed"]);
    }

    #[test]
    fn a_tools_subject_is_its_first_word_that_is_no_verb() {
        for (name, expected) in [
            ("orders_list", "orders"),
            ("list_orders", "order"),
            ("getOrder", "order"),
            ("repo.create", "repo"),
            ("create-repository-file", "repository"),
            ("echo", ""),
            ("get", ""),
            ("HTTPGET", ""),
        ] {
            assert_eq!(subject(name), expected, "{name}");
        }
    }
}
