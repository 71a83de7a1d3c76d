//! A skill as the Skills extension (SEP-2640) serves it: every file with digest and size, and bytes that fit them.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, OnceLock},
};

use serde_json::{Value, json};

use super::{
    folder::{Skill, digest, is_standard_name},
    inside::read_inside,
};
use crate::model::limits::{SKILL_FILES, SKILL_TOTAL_BYTES};

/// One file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Below the skill's folder, `/` between; SKILL.md is called so.
    pub path: String,
    /// Lowercase hex SHA-256.
    pub digest: String,
    /// Its length.
    pub size_bytes: u64,
}

/// The file that a signature stands in.
pub const SIGNATURE_FILE: &str = "skill.minisig";

/// Its own name for the file that every skill has.
pub const SKILL_FILE: &str = "SKILL.md";

impl Skill {
    /// The files besides SKILL.md that say something to a model.
    pub fn for_models(&self) -> impl Iterator<Item = &str> {
        self.references.iter().map(String::as_str).filter(|path| *path != SIGNATURE_FILE)
    }

    /// Whether others may be told of it: they hold its name, its folder and its header against each other.
    pub fn is_servable(&self) -> bool {
        let folder = self.folder.file_name().unwrap_or_default().to_string_lossy();
        let named = self.frontmatter.as_ref().and_then(|header| header.get("name")).and_then(Value::as_str);
        is_standard_name(self.name.as_str()) && folder == self.name.as_str() && named == Some(self.name.as_str())
    }

    /// Its files, SKILL.md first. Read at the first call, which takes as long as reading them all; a file that cannot be
    /// read is left out, and so are all but SKILL.md where they are over the extension's limits.
    pub fn manifest(&self) -> &[SkillFile] {
        self.manifest.get_or_init(|| self.read_manifest())
    }

    /// A digest of all of its files, by which a version of it is approved: lowercase hex SHA-256 of [`Skill::manifest_text`].
    /// `None` where it has more files than are looked at, or one that cannot be read, or where SKILL.md has
    /// changed since it was read: nobody could tell what was approved.
    pub fn set_digest(&self) -> Option<String> {
        let is_body = |file: &SkillFile| file.path == SKILL_FILE && file.digest == self.digest;
        let is_whole =
            self.manifest().len() == self.references.len() + 1 && self.manifest().first().is_some_and(is_body);
        is_whole.then(|| digest(self.manifest_text().as_bytes()))
    }

    /// Whether these are the bytes of this file as the manifest has them.
    pub fn is_as_listed(&self, path: &str, bytes: &[u8]) -> bool {
        let path = path.strip_prefix("./").unwrap_or(path);
        self.manifest().iter().any(|file| file.path == path && file.digest == digest(bytes))
    }

    /// Its name and files, a line each: digest, two blanks, path; as `sha256sum` writes and checks. The signature is no part
    /// of what is signed.
    pub fn manifest_text(&self) -> String {
        let files = self.manifest().iter().filter(|file| file.path != SIGNATURE_FILE);
        let mut text = format!("# gatekey skill {}\n", self.name);
        // A path is one line: a file whose name has a line end is quoted, as nothing else begins with `"`.
        files.for_each(|file| text.push_str(&format!("{}  {}\n", file.digest, one_line(&file.path))));
        text
    }

    /// Reads its files once more where anybody asked for them; says whether they are others now.
    pub(super) fn renew_manifest(&mut self) -> bool {
        let Some(before) = self.manifest.get() else { return false };
        let now = self.read_manifest();
        let is_other = now != *before;
        if is_other {
            self.manifest = Arc::new(OnceLock::from(now));
        }
        is_other
    }

