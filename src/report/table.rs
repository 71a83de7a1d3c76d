//! The rows: which tools a set of skills opens, and what they cost in either form.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{
    budget::Wanted,
    said::Said,
    task::{Opening, as_float},
};
use crate::{
    catalog::{CatalogSkill, Snapshot},
    model::{name::SkillName, principal::Principal},
    tokens::{Counter, Part},
};

/// What a set of skills costs.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// `none`, a skill, skills as `a+b`, or `all`.
    pub set: String,
    /// The tools that are open: those that always are, and those of the set.
    pub tools: usize,
    /// Tokens of their definitions, as they stand in the list.
    pub list_tokens: usize,
    /// Bytes of the same.
    pub list_bytes: usize,
    /// Saved against the full registry, in percent.
    pub saved_percent: f64,
    /// Share of the context window, in percent.
    pub window_percent: f64,
    /// Tokens where the set is called by key instead: the definitions that are always open, and the results of loading the
    /// skills, with their playbooks.
    pub dispatch_tokens: usize,
    /// Of these the playbooks, which the model reads in both forms.
    pub playbook_tokens: usize,
    /// Saved so against the full registry, in percent.
    pub dispatch_saved_percent: f64,
    /// Share of the context window so, in percent.
    pub dispatch_window_percent: f64,
    /// Loads of this set after which listing everything would have cost no more; none where nothing is loaded.
    pub break_even_calls: Option<f64>,
}

/// A set of skills, before it is counted.
pub(super) struct Set<'a> {
    pub(super) name: String,
    pub(super) skills: Vec<&'a CatalogSkill>,
}

/// What is known of a set besides its row.
pub(super) struct Counted {
    pub(super) row: Row,
    /// By skill, in the order of loading.
    pub(super) openings: Vec<Opening>,
    /// What a call by key is longer than one by name.
    pub(super) overhead: usize,
}

/// None, each skill, the chosen sets, all.
pub(super) fn sets<'a>(snapshot: &'a Snapshot, said: &Said, chosen: &[Vec<SkillName>]) -> Vec<Set<'a>> {
    let skills = |names: &[SkillName]| names.iter().filter_map(|name| snapshot.skills.get(name)).collect();
    let mut sets = vec![Set { name: "none".into(), skills: Vec::new() }];
    let all: Vec<&CatalogSkill> = said.loads.keys().filter_map(|name| snapshot.skills.get(name)).collect();
    sets.extend(all.iter().map(|skill| Set { name: skill.name.to_string(), skills: vec![skill] }));
    for names in chosen.iter().filter(|names| names.len() > 1) {
        let name = names.iter().map(SkillName::as_str).collect::<Vec<_>>().join("+");
        sets.push(Set { name, skills: skills(names) });
    }
    sets.push(Set { name: "all".into(), skills: all });
    sets
}

/// What everything is measured against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Against {
    pub(super) full_tokens: usize,
    pub(super) start_tokens: usize,
}

/// Counts sets.
pub(super) struct Tally<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) principal: &'a Principal,
    pub(super) said: &'a Said,
    pub(super) wanted: &'a Wanted,
    pub(super) against: Against,
    /// The definitions in the list, by position in the registry.
    pub(super) parts: Vec<Part>,
    /// What the caller may always use.
    pub(super) always: BTreeSet<usize>,
}

impl Tally<'_> {
    /// Counts a set.
    pub(super) fn count(&self, set: Set<'_>, counter: &mut Counter) -> Counted {
        let all = self.snapshot.registry.tools();
        let is_visible = |position: &usize| self.snapshot.is_shown(*position, self.principal);
        let mut open = self.always.clone();
        let always_tokens = self.list_tokens(&open, counter);
        let (mut list_tokens, mut openings) = (always_tokens, Vec::new());
        let (mut load_tokens, mut playbook_tokens, mut overhead) = (0, 0, 0);
        for skill in &set.skills {
            open.extend(skill.tools.iter().copied().filter(is_visible));
            let before = std::mem::replace(&mut list_tokens, self.list_tokens(&open, counter));
            let Some(load) = self.said.loads.get(&skill.name) else { continue };
            let tokens = counter.count(&load.text);
            openings.push(Opening { load: tokens, schemas: list_tokens - before });
            load_tokens += tokens;
            playbook_tokens += counter.count(skill.body.trim_end());
            if let Some(position) = skill.tools.first() {
                overhead = overhead.max(self.overhead(&load.key, all[*position].exposed.as_str(), counter));
            }
        }
        let Against { full_tokens, start_tokens } = self.against;
        let dispatch_tokens = always_tokens + load_tokens;
        let mean_load = as_float(load_tokens) / as_float(openings.len().max(1));
        let saved = as_float(full_tokens) - as_float(start_tokens);
        let row = Row {
            set: set.name,
            tools: open.len(),
            list_tokens,
            list_bytes: open.iter().map(|position| self.parts[*position].bytes).sum(),
            saved_percent: saved_percent(list_tokens, full_tokens),
            window_percent: percent(list_tokens, self.wanted.window),
            dispatch_tokens,
            playbook_tokens,
            dispatch_saved_percent: saved_percent(dispatch_tokens, full_tokens),
            dispatch_window_percent: percent(dispatch_tokens, self.wanted.window),
            break_even_calls: (load_tokens > 0).then(|| round((saved / mean_load).max(0.0))),
        };
        Counted { row, openings, overhead }
    }

    fn list_tokens(&self, open: &BTreeSet<usize>, counter: &mut Counter) -> usize {
        counter.join(open.iter().map(|position| self.parts[*position]))
    }

    fn overhead(&self, key: &str, tool: &str, counter: &mut Counter) -> usize {
        let by_key = serde_json::json!({"key": key, "name": tool, "arguments": {}}).to_string();
        let by_key = counter.count("tool_call_read") + counter.count(&by_key);
        by_key.saturating_sub(counter.count(tool) + counter.count("{}"))
    }
}

/// Share of `part` in `whole` in percent, to a tenth; nothing has no parts.
pub(super) fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { round(100.0 * as_float(part) / as_float(whole)) }
}

/// Nothing can be saved of nothing.
fn saved_percent(part: usize, full: usize) -> f64 {
    if full == 0 { 0.0 } else { round(100.0 - 100.0 * as_float(part) / as_float(full)) }
}

/// To a tenth, without a negative zero.
pub(super) fn round(number: f64) -> f64 {
    (number * 10.0).round() / 10.0 + 0.0
}
