//! What `gatekey.toml` says of trust, as its author writes it: folders of skills, and what skills may do.

use std::{borrow::Cow, path::Path};

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::model::{
    diagnostic::Severity,
    trust::{LoadRule, SkillFolder, Trust, TrustRule, TrustRules},
};

/// A folder with skills: a path, or a table.
#[derive(Debug)]
pub(super) struct RawSkillFolder {
    pub(super) path: String,
    pub(super) trust: Option<Trust>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawSkillTable {
    /// Relative to this file.
    path: String,
    /// How far its skills are trusted: `trusted`, `user`, or `untrusted` until the user approves them
    /// (`gatekey skills trust`). Default: trusted.
    #[serde(default)]
    #[schemars(with = "Trust")]
    trust: Option<Trust>,
}

impl<'de> Deserialize<'de> for RawSkillFolder {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(path) => Ok(Self { path, trust: None }),
            table => RawSkillTable::deserialize(table)
                .map(|RawSkillTable { path, trust }| Self { path, trust })
                .map_err(serde::de::Error::custom),
        }
    }
}

// One schema for both, as "none of these fits" would not say what is wrong with a table.
impl JsonSchema for RawSkillFolder {
    fn schema_name() -> Cow<'static, str> {
        "SkillFolder".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = RawSkillTable::json_schema(generator);
        schema.insert("type".into(), json!(["string", "object"]));
        schema
    }
}

/// What skills and tools' definitions are looked through for.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RawScan {
    /// Files of patterns of your own, relative to this file; `gatekey scan --patterns` shows the form.
    #[serde(default)]
    pub(super) patterns: Vec<String>,
    /// Ids of patterns that are left out.
    #[serde(default)]
    pub(super) ignore: Vec<String>,
}

/// What skills may do by how far they are trusted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RawTrust {
    /// Public keys of minisign by names of your choice: a skill that is signed by one of them, and as it was signed, is
    /// verified.
    #[serde(default)]
    pub(super) keys: IndexMap<String, String>,
    /// Skills of folders that this config names.
    #[serde(default)]
    pub(super) trusted: RawTrustRule,
    /// Signed ones.
    #[serde(default)]
    pub(super) verified: RawTrustRule,
    /// The user's own, and those that the user approved.
    #[serde(default)]
    pub(super) user: RawTrustRule,
    /// All others.
    #[serde(default)]
    pub(super) untrusted: RawTrustRule,
}

/// What skills of one level of trust may do.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RawTrustRule {
    /// Whether they are in the catalogue and found by search. Default: all but untrusted ones are.
    pub(super) list: Option<bool>,
    /// Whether they are loaded: `allow`, `ask` (the user, where the client can; else they are refused) or `refuse`. Default:
    /// `allow`, untrusted ones `ask`.
    #[serde(default)]
    #[schemars(with = "LoadRule")]
    pub(super) load: Option<LoadRule>,
    /// Whether they open the tools that the gating map gives them. Default: all but untrusted ones do.
    pub(super) opens: Option<bool>,
    /// From which finding of the scan on their text is withheld: `never`, `error`, `warning` or `note`. Default: `never`,
    /// of untrusted ones `error`.
    #[serde(default)]
    #[schemars(with = "Withhold")]
    pub(super) withhold: Option<Withhold>,
}

/// From which finding on a text is withheld.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Withhold {
    /// It is not.
    Never,
    /// One that is hardly ever meant well.
    Error,
    /// One that often is not meant well.
    Warning,
    /// Any.
    Note,
}

impl RawSkillFolder {
    /// With what the file leaves out; a path starts at `folder`.
    pub(super) fn checked(self, folder: &Path) -> SkillFolder {
        SkillFolder { path: folder.join(self.path), trust: self.trust.unwrap_or(Trust::Trusted) }
    }
}

impl RawTrust {
    /// With what the file leaves out.
    pub(super) fn rules(&self) -> TrustRules {
        let usual = TrustRules::default();
        TrustRules {
            trusted: self.trusted.over(usual.trusted),
            verified: self.verified.over(usual.verified),
            user: self.user.over(usual.user),
            untrusted: self.untrusted.over(usual.untrusted),
        }
    }
}

impl RawTrustRule {
    fn over(&self, usual: TrustRule) -> TrustRule {
        TrustRule {
            is_listed: self.list.unwrap_or(usual.is_listed),
            load: self.load.unwrap_or(usual.load),
            opens: self.opens.unwrap_or(usual.opens),
            withhold: self.withhold.map_or(usual.withhold, |withhold| match withhold {
                Withhold::Never => None,
                Withhold::Error => Some(Severity::Error),
                Withhold::Warning => Some(Severity::Warning),
                Withhold::Note => Some(Severity::Note),
            }),
        }
    }
}