    fn read_manifest(&self) -> Vec<SkillFile> {
        let all = std::iter::once(SKILL_FILE).chain(self.references.iter().map(String::as_str));
        let mut files: Vec<SkillFile> = Vec::new();
        let mut left_bytes = SKILL_TOTAL_BYTES;
        for path in all {
            let bytes = match self.read_file(path, left_bytes) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                    files.truncate(1);
                    break;
                }
                Err(_) => continue,
            };
            let size_bytes = bytes.len() as u64;
            left_bytes -= size_bytes;
            files.push(SkillFile { path: path.to_owned(), digest: digest(&bytes), size_bytes });
        }
        if files.len() > SKILL_FILES {
            files.truncate(1);
        }
        files
    }

    /// The bytes of one of its files, where they still are those of the manifest.
    ///
    /// # Errors
    /// It is not one of its files, cannot be read, or has changed.
    pub fn read_listed(&self, path: &str) -> io::Result<Vec<u8>> {
        let Some(file) = self.manifest().iter().find(|file| file.path == path) else {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        };
        let bytes = self.read_file(path, SKILL_TOTAL_BYTES)?;
        if digest(&bytes) != file.digest {
            return Err(io::Error::other("the file has changed since it was listed"));
        }
        Ok(bytes)
    }

    /// What was a file when the skill was read may have become a link since, or a pipe.
    fn read_file(&self, path: &str, most_bytes: u64) -> io::Result<Vec<u8>> {
        let own_name = self.file.file_name().and_then(|name| name.to_str()).unwrap_or(SKILL_FILE);
        read_inside(&self.folder, if path == SKILL_FILE { own_name } else { path }, most_bytes)
    }

    /// The direct children of one of its folders, by name: `None` where it is no folder of it. A child that is a folder
    /// has no file.
    pub fn children(&self, folder: &str) -> Option<BTreeMap<String, Option<&SkillFile>>> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut children = BTreeMap::new();
        for file in self.manifest() {
            let Some(rest) = file.path.strip_prefix(&prefix) else { continue };
            match rest.split_once('/') {
                Some((name, _)) => children.insert(name.to_owned(), None),
                None => children.insert(rest.to_owned(), Some(file)),
            };
        }
        (!children.is_empty()).then_some(children)
    }

    /// The entry of `skills/list`; `root` is the URI of its folder.
    pub fn entry(&self, root: &str) -> Value {
        let resource = |file: &SkillFile| json!({"uri": format!("{root}/{}", file.path), "digest": format!("sha256:{}", file.digest), "size": file.size_bytes});
        let resources: Vec<Value> = self.manifest().iter().map(resource).collect();
        json!({"uri": format!("{root}/{SKILL_FILE}"), "frontmatter": self.frontmatter, "resources": resources})
    }
}

/// A path as it is, or as a JSON text where it would not be one line or could be taken for one.
fn one_line(path: &str) -> std::borrow::Cow<'_, str> {
    if path.starts_with('"') || path.chars().any(char::is_control) {
        Value::from(path).to_string().into()
    } else {
        path.into()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::skill::load_folders;

    #[test]
    fn what_is_served_fits_its_digest_and_what_changed_is_not_served() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("notes");
        fs::create_dir_all(folder.join("references/deep")).unwrap();
        let text = "---\nname: notes\ndescription: About notes.\n---\nBody\n";
        fs::write(folder.join("SKILL.md"), text).unwrap();
        fs::write(folder.join("references/deep/a.bin"), [0xff, 0]).unwrap();
        let set = load_folders(&[scratch.path().to_owned()]);
        let skill = set.skills.values().next().unwrap();
        assert!(skill.is_servable());
        let paths: Vec<(&str, u64)> = skill.manifest().iter().map(|file| (&*file.path, file.size_bytes)).collect();
        assert_eq!(paths, [("SKILL.md", text.len() as u64), ("references/deep/a.bin", 2)]);
        assert_eq!(skill.read_listed("SKILL.md").unwrap(), text.as_bytes());
        assert_eq!(skill.children("references").unwrap().keys().collect::<Vec<_>>(), ["deep"]);
        assert!(skill.children("references/deep/a.bin").is_none() && skill.children("other").is_none());
        assert_eq!(
            skill.entry("skill://notes")["frontmatter"],
            json!({"name": "notes", "description": "About notes."})
        );
        fs::write(folder.join("SKILL.md"), text.replace("Body", "Evil")).unwrap();
        assert!(skill.read_listed("SKILL.md").is_err());
        assert!(skill.read_listed("../notes/SKILL.md").is_err());
    }
}
