//! What is wrong with an input file or an upstream, collected instead of thrown. Owns the list of stable codes.

use std::{fmt, path::PathBuf};

use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file or the part cannot be used.
    Error,
    /// It is used, but hardly as meant.
    Warning,
    /// Worth knowing.
    Note,
}

/// A place in an input file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Place {
    /// As the user named it.
    pub file: PathBuf,
    /// From 1; 0 where the whole file is meant.
    pub line: usize,
    /// From 1, in characters; 0 where the whole line is meant.
    pub column: usize,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Diagnostic {
    /// Errors sort first.
    pub severity: Severity,
    /// Where, if in a file.
    pub at: Option<Place>,
    /// Stable, `area-what`.
    pub code: &'static str,
    /// A fragment without a full stop.
    pub message: String,
    /// What to do next, one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Diagnostic {
    /// Makes an error.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, at: None, code, message: message.into(), hint: None }
    }

    /// Makes a warning.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message) }
    }

    /// Makes a note.
    pub fn note(code: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::error(code, message) }
    }

    /// Says where.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.at = Some(place);
        self
    }

    /// Says what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether the part cannot be used.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if self.column > 0 {
            write!(f, ":{}", self.column)?;
        }
        Ok(())
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.at {
            write!(f, "{place}: ")?;
        }
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        write!(f, "{severity}[{}]: {}", self.code, self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

/// Every code there is, sorted. A code, once shipped, keeps its meaning.
pub const CODES: &[&str] = &[
    "auth-nobody",
    "auth-unusable",
    "budget-skill",
    "budget-start",
    "client-name-long",
    "client-tools-many",
    "config-invalid",
    "config-newer",
    "config-restart",
    "config-syntax",
    "config-value",
    "config-variable",
    "gate-boundary",
    "gate-dead-prefix",
    "gate-skill-unmapped",
    "gate-uncovered-tool",
    "gate-unknown-skill",
    "gate-unknown-upstream",
    "hidden-character",
    "lint-body-empty",
    "lint-body-no-heading",
    "lint-description-generic",
    "lint-description-short",
    "lint-name-generic",
    "lint-near-duplicate",
    "lint-trigger-late",
    "lint-trigger-missing",
    "lock-changed",
    "lock-gone",
    "lock-missing",
    "lock-new",
    "lock-unreadable",
    "map-opens",
    "name-clash",
    "name-imitates",
    "name-rewritten",
    "rule-dead",
    "sandbox-unavailable",
    "scan-authority",
    "scan-concealment",
    "scan-download",
    "scan-encoded",
    "scan-exfiltration",
    "scan-injection",
    "scan-live-execution",
    "scan-own",
    "scan-patterns",
    "scan-secret",
    "scan-shadowing",
    "scan-wants-more",
    "skill-binary",
    "skill-control-character",
    "skill-description-cut",
    "skill-description-missing",
    "skill-duplicate",
    "skill-encoding",
    "skill-extra-member",
    "skill-file-case",
    "skill-frontmatter-invalid",
    "skill-frontmatter-missing",
    "skill-frontmatter-quoted",
    "skill-frontmatter-unclosed",
    "skill-link-dangling",
    "skill-member-type",
    "skill-name-differs",
    "skill-name-invalid",
    "skill-name-missing",
    "skill-of-upstream",
    "skill-renamed",
    "skill-too-deep",
    "skill-too-large",
    "skill-too-many",
    "skills-folder",
    "tool-dropped",
    "tool-list-cut",
    "tool-repaired",
    "trust-key",
    "trust-signature",
    "trust-unreadable",
    "upstream-unreachable",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_and_unique() {
        assert!(CODES.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_finding_reads_as_place_severity_code_message_hint() {
        let place = Place { file: "gatekey.toml".into(), line: 3, column: 7 };
        let finding =
            Diagnostic::warning("gate-dead-prefix", "prefix `x_` matches no tool").at(place).hint("remove it");
        insta::assert_snapshot!(finding, @r"
        gatekey.toml:3:7: warning[gate-dead-prefix]: prefix `x_` matches no tool
          hint: remove it
        ");
    }
}
