//! One moment's truth, immutable: config, tools, skills and what opens what. A request takes one and carries it.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    auto,
    finding::Indexes,
    pin::{Doubt, Unaccepted},
    registry::{Registered, Registry, UpstreamTools},
};
use crate::{
    config::Config,
    gate::{
        map::{GatingMap, Pattern},
        policy::{Kind, Policy, Rule, Standing},
    },
    model::{
        diagnostic::Diagnostic,
        name::{SkillName, UpstreamName},
        principal::Principal,
        trust::{LoadRule, Trust, TrustRule},
    },
    scan::Scanner,
    skill::{Skill, SkillSet},
};

/// What an upstream said of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpstreamFacts {
    /// Its title or name.
    pub title: Option<String>,
    /// Its instructions for models.
    pub instructions: Option<String>,
}

/// What a snapshot is made of.
#[derive(Debug)]
pub struct Inputs {
    /// One more than the snapshot before.
    pub generation: u64,
    /// Checked.
    pub config: Arc<Config>,
    /// Absent where the config names none.
    pub map: Option<Arc<GatingMap>>,
    /// From the config's folders.
    pub skills: Arc<SkillSet>,
    /// How far each of them is trusted; untrusted where nothing is said.
    pub trust: Arc<BTreeMap<SkillName, Trust>>,
    /// In the config's order.
    pub upstreams: Vec<(UpstreamTools, UpstreamFacts)>,
    /// What of that is not as it was accepted.
    pub unaccepted: Unaccepted,
    /// What texts are looked through for.
    pub scanner: Arc<Scanner>,
    /// Why skills are withheld that are, by name.
    pub withheld: Arc<BTreeMap<SkillName, String>>,
}

/// Where a skill comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A folder of the config.
    Folder,
    /// Made of an upstream.
    Upstream(UpstreamName),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder => f.write_str("folder"),
            Self::Upstream(upstream) => write!(f, "upstream:{upstream}"),
        }
    }
}

/// A skill with what it opens.
#[derive(Debug)]
pub struct CatalogSkill {
    /// What it is loaded by.
    pub name: SkillName,
    /// What it is for.
    pub description: String,
    /// The playbook.
    pub body: String,
    /// What it opens, as the map says; a key depends on these.
    pub patterns: Vec<Pattern>,
    /// Where it comes from.
    pub origin: Origin,
    /// How far it is trusted.
    pub trust: Trust,
    /// What that allows.
    pub rule: TrustRule,
    /// Its files, where it has any.
    pub on_disk: Option<Skill>,
    /// Whether it is left out of the catalogue.
    pub is_hidden: bool,
    /// For counts and filters.
    pub tags: Vec<String>,
    /// Positions in the registry, ascending.
    pub tools: Vec<usize>,
}

/// Tools named in the description of a skill that is made of an upstream.
const DESCRIBED_TOOLS: usize = 8;

/// Skills whose tools are open to a caller.
pub type OpenSkills = Vec<SkillName>;

/// What somebody who names a skill is to be told of it.
#[derive(Debug)]
pub enum SkillFor<'a> {
    /// It may be loaded.
    Known(&'a CatalogSkill),
    /// There is one that they may not use.
    Forbidden,
    /// There is none, or it must look so.
    Unknown,
}

/// One moment's truth.
#[derive(Debug)]
pub struct Snapshot {
    /// Grows with each publication.
    pub generation: u64,
    /// As read.
    pub config: Arc<Config>,
    /// The map, where there is one.
    pub map: Option<Arc<GatingMap>>,
    /// Who may use what.
    pub policy: Policy,
    /// Every tool.
    pub registry: Registry,
    /// Every skill.
    pub skills: BTreeMap<SkillName, CatalogSkill>,
    /// The skill that is always active.
    pub core: Option<SkillName>,
    /// What upstreams offer and nobody accepted.
    pub unaccepted: Unaccepted,
    /// What texts are looked through for.
    pub scanner: Arc<Scanner>,
    /// Why skills are withheld that are, by name.
    pub withheld_skills: Arc<BTreeMap<SkillName, String>>,
    /// Per tool: always open.
    always: Vec<bool>,
    /// Per tool: the skills that open it, the one with the fewest tools first.
    opened_by: Vec<Vec<SkillName>>,
    /// About the skills that were made of upstreams.
    findings: Vec<Diagnostic>,
    pub(super) indexes: Indexes,
}

