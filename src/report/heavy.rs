//! The tools and parameters that cost most: where shortening pays.

use std::{cmp::Reverse, collections::HashMap};

use serde::Serialize;

use super::table::percent;
use crate::{
    catalog::Registered,
    model::hidden::visible,
    tokens::{Counter, Part},
    wire::splice::{member, members},
};

/// A tool that costs much.
#[derive(Debug, Clone, Serialize)]
pub struct HeavyTool {
    /// Exposed name.
    pub name: String,
    /// Its upstream.
    pub upstream: String,
    /// Of its definition.
    pub tokens: usize,
    /// Share of the full registry, in percent.
    pub percent_of_full: f64,
}

/// A parameter that costs much, perhaps in many tools.
#[derive(Debug, Clone, Serialize)]
pub struct HeavyParameter {
    /// Its name, `$defs/…` for a part that parameters refer to.
    pub name: String,
    /// Of its name and schema.
    pub tokens: usize,
    /// Tools that have it in the very same words.
    pub n_tools: usize,
    /// In all of them.
    pub total_tokens: usize,
    /// The first of them.
    pub example: String,
}

/// The heaviest `top` tools, the heaviest first.
pub(super) fn tools(tools: &[&Registered], parts: &[Part], full: usize, top: usize) -> Vec<HeavyTool> {
    let mut heavy: Vec<(usize, &Registered)> =
        tools.iter().zip(parts).map(|(tool, part)| (part.tokens, *tool)).collect();
    heavy.sort_by_key(|(tokens, tool)| (Reverse(*tokens), tool.exposed.clone()));
    let shown = |(tokens, tool): (usize, &Registered)| HeavyTool {
        name: tool.exposed.to_string(),
        upstream: tool.upstream.to_string(),
        tokens,
        percent_of_full: percent(tokens, full),
    };
    heavy.into_iter().take(top).map(shown).collect()
}

/// A parameter in the tools that have it in the same words.
struct Group<'a> {
    name: String,
    text: &'a str,
    n_tools: usize,
    example: &'a Registered,
}

impl Group<'_> {
    /// More tokens than it can have: none is shorter than a byte.
    fn most(&self) -> usize {
        self.n_tools * (self.text.len() + self.name.len() + 3)
    }
}

/// The parameters that cost most in all tools together, the heaviest first.
pub(super) fn parameters(tools: &[&Registered], top: usize, counter: &mut Counter) -> Vec<HeavyParameter> {
    let mut groups: HashMap<(String, &str), Group<'_>> = HashMap::new();
    for tool in tools {
        let schema = members(&tool.tool.input_schema).unwrap_or_default();
        for (place, before) in [("properties", ""), ("$defs", "$defs/"), ("definitions", "definitions/")] {
            let inner = member(&schema, place).and_then(|found| members(found.value)).unwrap_or_default();
            for parameter in inner {
                let name = format!("{before}{}", parameter.key);
                let text = parameter.value;
                let group =
                    groups.entry((name.clone(), text)).or_insert(Group { name, text, n_tools: 0, example: tool });
                group.n_tools += 1;
            }
        }
    }
    let mut groups: Vec<Group<'_>> = groups.into_values().collect();
    groups.sort_by(|a, b| {
        let weight = |group: &Group<'_>| Reverse(group.most());
        (weight(a), &a.name, &a.example.exposed).cmp(&(weight(b), &b.name, &b.example.exposed))
    });
    let mut heavy: Vec<HeavyParameter> = Vec::new();
    for group in groups {
        if heavy.len() >= top && heavy.last().is_none_or(|last| last.total_tokens >= group.most()) {
            break;
        }
        let own_name = group.name.rsplit('/').next().unwrap_or_default();
        let tokens = counter.count(&format!("\"{own_name}\":{}", group.text));
        let (n_tools, example) = (group.n_tools, group.example.exposed.to_string());
        // A name is one line of a table.
        let name = visible(&group.name);
        heavy.push(HeavyParameter { name, tokens, n_tools, total_tokens: tokens * n_tools, example });
        let weight = |heavy: &HeavyParameter| Reverse(heavy.total_tokens);
        heavy.sort_by(|a, b| (weight(a), &a.name, &a.example).cmp(&(weight(b), &b.name, &b.example)));
        heavy.truncate(top);
    }
    heavy
}
