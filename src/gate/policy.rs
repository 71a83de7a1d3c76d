//! Who may use what, and the one decision whether a tool may be called. Every path to an upstream passes
//! [`Policy::decide`]; a property test walks them all.

use wildmatch::WildMatch;

use super::reading::Readings;
use crate::model::{name::UpstreamName, principal::Principal};

/// The rules of the config, ready to be asked.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    rules: Vec<CheckedRule>,
}

/// One rule, as the config has it.
#[derive(Debug, Clone, Default)]
pub struct Rule<'a> {
    /// Callers it holds for.
    pub principals: &'a [String],
    /// Roles it holds for.
    pub roles: &'a [String],
    /// Patterns of tools allowed.
    pub allow: &'a [String],
    /// Patterns of tools denied.
    pub deny: &'a [String],
    /// Patterns of skills allowed.
    pub allow_skills: &'a [String],
    /// Patterns of skills denied.
    pub deny_skills: &'a [String],
    /// Patterns of URIs and prompts allowed.
    pub allow_resources: &'a [String],
    /// Patterns of URIs and prompts denied.
    pub deny_resources: &'a [String],
}

#[derive(Debug, Clone)]
struct CheckedRule {
    principals: Vec<String>,
    roles: Vec<String>,
    /// Of tools by name; they hold for whatever else has a name too.
    allow: Vec<ToolPattern>,
    deny: Vec<ToolPattern>,
    allow_skills: Vec<NamePattern>,
    deny_skills: Vec<NamePattern>,
    /// Besides those of tools.
    allow_resources: Vec<NamePattern>,
    deny_resources: Vec<NamePattern>,
}

#[derive(Debug, Clone)]
struct ToolPattern {
    /// As written.
    text: String,
    upstream: Option<String>,
    name: WildMatch,
}

/// Of a skill's name, or of a URI, which has colons of its own.
#[derive(Debug, Clone)]
struct NamePattern {
    /// As written.
    text: String,
    name: WildMatch,
}

/// What a caller names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A tool.
    Tool,
    /// A resource, a template or a prompt.
    Resource,
    /// A task, or a method that we know nothing of.
    Other,
}

/// What is known of the tool, or of what is none, that a caller names.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its upstream.
    pub upstream: &'a UpstreamName,
    /// Its name as clients see it.
    pub exposed: &'a str,
    /// Its name as its upstream knows it.
    pub original: &'a str,
    /// Whether its definition differs from the one that was accepted.
    pub is_quarantined: bool,
    /// Whether it is open to this caller now: always, or by a skill that the caller loaded.
    pub is_open: bool,
    /// Whether its upstream can take a call.
    pub is_available: bool,
}

/// The outcome of the gate, in the order in which it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// No such tool.
    NotFound,
    /// Not for this caller.
    Forbidden,
    /// Changed since it was accepted.
    Quarantined,
    /// No loaded skill opens it.
    Inactive,
    /// Its upstream is down.
    Unavailable,
    /// To be forwarded.
    Allow,
}

