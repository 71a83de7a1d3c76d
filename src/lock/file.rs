//! The file `gatekey.lock`: what it holds, read and written. Sorted by name and with a line for each member, so that a review
//! of it shows what changed and nothing else.

use std::{collections::BTreeMap, fs, io, path::Path, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::text::{canonical, compact, pretty};
use crate::{
    model::{
        name::{SkillName, UpstreamName},
        tool::Tool,
    },
    skill::Skill,
};

/// The newest version of the file that is read, and the one that is written.
const VERSION: u32 = 1;

/// What was recorded.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Lock {
    /// The servers.
    pub upstreams: BTreeMap<UpstreamName, LockedUpstream>,
    /// Of each skill the files, with their digests.
    pub skills: BTreeMap<SkillName, BTreeMap<String, String>>,
}

/// A server as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedUpstream {
    /// When it was recorded like this, RFC 3339.
    pub recorded: String,
    /// Its command without folder and arguments, or its URL without a query: these are another on each machine, or secret.
    pub reached_by: String,
    /// Its title or name, and its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// For models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// By its own names.
    pub tools: BTreeMap<String, LockedTool>,
}

/// A tool as it was.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LockedTool {
    /// `sha256:` and 64 hexadecimal digits, of the definition without blanks and with its members sorted.
    pub digest: String,
    /// JSON.
    definition: Box<RawValue>,
}

/// Why a lock file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// It is not there, or cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no lock file, or damaged.
    #[error("{0}")]
    Syntax(#[from] serde_json::Error),
    /// It is of a later gatekey.
    #[error("it has version {0}, and this gatekey knows up to {VERSION}")]
    Newer(u32),
}

#[derive(Serialize, Deserialize)]
struct Raw {
    version: u32,
    #[serde(default)]
    upstreams: BTreeMap<String, LockedUpstream>,
    #[serde(default)]
    skills: BTreeMap<String, BTreeMap<String, String>>,
}

impl PartialEq for LockedTool {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for LockedTool {}

impl LockedTool {
    /// Records a definition.
    ///
    /// # Errors
    /// It is no JSON.
    pub fn of(definition: &str) -> serde_json::Result<Self> {
        Ok(Self { digest: digest(definition), definition: serde_json::from_str(&compact(definition))? })
    }

    /// The digest of a definition, as it is recorded.
    pub fn digest_of(definition: &str) -> String {
        digest(definition)
    }

    /// JSON, without blanks between its parts.
    pub fn definition(&self) -> &str {
        self.definition.get()
    }
}

impl LockedUpstream {
    /// Records what a server offers now.
    ///
    /// # Errors
    /// A definition is no JSON.
    pub fn of<'a>(
        recorded: String,
        reached_by: String,
        (server, instructions): (Option<String>, Option<String>),
        tools: impl IntoIterator<Item = &'a Arc<Tool>>,
    ) -> serde_json::Result<Self> {
        let locked = |tool: &Arc<Tool>| Ok((tool.name.to_string(), LockedTool::of(&tool.definition)?));
        let tools = tools.into_iter().map(locked).collect::<serde_json::Result<_>>()?;
        Ok(Self { recorded, reached_by, server, instructions, tools })
    }
}

impl Lock {
    /// Reads a file.
    ///
    /// # Errors
    /// See [`LockError`].
    pub fn read(file: &Path) -> Result<Self, LockError> {
        Self::parse(&fs::read_to_string(file)?)
    }

    fn parse(text: &str) -> Result<Self, LockError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let Versioned { version } = serde_json::from_str(text)?;
        if version > VERSION {
            return Err(LockError::Newer(version));
        }
        let raw: Raw = serde_json::from_str(text)?;
        let mut lock = Self::default();
        for (name, mut upstream) in raw.upstreams {
            // Whoever changes a definition by hand has recorded another one, whatever its digest says.
            for locked in upstream.tools.values_mut() {
                *locked = LockedTool::of(locked.definition())?;
            }
            lock.upstreams.insert(UpstreamName::new(name), upstream);
        }
        lock.skills = raw.skills.into_iter().map(|(name, files)| (SkillName::new(name), files)).collect();
        Ok(lock)
    }

    /// As it stands in a file.
    ///
    /// # Errors
    /// None that is known.
    pub fn to_text(&self) -> serde_json::Result<String> {
        let raw = Raw {
            version: VERSION,
            upstreams: self.upstreams.iter().map(|(name, upstream)| (name.to_string(), upstream.clone())).collect(),
            skills: self.skills.iter().map(|(name, files)| (name.to_string(), files.clone())).collect(),
        };
        Ok(pretty(&serde_json::to_string(&raw)?) + "\n")
    }

    /// The files of a skill that is on disk, with their digests.
    pub fn files_of(skill: &Skill) -> BTreeMap<String, String> {
        skill.manifest().iter().map(|file| (file.path.clone(), format!("sha256:{}", file.digest))).collect()
    }
}

fn digest(definition: &str) -> String {
    let digest = Sha256::digest(canonical(definition));
    format!("sha256:{}", digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}
