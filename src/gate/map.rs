//! Gating maps: skill → tools, by prefixes of exposed names. Must not know which tools there are.

use std::{fmt, path::Path, sync::LazyLock};

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::model::{
    diagnostic::{Diagnostic, Place},
    name::{SkillName, UpstreamName},
    source::{Source, check_version, escaped},
};

/// The newest `version` of a map that is read.
const VERSION: u64 = 1;

/// Which tools open with which skill.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawMap {
    /// Version of this format: 1.
    #[schemars(range(min = 1))]
    #[expect(dead_code, reason = "read before the rest, to refuse a newer file by name")]
    version: u64,
    /// Skill that is always active; its body is shown with the catalogue.
    core_skill: Option<String>,
    /// Tools that are always open: a prefix, `=name`, `*`, each also as `upstream:…`.
    #[serde(default)]
    always: Vec<String>,
    /// Tools by skill, written as in `always`.
    #[serde(default)]
    skills: IndexMap<String, Vec<String>>,
}

/// What one entry of a map says about exposed names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern {
    /// Only tools of this upstream, where it is given.
    pub upstream: Option<UpstreamName>,
    /// What the exposed name must be.
    pub name: NamePattern,
}

/// What an exposed name must be.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NamePattern {
    /// Anything.
    Any,
    /// Starts with this.
    Prefix(String),
    /// Is this.
    Exact(String),
}

/// An entry with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it opens.
    pub pattern: Pattern,
    /// Where it stands.
    pub at: Place,
}

/// One or more maps, checked and joined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GatingMap {
    /// Always active.
    pub core_skill: Option<(SkillName, Place)>,
    /// Always open.
    pub always: Vec<Entry>,
    /// By skill, in the files' order, with the place of the skill's name.
    pub skills: IndexMap<SkillName, (Place, Vec<Entry>)>,
}

impl Pattern {
    /// Everything of one upstream.
    pub fn all_of(upstream: &UpstreamName) -> Self {
        Self { upstream: Some(upstream.clone()), name: NamePattern::Any }
    }

    /// Whether it opens the tool of `upstream` that is exposed as `exposed`.
    pub fn matches(&self, upstream: &UpstreamName, exposed: &str) -> bool {
        self.upstream.as_ref().is_none_or(|wanted| wanted == upstream)
            && match &self.name {
                NamePattern::Any => true,
                NamePattern::Prefix(prefix) => exposed.starts_with(prefix.as_str()),
                NamePattern::Exact(name) => exposed == name,
            }
    }

    /// Whether it opens this tool by breaking off in the middle of a word, as `store` does with `storefront_get`.
    pub fn splits_word(&self, exposed: &str) -> bool {
        let NamePattern::Prefix(prefix) = &self.name else { return false };
        let last = prefix.chars().last();
        let next = exposed.strip_prefix(prefix.as_str()).and_then(|rest| rest.chars().next());
        last.is_some_and(char::is_alphanumeric)
            && next.is_some_and(|c| c.is_alphanumeric() && !(c.is_uppercase() && last.is_some_and(char::is_lowercase)))
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        // Exposed names have no colon, so the last one ends the upstream's name.
        let (upstream, name) = text.rsplit_once(':').map_or((None, text), |(upstream, name)| (Some(upstream), name));
        if upstream.is_some_and(str::is_empty) {
            return Err("no upstream stands before the colon");
        }
        let name = match name.strip_prefix('=') {
            Some("") => return Err("no name stands behind `=`"),
            Some(exact) => NamePattern::Exact(exact.into()),
            None if name == "*" => NamePattern::Any,
            None if name.is_empty() => return Err("an empty prefix would open everything; write `*` if you mean it"),
            None => NamePattern::Prefix(name.into()),
        };
        let text = match &name {
            NamePattern::Prefix(text) | NamePattern::Exact(text) => text,
            NamePattern::Any => "x",
        };
        if !text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
            return Err("exposed names have only letters, digits, `_` and `-`; `*` stands alone");
        }
        Ok(Self { upstream: upstream.map(UpstreamName::new), name })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(upstream) = &self.upstream {
            write!(f, "{upstream}:")?;
        }
        match &self.name {
            NamePattern::Any => f.write_str("*"),
            NamePattern::Prefix(prefix) => f.write_str(prefix),
            NamePattern::Exact(name) => write!(f, "={name}"),
        }
    }
}

/// The JSON Schema of a gating map.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| schemars::schema_for!(RawMap).to_value());
    &SCHEMA
}

