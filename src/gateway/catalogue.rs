//! The catalogue of skills in the few places where clients show it to a model, never over its budget and never linear.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::{
    catalog::{CatalogSkill, Origin, Snapshot},
    model::{
        limits::{CATALOG_TAGS, DESCRIPTION_CHARS, HOST_TEXT_BYTES},
        principal::Principal,
        tool::{cut, estimate_tokens, first_sentence},
    },
};

/// What each place says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Texts {
    /// The server's `instructions`, at most 2 KiB.
    pub(super) instructions: String,
    /// The description of `skill_load`, at most 2 KiB.
    pub(super) load_description: String,
    /// The description of its `name`, where the rest of the catalogue has room; hosts were not seen to cut it.
    pub(super) name_description: String,
    /// Whether some skill is not described anywhere.
    pub(super) is_cut: bool,
}

const INSTRUCTIONS: &str = "Tools are grouped into skills and closed until their skill is loaded. When a task fits a skill, call \
     skill_load with its name before anything else: it returns how to proceed, the tools that open, and the key to call \
     them with tool_call_read and tool_call_write.";

const LOAD: &str = "Loads a skill: returns its playbook, opens its tools, and gives the key for tool_call_read and \
     tool_call_write. All other tools stay closed. Load the skill that fits the task first.";

const NAME: &str = "Name of the skill.";

/// One of the places of the catalogue taken apart, for those who count what each part costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueParts<'a> {
    /// The core skill's body, where it stands in this text.
    pub core: &'a str,
    /// The skills; empty where they stand elsewhere.
    pub catalogue: &'a str,
}

/// Takes apart what stands in one of the places: the description of `skill_load`, that of its `name`, or the instructions.
pub fn catalogue_parts<'a>(snapshot: &Snapshot, text: &'a str) -> CatalogueParts<'a> {
    let rest = [INSTRUCTIONS, LOAD, NAME].iter().find_map(|own| text.strip_prefix(own)).unwrap_or_default();
    let core = snapshot.core.as_ref().and_then(|name| snapshot.skills.get(name)).map(core_text);
    let found = core.and_then(|core| Some((rest.find(&core)?, core.len())));
    // It stands either before or behind the skills.
    match found {
        Some((0, length)) => {
            let (core, catalogue) = rest.split_at_checked(length).unwrap_or_default();
            CatalogueParts { core, catalogue }
        }
        Some((at, _)) => {
            let (catalogue, core) = rest.split_at_checked(at).unwrap_or_default();
            CatalogueParts { core, catalogue }
        }
        None => CatalogueParts { core: "", catalogue: rest },
    }
}

/// A skill as the catalogue shows it to somebody.
pub(super) struct Shown<'a> {
    pub(super) skill: &'a CatalogSkill,
    pub(super) description: String,
}

/// How much of each skill is shown, most first.
pub(super) const LEVELS: [Level; 3] = [Level::Full, Level::Sentence, Level::Name];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Full,
    Sentence,
    Name,
}

impl Level {
    /// What it shows of a description, in one line.
    pub(super) fn of(self, description: &str) -> Option<String> {
        match self {
            Self::Full => Some(cut(&one_line(description), DESCRIPTION_CHARS)),
            Self::Sentence => Some(first_sentence(description, 160)),
            Self::Name => None,
        }
    }
}

/// Makes the texts for what `principal` may see.
pub(super) fn texts(snapshot: &Snapshot, principal: &Principal) -> Texts {
    let skills = shown(snapshot, principal);
    let is_known = |skill: &&CatalogSkill| snapshot.policy.is_skill_visible(principal, skill.name.as_str());
    let core = snapshot.core.as_ref().and_then(|name| snapshot.skills.get(name)).filter(is_known).map(core_text);
    let budget = snapshot.config.catalog_budget_tokens;

    let mut load_description = LOAD.to_owned();
    let mut name_description = NAME.to_owned();
    let mut place_core = core.clone().unwrap_or_default();
    if fits(&load_description, &place_core, HOST_TEXT_BYTES) {
        load_description.push_str(&std::mem::take(&mut place_core));
    }
    let room = HOST_TEXT_BYTES.saturating_sub(load_description.len());
    let full = at(Level::Full, &skills);
    let mut is_cut = false;
    if full.len() <= room && estimate_tokens(&full) <= budget {
        load_description.push_str(&full);
    } else {
        // The whole goes where hosts do not cut, names alone where they may.
        let short = within(&skills, room, budget / 4, &[Level::Name]);
        let left = budget.saturating_sub(estimate_tokens(&short));
        load_description.push_str(&short);
        let whole = within(&skills, usize::MAX, left, &LEVELS);
        is_cut = whole != full;
        name_description.push_str(&whole);
    }
    name_description.push_str(&place_core);

    let mut instructions = INSTRUCTIONS.to_owned();
    if let Some(core) = core.filter(|core| fits(&instructions, core, HOST_TEXT_BYTES)) {
        instructions.push_str(&core);
    }
    if snapshot.generation == 0 && skills.iter().any(|shown| shown.skill.origin != Origin::Folder) {
        // Skills that are made of upstreams are known once those are up, and these texts are not sent again.
        instructions.push_str(" The skills are listed with skill_load.");
        return Texts { instructions, load_description, name_description, is_cut };
    }
    let room = HOST_TEXT_BYTES.saturating_sub(instructions.len());
    instructions.push_str(&within(&skills, room, budget, &[Level::Sentence, Level::Name]));
    Texts { instructions, load_description, name_description, is_cut }
}

