//! What search knows of skills and tools. Indexes are built at the first search of a snapshot and stay with it, so that no
//! search sees a half-built one.

use std::sync::OnceLock;

use super::{
    registry::Registered,
    snapshot::{CatalogSkill, Snapshot},
};
use crate::search::{Entry, Index};

/// Indexes of one snapshot.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    skills: OnceLock<Option<Index>>,
    tools: OnceLock<Option<Index>>,
}

impl Snapshot {
    /// The skills that have words of `query`, best first, with their scores.
    pub fn find_skills(&self, query: &str) -> Vec<(&CatalogSkill, f32)> {
        let skills: Vec<&CatalogSkill> = self.skills.values().collect();
        let index = self.indexes.skills.get_or_init(|| build(skills.iter().map(|skill| self.entry_of_skill(skill))));
        hits(index.as_ref(), query, skills.len())
            .filter_map(|(position, score)| Some((*skills.get(position)?, score)))
            .collect()
    }

    /// Positions of the tools that have words of `query`, best first, with their scores.
    pub fn find_tools(&self, query: &str) -> Vec<(usize, f32)> {
        let tools = self.registry.tools();
        let index = self.indexes.tools.get_or_init(|| build(tools.iter().map(entry_of_tool)));
        hits(index.as_ref(), query, tools.len()).collect()
    }

    fn entry_of_skill(&self, skill: &CatalogSkill) -> Entry {
        let headings = skill.body.lines().filter(|line| line.starts_with('#'));
        let tools = skill.tools.iter().map(|position| {
            let tool = &self.registry.tools()[*position];
            format!("{} {}", tool.exposed, tool.tool.description)
        });
        Entry {
            name: skill.name.to_string(),
            tags: skill.tags.join(" "),
            description: skill.description.clone(),
            headings: headings.collect::<Vec<_>>().join("\n"),
            body: skill.body.clone(),
            tools: tools.collect::<Vec<_>>().join("\n"),
        }
    }
}

fn entry_of_tool(tool: &Registered) -> Entry {
    Entry {
        name: tool.exposed.to_string(),
        description: tool.tool.description.clone(),
        // Names and descriptions of its arguments stand in its schema.
        body: tool.tool.input_schema.to_string(),
        ..Entry::default()
    }
}

fn build(entries: impl Iterator<Item = Entry>) -> Option<Index> {
    Index::build(entries).inspect_err(|error| tracing::error!(%error, "the search index cannot be built")).ok()
}

fn hits(index: Option<&Index>, query: &str, most: usize) -> impl Iterator<Item = (usize, f32)> {
    let found = index.map(|index| index.search(query, most));
    let found = found.transpose().inspect_err(|error| tracing::error!(%error, "the search failed")).ok().flatten();
    found.unwrap_or_default().into_iter().map(|hit| (hit.position, hit.score))
}
