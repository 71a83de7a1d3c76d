//! How far a text is trusted, and what that allows. Must not know how trust is come by.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::diagnostic::Severity;

/// How far a skill is trusted; more sorts higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Somebody's, whom nobody vouches for: of a repository, imported.
    Untrusted,
    /// The user's own, or approved by the user as it is.
    User,
    /// Signed by a key of the config, and as it was signed.
    Verified,
    /// Named in the config.
    Trusted,
}

impl Trust {
    /// The word that clients and people are shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "UNTRUSTED",
            Self::User => "USER",
            Self::Verified => "VERIFIED",
            Self::Trusted => "TRUSTED",
        }
    }
}

impl std::fmt::Display for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A folder with skills, and how far they are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFolder {
    /// As the config names it, joined to the config's folder.
    pub path: PathBuf,
    /// Of its skills, as long as nobody vouches for them.
    pub trust: Trust,
}

impl From<PathBuf> for SkillFolder {
    fn from(path: PathBuf) -> Self {
        Self { path, trust: Trust::Trusted }
    }
}

/// What becomes of a request for a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LoadRule {
    /// It is loaded.
    Allow,
    /// The user is asked, where the client can ask; else it is refused.
    Ask,
    /// It is refused.
    Refuse,
}

/// What skills of one level of trust may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrustRule {
    /// Whether they are in the catalogue and found by search; others are loaded by name.
    pub is_listed: bool,
    /// What becomes of a request for one.
    pub load: LoadRule,
    /// Whether they open the tools that the gating map gives them.
    pub opens: bool,
    /// From which finding of the scan on a text is withheld; `None` is never.
    pub withhold: Option<Severity>,
}

/// The rules of all levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrustRules {
    /// Of [`Trust::Trusted`].
    pub trusted: TrustRule,
    /// Of [`Trust::Verified`].
    pub verified: TrustRule,
    /// Of [`Trust::User`].
    pub user: TrustRule,
    /// Of [`Trust::Untrusted`].
    pub untrusted: TrustRule,
}

impl TrustRules {
    /// The rule for skills of this trust.
    pub fn of(&self, trust: Trust) -> TrustRule {
        match trust {
            Trust::Trusted => self.trusted,
            Trust::Verified => self.verified,
            Trust::User => self.user,
            Trust::Untrusted => self.untrusted,
        }
    }
}

impl Default for TrustRules {
    fn default() -> Self {
        let free = TrustRule { is_listed: true, load: LoadRule::Allow, opens: true, withhold: None };
        // Even a description is a text that every model reads at once.
        let untrusted =
            TrustRule { is_listed: false, load: LoadRule::Ask, opens: false, withhold: Some(Severity::Error) };
        Self { trusted: free, verified: free, user: free, untrusted }
    }
}