impl Policy {
    /// Makes a policy of the config's rules.
    pub fn new<'a>(rules: impl Iterator<Item = Rule<'a>>) -> Self {
        let tools = |texts: &[String]| texts.iter().map(|text| ToolPattern::new(text)).collect();
        let names = |texts: &[String]| texts.iter().map(|text| NamePattern::new(text)).collect();
        let checked = rules.map(|rule| CheckedRule {
            principals: rule.principals.to_vec(),
            roles: rule.roles.to_vec(),
            allow: tools(rule.allow),
            deny: tools(rule.deny),
            allow_skills: names(rule.allow_skills),
            deny_skills: names(rule.deny_skills),
            allow_resources: names(rule.allow_resources),
            deny_resources: names(rule.deny_resources),
        });
        Self { rules: checked.collect() }
    }

    /// Whether `principal` may know and use what is named. A denial holds for either of its names, since another upstream
    /// can make it be exposed under another one; an allowance holds for the exposed name only. Of a URI a denial holds for
    /// whatever a server may read it as, and an allowance must hold for its text and its plain readings.
    pub fn is_visible(
        &self,
        principal: &Principal,
        kind: Kind,
        upstream: &UpstreamName,
        exposed: &str,
        original: &str,
    ) -> bool {
        let is_resource = kind == Kind::Resource;
        let of_uris = is_resource && !self.rules.is_empty();
        let read = of_uris.then(|| [Readings::of(exposed), Readings::of(original)]);
        let (denied, allowed) = match &read {
            Some(read) => (read.iter().flat_map(Readings::any).collect(), read[0].all().collect()),
            None => (vec![exposed, original], vec![exposed]),
        };
        self.judge(principal, |rule| {
            let named = |tools: &[ToolPattern], resources: &[NamePattern], name: &str| {
                tools.iter().any(|pattern| pattern.matches(upstream, name))
                    || (is_resource && resources.iter().any(|pattern| pattern.name.matches(name)))
            };
            Verdict {
                is_denied: denied.iter().any(|name| named(&rule.deny, &rule.deny_resources, name)),
                is_limited: !rule.allow.is_empty() || (is_resource && !rule.allow_resources.is_empty()),
                is_allowed: allowed.iter().all(|name| named(&rule.allow, &rule.allow_resources, name)),
            }
        })
    }

    /// Whether `principal` may know and load the skill of this name.
    pub fn is_skill_visible(&self, principal: &Principal, skill: &str) -> bool {
        let has = |patterns: &[NamePattern]| patterns.iter().any(|pattern| pattern.name.matches(skill));
        self.judge(principal, |rule| Verdict {
            is_denied: has(&rule.deny_skills),
            is_limited: !rule.allow_skills.is_empty(),
            is_allowed: has(&rule.allow_skills),
        })
    }

    /// A denial of any rule holds; where any rule limits, one must allow.
    fn judge(&self, principal: &Principal, verdict: impl Fn(&CheckedRule) -> Verdict) -> bool {
        let (mut is_limited, mut is_allowed) = (false, false);
        for rule in self.rules.iter().filter(|rule| rule.holds_for(principal)) {
            let verdict = verdict(rule);
            if verdict.is_denied {
                return false;
            }
            is_limited |= verdict.is_limited;
            is_allowed |= verdict.is_allowed;
        }
        is_allowed || !is_limited
    }

    /// Patterns of tools, as written, that match none of `tools`: upstream, exposed name, own name.
    pub fn dead_patterns(&self, tools: &[(&UpstreamName, &str, &str)]) -> Vec<&str> {
        let matches_any = |pattern: &&ToolPattern| {
            tools.iter().any(|(upstream, exposed, original)| {
                pattern.matches(upstream, exposed) || pattern.matches(upstream, original)
            })
        };
        let patterns = self.rules.iter().flat_map(|rule| rule.allow.iter().chain(&rule.deny));
        patterns.filter(|pattern| !matches_any(pattern)).map(|pattern| pattern.text.as_str()).collect()
    }

    /// Patterns of skills, as written, that match none of these names.
    pub fn dead_skill_patterns(&self, skills: &[&str]) -> Vec<&str> {
        let matches_any = |pattern: &&NamePattern| skills.iter().any(|skill| pattern.name.matches(skill));
        let patterns = self.rules.iter().flat_map(|rule| rule.allow_skills.iter().chain(&rule.deny_skills));
        patterns.filter(|pattern| !matches_any(pattern)).map(|pattern| pattern.text.as_str()).collect()
    }

    /// The gate: whether `principal` may call the tool of this standing; `None` is a tool that does not exist.
    pub fn decide(&self, principal: &Principal, standing: Option<&Standing<'_>>) -> Decision {
        match standing {
            None => Decision::NotFound,
            Some(tool) if !self.is_visible(principal, tool.kind, tool.upstream, tool.exposed, tool.original) => {
                Decision::Forbidden
            }
            Some(tool) if tool.is_quarantined => Decision::Quarantined,
            Some(tool) if !tool.is_open => Decision::Inactive,
            Some(tool) if !tool.is_available => Decision::Unavailable,
            Some(_) => Decision::Allow,
        }
    }
}

/// What one rule says.
struct Verdict {
    is_denied: bool,
    /// Whether only what some rule allows may be used.
    is_limited: bool,
    is_allowed: bool,
}

impl CheckedRule {
    fn holds_for(&self, principal: &Principal) -> bool {
        let is_for_all = self.principals.is_empty() && self.roles.is_empty();
        is_for_all
            || self.principals.contains(&principal.name)
            || self.roles.iter().any(|role| principal.roles.contains(role))
    }
}

impl ToolPattern {
    fn new(text: &str) -> Self {
        let (upstream, name) = text.rsplit_once(':').map_or((None, text), |(upstream, name)| (Some(upstream), name));
        Self { text: text.to_owned(), upstream: upstream.map(str::to_owned), name: WildMatch::new(name) }
    }

    fn matches(&self, upstream: &UpstreamName, exposed: &str) -> bool {
        self.upstream.as_ref().is_none_or(|wanted| wanted == upstream.as_str()) && self.name.matches(exposed)
    }
}