/// The skills of the catalogue as `principal` is told of them.
pub(super) fn shown<'a>(snapshot: &'a Snapshot, principal: &Principal) -> Vec<Shown<'a>> {
    let described = |skill| Shown { skill, description: snapshot.describe(skill, principal) };
    listed(snapshot, principal).into_iter().map(described).collect()
}

/// The skills of the catalogue, by name: what is hidden, always active or of no use to `principal` is not among them.
pub(super) fn listed<'a>(snapshot: &'a Snapshot, principal: &Principal) -> Vec<&'a CatalogSkill> {
    snapshot.skills.values().filter(|skill| is_listed(snapshot, skill, principal)).collect()
}

/// Whether the skill is one of the catalogue.
pub(super) fn is_listed(snapshot: &Snapshot, skill: &CatalogSkill, principal: &Principal) -> bool {
    !skill.is_hidden && snapshot.core.as_ref() != Some(&skill.name) && snapshot.knows_skill(skill, principal)
}

fn core_text(skill: &CatalogSkill) -> String {
    format!("\n\nAlways active, `{}`:\n{}", skill.name, skill.body.trim())
}

fn fits(text: &str, more: &str, most_bytes: usize) -> bool {
    text.len() + more.len() <= most_bytes
}

/// The first level that fits, else as many names as do, with the number of the others.
fn within(skills: &[Shown<'_>], most_bytes: usize, most_tokens: usize, levels: &[Level]) -> String {
    let is_fitting = |text: &String| text.len() <= most_bytes && estimate_tokens(text) <= most_tokens;
    let whole = levels.iter().map(|level| at(*level, skills)).find(is_fitting);
    whole.unwrap_or_else(|| counted(skills, most_bytes.min(most_tokens.saturating_mul(3))))
}

fn at(level: Level, skills: &[Shown<'_>]) -> String {
    if skills.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n\nSkills:");
    for Shown { skill, description } in skills {
        // Writing to a text cannot fail.
        match level.of(description) {
            Some(shown) => write!(text, "\n- {}: {shown}", skill.name),
            None if text.ends_with(':') => write!(text, " {}", skill.name),
            None => write!(text, ", {}", skill.name),
        }
        .ok();
    }
    text
}

/// Counts by tag, and names as far as they fit.
fn counted(skills: &[Shown<'_>], most_bytes: usize) -> String {
    let mut text = format!("\n\n{} skills", skills.len());
    let tags = tag_counts(skills.iter().map(|shown| shown.skill));
    let tags: Vec<String> = tags.iter().take(CATALOG_TAGS).map(|(tag, count)| format!("{tag} {count}")).collect();
    if !tags.is_empty() {
        let list = format!(", by tag: {}", tags.join(", "));
        if text.len() + list.len() < most_bytes / 2 {
            text.push_str(&list);
        }
    }
    text.push_str(". Some of them:");
    // Room for the closing words.
    let most_bytes = most_bytes.saturating_sub(40);
    let mut n_shown = 0;
    for Shown { skill, .. } in skills {
        if text.len() + skill.name.as_str().len() + 2 > most_bytes {
            break;
        }
        text.push_str(if n_shown == 0 { " " } else { ", " });
        text.push_str(skill.name.as_str());
        n_shown += 1;
    }
    if n_shown == 0 {
        return String::new();
    }
    if n_shown < skills.len() {
        // Writing to a text cannot fail.
        write!(text, ", and {} more", skills.len() - n_shown).ok();
    }
    text
}

/// Every tag with the number of skills that have it, the most frequent first.
pub(super) fn tag_counts<'a>(skills: impl Iterator<Item = &'a CatalogSkill>) -> Vec<(&'a str, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for tag in skills.flat_map(|skill| &skill.tags) {
        *counts.entry(tag).or_default() += 1;
    }
    let mut tags: Vec<(&str, usize)> = counts.into_iter().collect();
    tags.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    tags
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
