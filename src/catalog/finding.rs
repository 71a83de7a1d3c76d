//! What search knows of skills and tools. Indexes are built once for a snapshot and stay with it, so that no search sees a
//! half-built one.

use std::sync::OnceLock;

use super::{
    registry::Registered,
    snapshot::{CatalogSkill, Origin, Snapshot},
};
use crate::{
    config,
    search::{Choice, Entry, Found, Index, Semantic},
};

/// What compares meanings, as the config has it.
pub fn semantic(search: &config::Search) -> Semantic {
    let choice = match &search.encoder {
        config::Encoder::Embedded => Choice::Embedded,
        config::Encoder::Off => Choice::Off,
        config::Encoder::File(file) => Choice::File(file.clone()),
        config::Encoder::Onnx(model) => Choice::Onnx(model.clone()),
    };
    Semantic::new(choice, search.cache.clone()).with_reranker(search.reranker.clone())
}

/// Indexes of one snapshot.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    skills: OnceLock<Option<Index>>,
    tools: OnceLock<Option<Index>>,
}

impl Snapshot {
    /// The skills that fit `query`; positions are those in [`Snapshot::skills`].
    pub fn find_skills(&self, query: &str, semantic: &Semantic) -> Found {
        self.search(self.skills_index(), query, semantic)
    }

    /// The tools that fit `query`; positions are those in the registry.
    pub fn find_tools(&self, query: &str, semantic: &Semantic) -> Found {
        self.search(self.tools_index(), query, semantic)
    }

    /// Lets `semantic` know the skills, as long as `is_wanted`.
    pub fn learn_skills(&self, semantic: &Semantic, is_wanted: impl Fn() -> bool) {
        self.skills_index().inspect(|index| index.learn(semantic, is_wanted));
    }

    /// Lets `semantic` know the tools, as long as `is_wanted`.
    pub fn learn_tools(&self, semantic: &Semantic, is_wanted: impl Fn() -> bool) {
        self.tools_index().inspect(|index| index.learn(semantic, is_wanted));
    }

    /// Lets `semantic` forget what none of this snapshot's skills and tools is.
    pub fn forget_others(&self, semantic: &Semantic) {
        // An index that was not needed has nothing to be remembered.
        let indexes = [&self.indexes.skills, &self.indexes.tools].map(|index| index.get().and_then(Option::as_ref));
        semantic.keep_only(&indexes.into_iter().flatten().flat_map(Index::passages).collect());
    }

    fn search(&self, index: Option<&Index>, query: &str, semantic: &Semantic) -> Found {
        let found = index.map(|index| index.search(query, semantic, self.config.search.words_weight)).transpose();
        found.inspect_err(|error| tracing::error!(%error, "the search failed")).ok().flatten().unwrap_or_default()
    }

    /// What search knows of the skills, in the order of [`Snapshot::skills`].
    pub fn skill_entries(&self) -> Vec<Entry> {
        self.skills.values().map(|skill| self.entry_of_skill(skill)).collect()
    }

    fn skills_index(&self) -> Option<&Index> {
        self.indexes.skills.get_or_init(|| build(self.skill_entries())).as_ref()
    }

    fn tools_index(&self) -> Option<&Index> {
        self.indexes.tools.get_or_init(|| build(self.registry.tools().iter().map(entry_of_tool))).as_ref()
    }

    fn entry_of_skill(&self, skill: &CatalogSkill) -> Entry {
        let headings = skill.body.lines().filter(|line| line.starts_with('#'));
        // Words that nobody accepted bring no skill forward.
        let accepted = skill.tools.iter().filter(|position| !self.is_withheld(**position));
        let tools = accepted.map(|position| {
            let tool = &self.registry.tools()[*position];
            let description = tool.tool.description.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{} {description}", tool.exposed)
        });
        Entry {
            name: skill.name.to_string(),
            tags: skill.tags.join(" "),
            description: skill.description.clone(),
            headings: headings.collect::<Vec<_>>().join("\n"),
            // What is made of an upstream has a playbook that only says how to call.
            body: if skill.origin == Origin::Folder { skill.body.clone() } else { String::new() },
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

fn build(entries: impl IntoIterator<Item = Entry>) -> Option<Index> {
    Index::build(entries).inspect_err(|error| tracing::error!(%error, "the search index cannot be built")).ok()
}