impl GatingMap {
    /// Reads one map's text and joins it to this one.
    ///
    /// # Errors
    /// Every finding of the file, in its order; this map is unchanged then.
    pub fn join(&mut self, file: &Path, text: String) -> Result<(), Vec<Diagnostic>> {
        let source = Source::from_toml(file, text)?;
        if let Some(newer) = check_version(&source, VERSION) {
            return Err(vec![newer]);
        }
        let mut findings = source.validate(schema());
        if !findings.is_empty() {
            return Err(findings);
        }
        let raw: RawMap = serde_json::from_value(source.value.clone())
            .map_err(|error| vec![Diagnostic::error("config-invalid", error.to_string()).at(source.place(""))])?;
        let mut entries = |texts: &[String], pointer: &str| -> Vec<Entry> {
            let place = |index: usize| source.place(&format!("{pointer}/{index}"));
            let parsed = texts.iter().enumerate().filter_map(|(index, text)| match Pattern::parse(text) {
                Ok(pattern) => Some(Entry { pattern, at: place(index) }),
                Err(reason) => {
                    findings
                        .push(Diagnostic::error("config-value", format!("entry `{text}`: {reason}")).at(place(index)));
                    None
                }
            });
            parsed.collect()
        };
        let always = entries(&raw.always, "/always");
        let skills: Vec<(SkillName, Place, Vec<Entry>)> = raw
            .skills
            .iter()
            .map(|(name, texts)| {
                let pointer = format!("/skills/{}", escaped(name));
                (SkillName::new(name.as_str()), source.place(&pointer), entries(texts, &pointer))
            })
            .collect();
        let core = raw.core_skill.map(|name| (SkillName::new(name), source.place("/core-skill")));
        if let (Some((first, _)), Some((second, at))) = (&self.core_skill, &core)
            && first != second
        {
            let message = format!("`{first}` is already the core skill, of another map");
            findings.push(Diagnostic::error("config-value", message).at(at.clone()));
        }
        if !findings.is_empty() {
            findings.sort_by(|a, b| a.at.cmp(&b.at));
            return Err(findings);
        }
        self.core_skill = self.core_skill.take().or(core);
        self.always.extend(always);
        for (name, at, entries) in skills {
            self.skills.entry(name).or_insert_with(|| (at, Vec::new())).1.extend(entries);
        }
        Ok(())
    }

    /// Every entry there is.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.always.iter().chain(self.skills.values().flat_map(|(_, entries)| entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> Result<GatingMap, String> {
        let mut map = GatingMap::default();
        match map.join(Path::new("m.toml"), text.into()) {
            Ok(()) => Ok(map),
            Err(found) => Err(found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
        }
    }

    #[test]
    fn an_entry_is_a_prefix_an_exact_name_or_everything_of_all_or_one_upstream() {
        let upstream = UpstreamName::new("a:b");
        for (entry, name, is_match) in [
            ("store_", "store_list", true),
            ("store_", "storefront", false),
            ("=delete", "delete", true),
            ("=delete", "delete_all", false),
            ("*", "anything", true),
            ("a:b:x_", "x_1", true),
            ("other:x_", "x_1", false),
            ("a:b:*", "y", true),
            ("a:b:=y", "y", true),
        ] {
            assert_eq!(Pattern::parse(entry).unwrap().matches(&upstream, name), is_match, "{entry} {name}");
            assert_eq!(Pattern::parse(entry).unwrap().to_string(), entry);
        }
        for entry in ["", "=", ":x", "a:", "st*", "a b"] {
            assert!(Pattern::parse(entry).is_err(), "{entry}");
        }
    }

    #[test]
    fn a_prefix_that_ends_within_a_word_is_told_from_one_that_ends_with_it() {
        for (entry, name, splits) in [
            ("store", "storefront_get", true),
            ("store", "store_get", false),
            ("store_", "store_get", false),
            ("store", "storeGet", false),
            ("store", "store2", true),
            ("=store", "store", false),
        ] {
            assert_eq!(Pattern::parse(entry).unwrap().splits_word(name), splits, "{entry} {name}");
        }
    }

    #[test]
    fn all_findings_of_a_map_come_at_once() {
        insta::assert_snapshot!(map("version = 1\nalways = [\"\", \"a b\"]\n[skills]\nx = [\"=\"]\n").unwrap_err(), @r"
        m.toml:2:11: error[config-value]: entry ``: an empty prefix would open everything; write `*` if you mean it
        m.toml:2:15: error[config-value]: entry `a b`: exposed names have only letters, digits, `_` and `-`; `*` stands alone
        m.toml:4:6: error[config-value]: entry `=`: no name stands behind `=`
        ");
        insta::assert_snapshot!(map("version = 1\nskils = {}\n").unwrap_err(), @r"
        m.toml:2:1: error[config-invalid]: unknown member `skils`
          hint: did you mean `skills`?
        ");
    }

    #[test]
    fn findings_stand_in_the_files_order_however_it_is_ordered() {
        insta::assert_snapshot!(map("version = 1\nskills.x = [\"=\"]\nalways = [\"\"]\n").unwrap_err(), @r"
        m.toml:2:13: error[config-value]: entry `=`: no name stands behind `=`
        m.toml:3:11: error[config-value]: entry ``: an empty prefix would open everything; write `*` if you mean it
        ");
    }

    #[test]
    fn maps_are_joined_and_name_one_core_skill() {
        let mut joined = map("version = 1\ncore-skill = \"c\"\n[skills]\nx = [\"a_\"]\n").unwrap();
        joined.join(Path::new("n.toml"), "version = 1\n[skills]\nx = [\"b_\"]\ny = []\n".into()).unwrap();
        let shown: Vec<String> = joined.skills["x"].1.iter().map(|entry| entry.pattern.to_string()).collect();
        assert_eq!(shown, ["a_", "b_"]);
        assert!(joined.join(Path::new("o.toml"), "version = 1\ncore-skill = \"d\"\n".into()).is_err());
        assert_eq!(joined.skills.len(), 2);
    }
}