impl Snapshot {
    /// Builds a snapshot. The same inputs give the same snapshot, in whatever order tools were listed.
    pub fn build(inputs: Inputs, reserved: &[&str]) -> Self {
        let Inputs { generation, config, map, skills: skill_set, trust, mut upstreams, unaccepted, scanner, withheld } =
            inputs;
        let tools: Vec<UpstreamTools> = upstreams.iter().map(|(tools, _)| tools.clone()).collect();
        if unaccepted.is_enforced {
            // They are instructions, too.
            let is_other = |(tools, _): &&mut (UpstreamTools, _)| unaccepted.instructions.contains(&tools.name);
            upstreams.iter_mut().filter(is_other).for_each(|(_, facts)| facts.instructions = None);
        }
        let registry = Registry::build(&tools, &unaccepted, reserved);
        let mut skills: BTreeMap<SkillName, CatalogSkill> = skill_set
            .skills
            .values()
            .map(|skill| {
                let trust = trust.get(&skill.name).copied().unwrap_or(Trust::Untrusted);
                (skill.name.clone(), from_disk(skill, map.as_deref(), trust, config.trust.of(trust)))
            })
            .collect();
        let mut findings = Vec::new();
        if map.is_none() {
            let named = upstreams.iter().filter(|(tools, _)| tools.name.fault().is_none());
            let made = named.flat_map(|(tools, facts)| auto::skills_of(&tools.name, facts, &registry));
            let rule = config.trust.user;
            let made = made.map(|skill| CatalogSkill { rule, is_hidden: !rule.is_listed, ..skill });
            auto::add(&mut skills, made.collect(), &mut findings);
        }
        let always_entries = map.as_ref().map(|map| map.always.as_slice()).unwrap_or_default();
        let is_always = |tool: &Registered| {
            always_entries.iter().any(|entry| entry.pattern.matches(&tool.upstream, tool.exposed.as_str()))
        };
        let always = registry.tools().iter().map(is_always).collect();
        for skill in skills.values_mut() {
            skill.tools = opened(skill, &registry);
        }
        // What must not be loaded without a question is not given to everybody.
        let is_free = |name: &SkillName| {
            let is_allowed = skills.get(name).is_none_or(|skill| skill.rule.load == LoadRule::Allow);
            is_allowed && !withheld.contains_key(name)
        };
        let core = map.as_ref().and_then(|map| map.core_skill.clone()).map(|(name, _)| name).filter(is_free);
        let opened_by = openers(&skills, registry.tools().len());
        let policy = Policy::new(config.rules.iter().map(|rule| Rule {
            principals: &rule.principals,
            roles: &rule.roles,
            allow: &rule.allow,
            deny: &rule.deny,
            allow_skills: &rule.allow_skills,
            deny_skills: &rule.deny_skills,
            allow_resources: &rule.allow_resources,
            deny_resources: &rule.deny_resources,
        }));
        Self {
            generation,
            config,
            map,
            policy,
            registry,
            skills,
            core,
            unaccepted,
            scanner,
            withheld_skills: withheld,
            always,
            opened_by,
            findings,
            indexes: Indexes::default(),
        }
    }

    /// Whether the tool at this position is open to everybody at all times.
    pub fn is_always_open(&self, position: usize) -> bool {
        let is_core = |skill: &SkillName| self.core.as_ref() == Some(skill);
        self.config.is_pass_through
            || self.always.get(position).copied().unwrap_or(false)
            || self.openers(position).iter().any(is_core)
    }