impl NamePattern {
    fn new(text: &str) -> Self {
        Self { text: text.to_owned(), name: WildMatch::new(text) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    fn principal(name: &str, roles: &[&str]) -> Principal {
        Principal { name: name.into(), roles: texts(roles) }
    }

    fn policy() -> Policy {
        let (all, viewers, ann) = (texts(&["*_drop"]), texts(&["viewer"]), texts(&["ann"]));
        let (reads, gets, shop) = (texts(&["*_list"]), texts(&["*_get"]), texts(&["shop:admin_*"]));
        Policy::new(
            [
                Rule { deny: &all, ..Rule::default() },
                Rule { roles: &viewers, allow: &reads, ..Rule::default() },
                Rule { principals: &ann, allow: &gets, deny: &shop, ..Rule::default() },
            ]
            .into_iter(),
        )
    }

    #[test]
    fn a_denial_always_holds_and_an_allowance_limits_those_it_is_for() {
        let (viewer, ann, bob) = (principal("v", &["viewer"]), principal("ann", &["viewer"]), principal("bob", &[]));
        for (who, upstream, tool, is_visible) in [
            (&bob, "shop", "orders_write", true),
            (&bob, "shop", "orders_drop", false),
            (&viewer, "shop", "orders_list", true),
            (&viewer, "shop", "orders_get", false),
            (&ann, "shop", "orders_get", true),
            (&ann, "shop", "orders_list", true),
            (&ann, "shop", "admin_get", false),
            (&ann, "other", "admin_get", true),
        ] {
            assert_eq!(
                policy().is_visible(who, Kind::Tool, &UpstreamName::new(upstream), tool, tool),
                is_visible,
                "{who} {tool}"
            );
        }
    }

    #[test]
    fn a_denial_is_not_lifted_by_a_name_clash() {
        let (deny, allow) = (texts(&["beta:delete"]), texts(&["beta:delete"]));
        let denying = Policy::new([Rule { deny: &deny, ..Rule::default() }].into_iter());
        let allowing = Policy::new([Rule { allow: &allow, ..Rule::default() }].into_iter());
        let (bob, beta) = (principal("bob", &[]), UpstreamName::new("beta"));
        assert!(!denying.is_visible(&bob, Kind::Tool, &beta, "beta_delete", "delete"));
        assert!(!allowing.is_visible(&bob, Kind::Tool, &beta, "beta_delete", "delete"));
    }

    #[test]
    fn skills_and_resources_have_patterns_of_their_own() {
        let (viewers, tools) = (texts(&["viewer"]), texts(&["*_list", "notes_help"]));
        let (skills, no_skills) = (texts(&["shop-*"]), texts(&["shop-admin"]));
        let (uris, no_uris) = (texts(&["notes://*"]), texts(&["notes://hr/*"]));
        let policy = Policy::new(
            [
                Rule { deny_skills: &no_skills, deny_resources: &no_uris, ..Rule::default() },
                Rule {
                    roles: &viewers,
                    allow: &tools,
                    allow_skills: &skills,
                    allow_resources: &uris,
                    ..Rule::default()
                },
            ]
            .into_iter(),
        );
        let (viewer, bob, mail) = (principal("v", &["viewer"]), principal("bob", &[]), UpstreamName::new("mail"));
        for (who, skill, is_visible) in [
            (&viewer, "shop-orders", true),
            (&viewer, "shop-admin", false),
            (&viewer, "mail", false),
            (&bob, "mail", true),
            (&bob, "shop-admin", false),
        ] {
            assert_eq!(policy.is_skill_visible(who, skill), is_visible, "{who} {skill}");
        }
        for (who, kind, name, original, is_visible) in [
            (&viewer, Kind::Resource, "notes://1", "notes://1", true),
            (&viewer, Kind::Resource, "notes_help", "notes_help", true),
            (&viewer, Kind::Resource, "file:///1", "file:///1", false),
            (&viewer, Kind::Resource, "x-mail+notes://hr/1", "notes://hr/1", false),
            (&viewer, Kind::Tool, "notes://1", "notes://1", false),
            (&viewer, Kind::Other, "notes://1", "notes://1", false),
            (&bob, Kind::Resource, "file:///1", "file:///1", true),
            (&bob, Kind::Resource, "notes://hr/1", "notes://hr/1", false),
            (&bob, Kind::Resource, "notes://hr%2F1", "notes://hr%2F1", false),
            (&bob, Kind::Resource, "notes://a/../../hr/1", "notes://a/../../hr/1", false),
            (&viewer, Kind::Resource, "notes://1/../file", "notes://1/../file", true),
            (&viewer, Kind::Resource, "notes://a%20b", "notes://a%20b", true),
            (&viewer, Kind::Resource, "NOTES://1", "NOTES://1", false),
            (&bob, Kind::Tool, "notes://hr/1", "notes://hr/1", true),
        ] {
            assert_eq!(policy.is_visible(who, kind, &mail, name, original), is_visible, "{who} {kind:?} {name}");
        }
        assert_eq!(policy.dead_skill_patterns(&["shop-orders"]), ["shop-admin"]);
    }

    proptest! {
        #[test]
        fn the_first_reason_in_order_decides(bits in 0u8..8, name in "[a-z]{1,4}_(list|drop)", viewer: bool) {
            let who = principal("x", if viewer { &["viewer"] } else { &[] });
            let upstream = UpstreamName::new("shop");
            let standing = Standing {
                kind: Kind::Tool,
                upstream: &upstream,
                exposed: &name,
                original: &name,
                is_quarantined: bits & 1 > 0,
                is_open: bits & 2 > 0,
                is_available: bits & 4 > 0,
            };
            let expected = if name.ends_with("_drop") {
                Decision::Forbidden
            } else if standing.is_quarantined {
                Decision::Quarantined
            } else if !standing.is_open {
                Decision::Inactive
            } else if !standing.is_available {
                Decision::Unavailable
            } else {
                Decision::Allow
            };
            prop_assert_eq!(policy().decide(&who, Some(&standing)), expected);
            prop_assert_eq!(policy().decide(&who, None), Decision::NotFound);
        }
    }
}
