//! The patterns of the scan, as they stand in `patterns.toml` and in users' own files of the same form.

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use crate::model::diagnostic::Severity;

/// The patterns that come with the program.
pub(super) const EMBEDDED: &str = include_str!("patterns.toml");
/// Bytes that one compiled expression may take.
const EXPRESSION_BYTES: usize = 4 << 20;

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Orders to the model that are not its user's.
    Injection,
    /// Something is to be kept from the user.
    Concealment,
    /// The text claims to come from somebody else.
    Authority,
    /// Clients may run it.
    LiveExecution,
    /// Something is fetched and run.
    Download,
    /// Nobody can read it.
    Encoded,
    /// Data go somewhere.
    Exfiltration,
    /// A secret that should not be there.
    Secret,
    /// Characters that nobody sees, or that look like others.
    Hidden,
    /// Tools of others are named.
    Shadowing,
    /// A pattern of the user's own.
    Own,
}

impl Class {
    /// The code of findings.
    pub fn code(self) -> &'static str {
        match self {
            Self::Injection => "scan-injection",
            Self::Concealment => "scan-concealment",
            Self::Authority => "scan-authority",
            Self::LiveExecution => "scan-live-execution",
            Self::Download => "scan-download",
            Self::Encoded => "scan-encoded",
            Self::Exfiltration => "scan-exfiltration",
            Self::Secret => "scan-secret",
            Self::Hidden => "hidden-character",
            Self::Shadowing => "scan-shadowing",
            Self::Own => "scan-own",
        }
    }
}

/// What is looked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// SKILL.md, or another file of a skill.
    Skill,
    /// The texts of a tool's definition.
    Tool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Where {
    Skill,
    Tool,
    Both,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    id: String,
    #[serde(default = "own")]
    class: Class,
    severity: RawSeverity,
    #[serde(rename = "where")]
    of: Where,
    reason: String,
    #[serde(default)]
    source: String,
    pattern: String,
    unless: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawSeverity {
    Error,
    Warning,
    Note,
}

fn own() -> Class {
    Class::Own
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    pattern: Vec<Raw>,
}

/// One pattern.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    pub(super) id: String,
    pub(super) class: Class,
    pub(super) severity: Severity,
    pub(super) reason: String,
    pub(super) source: String,
    pub(super) regex: Regex,
    pub(super) unless: Option<Regex>,
    of: Where,
}

/// Why a file of patterns cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// It is no file of patterns.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// An expression is none.
    #[error("`{id}`: {source}")]
    Expression {
        /// Whose.
        id: String,
        /// Why.
        source: regex::Error,
    },
}

impl Pattern {
    pub(super) fn is_for(&self, kind: Kind) -> bool {
        match self.of {
            Where::Both => true,
            Where::Skill => kind == Kind::Skill,
            Where::Tool => kind == Kind::Tool,
        }
    }
}

/// Compiles one expression.
fn compiled(id: &str, text: &str) -> Result<Regex, PatternError> {
    // Over bytes: what is looked for is ASCII, and automata that know all of Unicode are many times slower.
    let built = RegexBuilder::new(text).unicode(false).size_limit(EXPRESSION_BYTES).build();
    built.map_err(|source| PatternError::Expression { id: id.to_owned(), source })
}

/// Reads a file of patterns.
pub(super) fn parse(text: &str) -> Result<Vec<Pattern>, PatternError> {
    let file: File = toml::from_str(text)?;
    let pattern = |raw: Raw| {
        Ok(Pattern {
            regex: compiled(&raw.id, &raw.pattern)?,
            unless: raw.unless.as_deref().map(|text| compiled(&raw.id, text)).transpose()?,
            id: raw.id,
            class: raw.class,
            severity: match raw.severity {
                RawSeverity::Error => Severity::Error,
                RawSeverity::Warning => Severity::Warning,
                RawSeverity::Note => Severity::Note,
            },
            reason: raw.reason,
            source: raw.source,
            of: raw.of,
        })
    };
    file.pattern.into_iter().map(pattern).collect()
}