    /// Whether the tool at this position is open to a caller who loaded `open`.
    pub fn is_open(&self, position: usize, open: &OpenSkills) -> bool {
        self.is_always_open(position) || self.openers(position).iter().any(|skill| open.contains(skill))
    }

    /// The skills that open the tool at this position, the one with the fewest tools first.
    pub fn openers(&self, position: usize) -> &[SkillName] {
        self.opened_by.get(position).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether `principal` may know the tool at this position.
    pub fn is_visible(&self, position: usize, principal: &Principal) -> bool {
        let tool = self.registry.tools().get(position);
        tool.is_some_and(|tool| {
            let (exposed, original) = (tool.exposed.as_str(), tool.tool.name.as_str());
            self.policy.is_visible(principal, Kind::Tool, &tool.upstream, exposed, original)
        })
    }

    /// Whether the tool at this position may be neither called nor described.
    pub fn is_withheld(&self, position: usize) -> bool {
        match self.registry.tools().get(position).and_then(|tool| tool.doubt.as_ref()) {
            None => false,
            Some(Doubt::Imitates(_)) => true,
            Some(Doubt::Changed | Doubt::New) => self.unaccepted.is_enforced,
        }
    }

    /// Tools that may be neither called nor described.
    pub fn withheld(&self) -> impl Iterator<Item = &Registered> {
        let tools = self.registry.tools().iter().enumerate();
        tools.filter(|(position, _)| self.is_withheld(*position)).map(|(_, tool)| tool)
    }

    /// Whether the definition of the tool at this position may be shown to `principal`.
    pub fn is_shown(&self, position: usize, principal: &Principal) -> bool {
        self.is_visible(position, principal) && !self.is_withheld(position)
    }

    /// Whether `principal` may know this skill: one all of whose tools are forbidden would only mislead.
    pub fn knows_skill(&self, skill: &CatalogSkill, principal: &Principal) -> bool {
        self.policy.is_skill_visible(principal, skill.name.as_str())
            && (skill.tools.is_empty() || skill.tools.iter().any(|position| self.is_visible(*position, principal)))
    }

    /// Whether this skill's text may be given without a question.
    pub fn is_free(&self, skill: &CatalogSkill) -> bool {
        skill.rule.load == LoadRule::Allow && !self.withheld_skills.contains_key(&skill.name)
    }

    /// The skill of this name as far as `principal` may know it.
    pub fn skill_for(&self, name: &str, principal: &Principal) -> SkillFor<'_> {
        match self.skills.get(name) {
            Some(skill) if self.knows_skill(skill, principal) => SkillFor::Known(skill),
            Some(_) if !self.config.is_concealing => SkillFor::Forbidden,
            _ => SkillFor::Unknown,
        }
    }

    /// Those of `open` that rules do not keep from `principal`: they may have changed since the skill was loaded.
    pub fn still_open(&self, open: Arc<OpenSkills>, principal: &Principal) -> Arc<OpenSkills> {
        let is_kept = |skill: &SkillName| self.policy.is_skill_visible(principal, skill.as_str());
        if open.iter().all(is_kept) {
            return open;
        }
        Arc::new(open.iter().filter(|skill| is_kept(skill)).cloned().collect())
    }

    /// A skill's description for `principal`; that of a skill made of an upstream says what it opens.
    pub fn describe(&self, skill: &CatalogSkill, principal: &Principal) -> String {
        let visible = skill.tools.iter().filter(|position| self.is_shown(**position, principal));
        let names: Vec<&str> = visible.map(|position| self.registry.tools()[*position].exposed.as_str()).collect();
        if names.is_empty() || skill.origin == Origin::Folder {
            return skill.description.clone();
        }
        let more = if names.len() > DESCRIBED_TOOLS { ", …" } else { "" };
        let noun = if names.len() == 1 { "tool" } else { "tools" };
        let some = names.iter().take(DESCRIBED_TOOLS).copied().collect::<Vec<_>>().join(", ");
        format!("{} Opens {} {noun}: {some}{more}.", skill.description, names.len())
    }

