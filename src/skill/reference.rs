//! Reading one file of a skill: a listed one, inside its folder, through no link.

use std::io;

use super::{folder::Skill, inside::read_inside};
use crate::model::limits::REFERENCE_BYTES;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// Not one of the skill's files. Whether it exists elsewhere is nobody's business.
    #[error("the skill has no file `{0}`")]
    NotListed(String),
    /// Its bytes are others than when the skill was looked at.
    #[error("`{0}` has changed since the skill was looked at")]
    Changed(String),
    /// Over the limit.
    #[error("`{0}` has more than {REFERENCE_BYTES} bytes")]
    TooLarge(String),
    /// It was there when the skill was read.
    #[error("`{path}` cannot be read")]
    Unreadable {
        /// As asked for.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Returns the bytes of the file at `path` below the skill's folder.
///
/// # Errors
/// See [`ReferenceError`].
pub fn read_reference(skill: &Skill, path: &str) -> Result<Vec<u8>, ReferenceError> {
    let wanted = path.strip_prefix("./").unwrap_or(path);
    if !skill.references.iter().any(|listed| listed == wanted) {
        return Err(ReferenceError::NotListed(path.into()));
    }
    // What was a file when the skill was read may have become a link since, or a pipe.
    read_inside(&skill.folder, wanted, REFERENCE_BYTES).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => ReferenceError::NotListed(path.into()),
        io::ErrorKind::FileTooLarge => ReferenceError::TooLarge(path.into()),
        _ => ReferenceError::Unreadable { path: path.into(), source },
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::skill::load_folders;

    #[test]
    fn only_listed_files_inside_the_folder_are_read() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("SKILL.md"), "---\nname: a\ndescription: d\n---\n").unwrap();
        fs::write(folder.join("x.md"), "inside").unwrap();
        fs::write(root.path().join("secret.md"), "outside").unwrap();
        let set = load_folders(&[root.path().to_owned()]);
        let skill = &set.skills["a"];
        assert_eq!(read_reference(skill, "x.md").unwrap(), b"inside");
        assert_eq!(read_reference(skill, "./x.md").unwrap(), b"inside");
        let absolute = root.path().join("secret.md").to_string_lossy().into_owned();
        for path in ["../secret.md", "x/../../secret.md", "x.md/", "X.md", "", ".", "SKILL.md/..", "x.md\0", &absolute]
        {
            assert!(matches!(read_reference(skill, path), Err(ReferenceError::NotListed(_))), "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_has_become_a_link_is_not_read() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("SKILL.md"), "---\nname: a\ndescription: d\n---\n").unwrap();
        fs::write(folder.join("x.md"), "inside").unwrap();
        let set = load_folders(&[root.path().to_owned()]);
        fs::remove_file(folder.join("x.md")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", folder.join("x.md")).unwrap();
        assert!(matches!(read_reference(&set.skills["a"], "x.md"), Err(ReferenceError::NotListed(_))));
    }
}
