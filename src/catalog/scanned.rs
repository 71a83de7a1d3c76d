//! The scan over what a snapshot offers: skills and tools' definitions, and tools that texts of others name. Must not know
//! what becomes of the findings.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use serde_json::Value;

use super::{
    registry::Registered,
    snapshot::{CatalogSkill, Snapshot},
};
use crate::{
    model::{
        diagnostic::{Diagnostic, Place, Severity},
        limits::REFERENCE_BYTES,
        name::UpstreamName,
    },
    scan::{Class, Found, Kind, Scanner},
    skill::{SKILL_FILE, Skill, SkillSet},
};

/// A name that is one word is a word of many texts.
const TELLING_NAME: usize = 8;
/// Findings of one text that are told.
const TOLD: usize = 20;

impl Snapshot {
    /// What the scan finds in what clients are given of a skill: its body, then its description. Notes are left out.
    pub fn suspicions(&self, skill: &CatalogSkill) -> Vec<Found> {
        let texts = [skill.body.as_str(), skill.description.as_str()];
        let found = texts.iter().flat_map(|text| self.scanner.scan(text, Kind::Skill));
        found.filter(|found| found.severity < Severity::Note).take(TOLD).collect()
    }

    /// What the scan finds in the definition of a tool; `names` are those of [`Snapshot::telling_names`].
    fn suspicions_of_tool<'a>(
        &self,
        tool: &Registered,
        names: &HashMap<&'a str, HashSet<&'a UpstreamName>>,
        own: &[&str],
    ) -> Vec<Found> {
        // Escaped or not.
        let decoded = serde_json::from_str::<Value>(&tool.tool.definition).ok().map(|value| texts(&value));
        let text = decoded.as_deref().unwrap_or(&tool.tool.definition);
        let mut found = self.scanner.scan(text, Kind::Tool);
        for (at, word) in words(&tool.tool.description) {
            let reason = if own.contains(&word) {
                format!("names `{word}`, which is a tool of gatekey")
            } else if names.get(word).is_some_and(|upstreams| !upstreams.contains(&tool.upstream)) {
                format!("names `{word}`, a tool of another upstream")
            } else {
                continue;
            };
            let (id, excerpt) = ("names-other-tools".to_owned(), word.to_owned());
            found.push(Found { id, class: Class::Shadowing, severity: Severity::Warning, reason, at, excerpt });
        }
        found
    }

    /// Names of tools that no text has by chance, with the upstreams that have such a tool.
    fn telling_names(&self) -> HashMap<&str, HashSet<&UpstreamName>> {
        let mut names: HashMap<&str, HashSet<&UpstreamName>> = HashMap::new();
        for tool in self.registry.tools() {
            for name in [tool.exposed.as_str(), tool.tool.name.as_str()].into_iter().filter(|name| is_telling(name)) {
                names.entry(name).or_default().insert(&tool.upstream);
            }
        }
        names
    }

    /// Findings in the definitions of tools; `own` are the names of our tools.
    pub fn scan_tools(&self, own: &[&str]) -> Vec<Diagnostic> {
        let names = self.telling_names();
        let of_tool = |tool: &Registered| {
            let subject = format!("the definition of `{}` of `{}`", tool.exposed, tool.upstream);
            let hint = "ask whoever wrote it, or leave the upstream out";
            let found = self.suspicions_of_tool(tool, &names, own);
            once_each(found).into_iter().map(|found| diagnostic(&found, &subject).hint(hint)).collect::<Vec<_>>()
        };
        self.registry.tools().iter().flat_map(of_tool).collect()
    }

    /// Skills that name tools which they do not open, and whose `allowed-tools` want more than their map gives.
    pub fn scan_wishes(&self) -> Vec<Diagnostic> {
        let names = self.telling_names();
        let mut found = Vec::new();
        for skill in self.skills.values().filter(|skill| skill.on_disk.is_some()) {
            let opened = |name: &str| {
                skill.tools.iter().any(|position| {
                    let tool = &self.registry.tools()[*position];
                    tool.exposed.as_str() == name || tool.tool.name.as_str() == name
                })
            };
            let place = || Place {
                file: skill.on_disk.as_ref().map(|disk| disk.file.clone()).unwrap_or_default(),
                ..Place::default()
            };
            let is_always = |name: &str| self.registry.position(name).is_some_and(|at| self.is_always_open(at));
            let mut named: Vec<&str> = words(&skill.body).map(|(_, word)| word).collect();
            named.retain(|word| names.contains_key(word) && !opened(word) && !is_always(word));
            named.sort_unstable();
            named.dedup();
            // What opens nothing for want of trust would open some of what it names.
            if !named.is_empty() && skill.rule.opens {
                let message = format!("`{}` names tools that it does not open: {}", skill.name, named.join(", "));
                found.push(Diagnostic::note("scan-shadowing", message).at(place()));
            }
            let allowed = skill.on_disk.as_ref().and_then(|disk| disk.allowed_tools.as_deref()).unwrap_or_default();
            let is_more = |entry: &&String| {
                let name = entry.rsplit(['/', '.']).next().unwrap_or(entry);
                let name = name.rsplit("__").next().unwrap_or(name);
                names.contains_key(name) && !opened(name)
            };
            let more: Vec<&str> = allowed.iter().filter(is_more).map(String::as_str).collect();
            if !more.is_empty() {
                let message =
                    format!("`allowed-tools` of `{}` wants more than it opens: {}", skill.name, more.join(", "));
                found.push(
                    Diagnostic::warning("scan-wants-more", message)
                        .at(place())
                        .hint("`allowed-tools` opens nothing; a gating map does"),
                );
            }
        }
        found
    }
}

