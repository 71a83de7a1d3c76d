//! The skills that the user approved, each as it was: a file of the user's that no config and no repository can name.

use std::{collections::BTreeMap, fs, io, path::Path};

use serde::{Deserialize, Serialize};

/// The newest version of the file.
const VERSION: u32 = 1;

/// The file as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approvals {
    version: u32,
    /// By [`crate::skill::Skill::set_digest`].
    approved: BTreeMap<String, Approval>,
}

/// One skill that was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// Its name.
    pub skill: String,
    /// Where it was then.
    pub folder: String,
    /// When, RFC 3339.
    pub at: String,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalsError {
    /// As the system says.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is damaged.
    #[error("{0}")]
    Syntax(#[from] serde_json::Error),
    /// It is of a later gatekey.
    #[error("it has version {0}, and this gatekey knows up to {VERSION}")]
    Newer(u32),
}

impl Approvals {
    /// Reads the file; nothing is approved where there is none.
    ///
    /// # Errors
    /// See [`ApprovalsError`].
    pub fn read(file: &Path) -> Result<Self, ApprovalsError> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error.into()),
        };
        let read: Self = serde_json::from_str(&text)?;
        if read.version > VERSION { Err(ApprovalsError::Newer(read.version)) } else { Ok(read) }
    }

    /// As it stands in the file.
    ///
    /// # Errors
    /// None that is known.
    pub fn to_text(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(&Self { version: VERSION, ..self.clone() })? + "\n")
    }

    /// Whether the skill with these files is approved.
    pub fn has(&self, set_digest: &str) -> bool {
        self.approved.contains_key(set_digest)
    }

    /// Whether a skill of this name and folder is approved, in whatever version.
    pub fn knows(&self, skill: &str, folder: &str) -> bool {
        self.approved.values().any(|approval| approval.skill == skill && approval.folder == folder)
    }

    /// Approves a version of a skill, in place of others of the same folder.
    pub fn add(&mut self, set_digest: String, approval: Approval) {
        self.remove(&approval.skill, &approval.folder);
        self.approved.insert(set_digest, approval);
    }

    /// Takes back what was approved of a skill; says whether there was anything.
    pub fn remove(&mut self, skill: &str, folder: &str) -> bool {
        let n_before = self.approved.len();
        self.approved.retain(|_, known| known.skill != skill || known.folder != folder);
        self.approved.len() < n_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_is_of_one_version_and_takes_the_place_of_the_one_before() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("approved.json");
        let mut approvals = Approvals::read(&file).unwrap();
        let approval = |folder: &str| Approval { skill: "a".into(), folder: folder.into(), at: "now".into() };
        approvals.add("1".into(), approval("/x"));
        approvals.add("2".into(), approval("/y"));
        approvals.add("3".into(), approval("/x"));
        fs::write(&file, approvals.to_text().unwrap()).unwrap();
        let mut read = Approvals::read(&file).unwrap();
        assert_eq!(["1", "2", "3"].map(|digest| read.has(digest)), [false, true, true]);
        assert!(read.remove("a", "/y") && !read.remove("a", "/y") && !read.has("2"));
        fs::write(&file, r#"{"version":2,"approved":{}}"#).unwrap();
        assert!(matches!(Approvals::read(&file), Err(ApprovalsError::Newer(2))));
    }
}