    /// What the gate is asked about the tool at this position.
    pub fn standing(&self, position: usize, open: &OpenSkills, is_available: bool) -> Option<Standing<'_>> {
        let tool = self.registry.tools().get(position)?;
        Some(Standing {
            kind: Kind::Tool,
            upstream: &tool.upstream,
            exposed: tool.exposed.as_str(),
            original: tool.tool.name.as_str(),
            is_quarantined: self.is_withheld(position),
            is_open: self.is_open(position, open),
            is_available,
        })
    }

    /// What is wrong or worth knowing about map, skills and names; tools of upstreams that are down count as unknown.
    pub fn findings(&self) -> Vec<Diagnostic> {
        let mut found = self.registry.findings.clone();
        found.extend(self.findings.iter().cloned());
        let names: Vec<(&UpstreamName, &str, &str)> = self
            .registry
            .tools()
            .iter()
            .map(|tool| (&tool.upstream, tool.exposed.as_str(), tool.tool.name.as_str()))
            .collect();
        found.extend(self.policy.dead_patterns(&names).into_iter().map(|pattern| {
            let message = format!("`{pattern}` of a rule matches no tool");
            Diagnostic::warning("rule-dead", message).hint("a denial that matches nothing protects nothing")
        }));
        let skills: Vec<&str> = self.skills.keys().map(SkillName::as_str).collect();
        found.extend(self.policy.dead_skill_patterns(&skills).into_iter().map(|pattern| {
            let message = format!("`{pattern}` of a rule matches no skill");
            Diagnostic::warning("rule-dead", message).hint("a denial that matches nothing protects nothing")
        }));
        if let Some(map) = &self.map {
            found.extend(self.map_findings(map));
        }
        found
    }

    fn map_findings(&self, map: &GatingMap) -> Vec<Diagnostic> {
        let tools = self.registry.tools();
        let mut found = Vec::new();
        for (position, tool) in tools.iter().enumerate() {
            if !self.is_always_open(position) && self.openers(position).is_empty() {
                let message = format!("tool `{}` of `{}` is opened by no skill", tool.exposed, tool.upstream);
                let hint = match self.unapproved_opener(map, tool) {
                    Some(skill) => format!(
                        "`{skill}` would, but opens nothing before somebody approves it: `gatekey skills trust {skill}`"
                    ),
                    None => "add a prefix of its name to a skill or to `always` in the gating map".to_owned(),
                };
                found.push(Diagnostic::error("gate-uncovered-tool", message).hint(hint));
            }
        }
        for entry in map.entries() {
            let matching = || tools.iter().filter(|tool| entry.pattern.matches(&tool.upstream, tool.exposed.as_str()));
            if let Some(upstream) = entry.pattern.upstream.as_ref().filter(|name| !self.has_upstream(name)) {
                let message = format!("`{}` names `{upstream}`, which the config does not have", entry.pattern);
                found.push(Diagnostic::error("gate-unknown-upstream", message).at(entry.at.clone()));
            } else if matching().next().is_none() {
                let message = format!("`{}` matches no tool", entry.pattern);
                found.push(Diagnostic::warning("gate-dead-prefix", message).at(entry.at.clone()));
            }
            if let Some(tool) = matching().find(|tool| entry.pattern.splits_word(tool.exposed.as_str())) {
                let message = format!("`{}` ends in the middle of a word of `{}`", entry.pattern, tool.exposed);
                let hint = "end the prefix with its separator, or write `=name`";
                found.push(Diagnostic::warning("gate-boundary", message).at(entry.at.clone()).hint(hint));
            }
        }
        let named = map.skills.iter().map(|(name, (at, _))| (name, at));
        for (name, at) in named.chain(map.core_skill.iter().map(|(name, at)| (name, at))) {
            if !self.skills.contains_key(name) {
                let message = format!("skill `{name}` is in no skills folder");
                let hint = "check its folder with `gatekey skills list`";
                found.push(Diagnostic::error("gate-unknown-skill", message).at(at.clone()).hint(hint));
            }
        }
        let is_unmapped = |skill: &&CatalogSkill| {
            skill.origin == Origin::Folder
                && !map.skills.contains_key(&skill.name)
                && self.core.as_ref() != Some(&skill.name)
        };
        for skill in self.skills.values().filter(is_unmapped) {
            let message = format!("skill `{}` is in no gating map, so it opens nothing", skill.name);
            found.push(Diagnostic::note("gate-skill-unmapped", message));
        }
        found
    }

    /// A skill to which the map gives this tool, and which opens nothing for want of trust.
    fn unapproved_opener<'a>(&self, map: &'a GatingMap, tool: &Registered) -> Option<&'a SkillName> {
        let is_its = |pattern: &Pattern| pattern.matches(&tool.upstream, tool.exposed.as_str());
        let is_unapproved = |name: &SkillName| self.skills.get(name).is_some_and(|skill| !skill.rule.opens);
        let mut skills = map.skills.iter().filter(|(name, _)| is_unapproved(name));
        skills.find(|(_, (_, entries))| entries.iter().any(|entry| is_its(&entry.pattern))).map(|(name, _)| name)
    }

    fn has_upstream(&self, name: &UpstreamName) -> bool {
        let own = self.config.upstreams.iter().map(|upstream| &upstream.name);
        own.chain(&self.config.left_out).any(|known| known == name)
    }
}