/// Findings in all files of a skill, each with its file's path below the skill's folder and line.
pub fn scan_files(skill: &Skill, scanner: &Scanner) -> Vec<(String, usize, Found)> {
    let mut all = Vec::new();
    let files = std::iter::once(SKILL_FILE).chain(skill.references.iter().map(String::as_str));
    for path in files {
        let file = if path == SKILL_FILE { skill.file.clone() } else { skill.folder.join(path) };
        let is_small = std::fs::metadata(&file).is_ok_and(|data| data.len() <= REFERENCE_BYTES);
        let Some(text) = is_small.then(|| std::fs::read_to_string(&file).ok()).flatten() else { continue };
        for found in once_each(scanner.scan(&text, Kind::Skill)) {
            all.push((path.to_owned(), line_of(&text, found.at).0, found));
        }
    }
    all
}

/// Findings in the files of skills, with places.
pub fn scan_skills(set: &SkillSet, scanner: &Scanner) -> Vec<Diagnostic> {
    let of_skill = |(file, skill): (&Path, &Skill)| {
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        let name = skill.name.clone();
        let found = scan_files(skill, scanner).into_iter().map(move |(path, line, found)| {
            let file = if path == SKILL_FILE { file.to_owned() } else { folder.join(path) };
            let column = std::fs::read_to_string(&file).map_or(1, |text| line_of(&text, found.at).1);
            diagnostic(&found, &format!("`{name}`"))
                .at(Place { file, line, column })
                .hint("remove it unless you know what it is for")
        });
        found.collect::<Vec<_>>()
    };
    set.reached().flat_map(of_skill).collect()
}

/// As a finding for people; what it is about is named first.
fn diagnostic(found: &Found, subject: &str) -> Diagnostic {
    let message = format!("{subject}: {} (`{}`: {})", found.reason, found.id, found.excerpt);
    Diagnostic { severity: found.severity, ..Diagnostic::error(found.class.code(), message) }
}

/// The first of each pattern.
fn once_each(found: Vec<Found>) -> Vec<Found> {
    let mut seen = HashSet::new();
    found.into_iter().filter(|found| seen.insert((found.id.clone(), found.reason.clone()))).collect()
}

/// Line and column, from 1.
fn line_of(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or_default();
    (before.matches('\n').count() + 1, before.rsplit('\n').next().unwrap_or_default().chars().count() + 1)
}

fn is_telling(name: &str) -> bool {
    name.len() >= TELLING_NAME && name.contains(['_', '-', '.'])
}

/// Words as names of tools are written, with their places in bytes.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive(|c: char| !is_of_name(c)).filter_map(move |part| {
        let start = at;
        at += part.len();
        let word = part.trim_end_matches(|c: char| !is_of_name(c)).trim_end_matches('.');
        (!word.is_empty()).then_some((start, word))
    })
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Every text in a value, one a line.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(texts).collect::<Vec<_>>().join("\n"),
        Value::Object(members) => {
            members.iter().map(|(name, value)| format!("{name}\n{}", texts(value))).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_names_and_values_at_any_depth() {
        let value = serde_json::json!({"a": ["b", {"c": "d"}], "e": 1});
        assert_eq!(texts(&value).split_whitespace().collect::<String>(), "abcde");
    }

    #[test]
    fn words_are_names_of_tools_with_their_places() {
        let found: Vec<_> = words("Use `git_status`, then a-b.").collect();
        assert_eq!(found, [(0, "Use"), (5, "git_status"), (18, "then"), (23, "a-b")]);
    }
}