fn from_disk(skill: &Skill, map: Option<&GatingMap>, trust: Trust, rule: TrustRule) -> CatalogSkill {
    let entries =
        map.filter(|_| rule.opens).and_then(|map| map.skills.get(&skill.name)).map(|(_, entries)| entries.as_slice());
    CatalogSkill {
        name: skill.name.clone(),
        description: skill.description.clone(),
        body: skill.body.to_string(),
        patterns: entries.unwrap_or_default().iter().map(|entry| entry.pattern.clone()).collect(),
        origin: Origin::Folder,
        trust,
        rule,
        is_hidden: skill.is_hidden || !rule.is_listed,
        tags: skill.tags.clone(),
        on_disk: Some(skill.clone()),
        tools: Vec::new(),
    }
}

/// Positions of the tools that a skill opens: what the map gives it, less what its author left out.
fn opened(skill: &CatalogSkill, registry: &Registry) -> Vec<usize> {
    let allowed = skill.on_disk.as_ref().and_then(|disk| disk.allowed_tools.as_deref()).unwrap_or_default();
    // `allowed-tools` opens nothing. Entries of the form `upstream/tool` name our tools, so there they are a limit;
    // others name tools of the client and say nothing here.
    let limits: Vec<(&str, &str)> = allowed.iter().filter_map(|entry| entry.split_once('/')).collect();
    let is_within = |tool: &Registered| {
        limits.is_empty()
            || limits
                .iter()
                .any(|(upstream, name)| *upstream == tool.upstream.as_str() && *name == tool.tool.name.as_str())
    };
    let is_opened = |tool: &Registered| {
        skill.patterns.iter().any(|pattern| pattern.matches(&tool.upstream, tool.exposed.as_str())) && is_within(tool)
    };
    let tools = registry.tools().iter().enumerate();
    tools.filter(|(_, tool)| is_opened(tool)).map(|(position, _)| position).collect()
}

fn openers(skills: &BTreeMap<SkillName, CatalogSkill>, n_tools: usize) -> Vec<Vec<SkillName>> {
    let mut opened_by = vec![Vec::new(); n_tools];
    let mut by_size: Vec<&CatalogSkill> = skills.values().collect();
    by_size.sort_by_key(|skill| (skill.tools.len(), skill.name.clone()));
    for skill in by_size {
        for position in &skill.tools {
            opened_by[*position].push(skill.name.clone());
        }
    }
    opened_by
}
