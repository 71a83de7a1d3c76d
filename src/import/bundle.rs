//! Plain files by their paths, taken in one by one and refused for what a good archive does not have.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use unicode_normalization::UnicodeNormalization as _;

use crate::{
    model::limits::{IMPORT_BYTES, IMPORT_DEPTH, IMPORT_FILE_BYTES, IMPORT_FILES, NAME_CHARS},
    skill::{Document, SKILL_FILE, open_inside, parse},
};

/// Bytes of one part of a path: what file systems take.
const PART_BYTES: usize = 255;

/// The files of a source.
#[derive(Debug, Default)]
pub struct Bundle {
    files: BTreeMap<String, Vec<u8>>,
    /// Paths as a file system that ignores case and forms of letters has them.
    folded: BTreeSet<String>,
    /// Their folders, in the same form.
    folded_folders: BTreeSet<String>,
    size_bytes: u64,
    /// What was left out: path and reason.
    pub left_out: Vec<(String, &'static str)>,
}

/// Why a source is refused as a whole.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// A path that leads elsewhere, or that not every system can have.
    #[error("the path `{path}` {why}")]
    Path {
        /// As it stands there, with odd characters as numbers.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// More files than are taken.
    #[error("it has more than {IMPORT_FILES} files")]
    TooMany,
    /// More bytes than are taken, whatever it says of itself.
    #[error("it has more than {IMPORT_BYTES} bytes when it is unpacked, or a file of more than {IMPORT_FILE_BYTES}")]
    TooLarge,
    /// As the system, or the archive, says.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A skill of a bundle.
#[derive(Debug)]
pub struct Imported {
    /// The name in its header, else the folder's.
    pub name: String,
    /// Where it is in the bundle; empty where the bundle is the skill.
    pub folder: String,
}

impl Bundle {
    /// Takes in a file. No more of it is read than may be taken.
    ///
    /// # Errors
    /// See [`Unfit`].
    pub fn add(&mut self, path: &str, content: impl Read) -> Result<(), Unfit> {
        let path = path.strip_prefix("./").unwrap_or(path);
        if path.split('/').any(|part| part == ".git") {
            return Ok(());
        }
        check(path)?;
        if self.files.len() >= IMPORT_FILES {
            return Err(Unfit::TooMany);
        }
        let left = IMPORT_FILE_BYTES.min(IMPORT_BYTES - self.size_bytes);
        let mut bytes = Vec::new();
        let size_bytes = content.take(left + 1).read_to_end(&mut bytes)? as u64;
        if size_bytes > left {
            return Err(Unfit::TooLarge);
        }
        let folded_path = path.nfc().collect::<String>().to_lowercase();
        if !self.folded.insert(folded_path.clone()) {
            return Err(unfit(path, "is there twice, on systems that tell no case or forms of letters apart"));
        }
        let folders: Vec<&str> = folded_path.match_indices('/').filter_map(|(at, _)| folded_path.get(..at)).collect();
        if self.folded_folders.contains(&folded_path) || folders.iter().any(|folder| self.folded.contains(*folder)) {
            return Err(unfit(path, "is both a file and a folder"));
        }
        self.folded_folders.extend(folders.into_iter().map(str::to_owned));
        self.size_bytes += size_bytes;
        self.files.insert(path.to_owned(), bytes);
        Ok(())
    }

    /// Notes what is no plain file.
    pub fn leave_out(&mut self, path: &str, why: &'static str) {
        if self.left_out.len() < IMPORT_FILES {
            self.left_out.push((crate::model::hidden::visible(path), why));
        }
    }

    /// The skills of it, by folder. A skill within another one is a file of that.
    pub fn skills(&self) -> Vec<Imported> {
        let mut found: Vec<Imported> = Vec::new();
        let mut folders: Vec<&str> = self.files.keys().filter_map(|path| folder_of_skill(path)).collect();
        folders.sort_by_key(|folder| folder.len());
        for folder in folders {
            let is_within = |known: &Imported| known.folder.is_empty() || is_below(folder, &known.folder);
            if !found.iter().any(is_within) {
                found.push(Imported { name: self.name_of(folder), folder: folder.to_owned() });
            }
        }
        found.sort_by(|a, b| a.folder.cmp(&b.folder));
        found
    }

    fn name_of(&self, folder: &str) -> String {
        let of_folder = folder.rsplit('/').next().unwrap_or_default().to_owned();
        let file = self.files.get(&joined(folder, SKILL_FILE));
        let document = file.and_then(|bytes| parse(bytes).ok());
        let named = document.and_then(|Document { members, .. }| Some(members.get("name")?.as_str()?.to_owned()));
        named.filter(|name| is_plain(name)).unwrap_or(of_folder)
    }

    /// Writes a skill to a folder that is not there yet, as plain files that nobody can run.
    ///
    /// # Errors
    /// As the system says; nothing is left then.
    pub fn write(&self, skill: &Imported, target: &Path) -> io::Result<()> {
        let parent = target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent)?;
        let beside = tempfile::Builder::new().prefix(".gatekey-").tempdir_in(parent)?;
        let whole = beside.path().join("skill");
        for (path, bytes) in &self.files {
            let Some(path) = below(path, &skill.folder) else { continue };
            let file = path.split('/').fold(whole.clone(), |folder, part| folder.join(part));
            fs::create_dir_all(file.parent().unwrap_or(&whole))?;
            fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&file)
                .and_then(|mut file| io::Write::write_all(&mut file, bytes))?;
        }
        fs::rename(&whole, target)
    }
}

fn joined(folder: &str, file: &str) -> String {
    if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") }
}

fn is_below(path: &str, folder: &str) -> bool {
    below(path, folder).is_some()
}

/// The rest of a path below a folder.
fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    if folder.is_empty() { Some(path) } else { path.strip_prefix(folder)?.strip_prefix('/') }
}

fn folder_of_skill(path: &str) -> Option<&str> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    (file == SKILL_FILE).then_some(folder)
}

/// Whether a name can be a folder everywhere.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.chars().count() <= NAME_CHARS
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

fn unfit(path: &str, why: &'static str) -> Unfit {
    Unfit::Path { path: crate::model::hidden::visible(path), why }
}

/// Only paths that are below a folder on every system.
fn check(path: &str) -> Result<(), Unfit> {
    let parts: Vec<&str> = path.split('/').collect();
    let why = if path.is_empty() || parts.iter().any(|part| part.is_empty()) {
        "has an empty part"
    } else if parts.iter().any(|part| matches!(*part, "." | "..")) {
        "leads out of its folder"
    } else if path.contains(['\\', ':']) {
        "leads elsewhere on some systems"
    } else if path.chars().any(char::is_control) {
        "has control characters"
    } else if parts.len() > IMPORT_DEPTH {
        "is too deep"
    } else if parts.iter().any(|part| part.len() > PART_BYTES || part.ends_with(['.', ' '])) {
        "cannot be had on some systems"
    } else {
        return Ok(());
    };
    Err(unfit(path, why))
}

/// Where a path of a source would be: for messages of sources that are folders.
pub(super) fn relative(root: &Path, path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path.strip_prefix(root).ok()?.iter().map(|part| part.to_str()).collect();
    Some(parts?.join("/"))
}

/// Folders below one, with their plain files, no link followed.
pub(super) fn walk(root: &Path, bundle: &mut Bundle) -> Result<(), Unfit> {
    let mut folders: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<fs::DirEntry> = fs::read_dir(&folder)?.collect::<io::Result<_>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, kind) = (entry.path(), entry.file_type()?);
            let name = relative(root, &path);
            match name {
                None => bundle.leave_out(&path.to_string_lossy(), "its name is no text"),
                Some(name) if kind.is_symlink() => bundle.leave_out(&name, "it is a link"),
                Some(name) if kind.is_dir() && (name.split('/').count() > IMPORT_DEPTH) => {
                    return Err(unfit(&name, "is too deep"));
                }
                Some(_) if kind.is_dir() && entry.file_name() == ".git" => {}
                Some(_) if kind.is_dir() => folders.push(path),
                // It may have become a link meanwhile.
                Some(name) if kind.is_file() => bundle.add(&name, open_inside(root, &name)?)?,
                Some(name) => bundle.leave_out(&name, "it is no file"),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        for path in ["../x", "a/../../x", "/etc/passwd", "a//b", "", "a\\..\\x", "C:x", "a/b\n", "a/.", "x./y", "a/b "]
        {
            assert!(matches!(Bundle::default().add(path, &b""[..]), Err(Unfit::Path { .. })), "{path:?}");
        }
        for path in ["SKILL.md", "./SKILL.md", "a/b/č.md", ".github/x"] {
            assert!(Bundle::default().add(path, &b""[..]).is_ok(), "{path:?}");
        }
    }

    #[test]
    fn what_is_too_much_is_refused_before_it_is_held() {
        let mut bundle = Bundle::default();
        assert!(matches!(bundle.add("big", io::repeat(0)), Err(Unfit::TooLarge)));
        for number in 0..IMPORT_FILES {
            bundle.add(&format!("f{number}"), &b""[..]).unwrap();
        }
        assert!(matches!(bundle.add("more", &b""[..]), Err(Unfit::TooMany)));
        let mut bundle = Bundle::default();
        let refused = (0..)
            .find_map(|number: u32| bundle.add(&format!("f{number}"), io::repeat(0).take(IMPORT_FILE_BYTES)).err());
        assert!(matches!(refused, Some(Unfit::TooLarge)));
    }

    #[test]
    fn paths_that_some_systems_cannot_tell_apart_are_refused() {
        for (first, second) in [("a/SKILL.md", "A/skill.md"), ("č.md", "c\u{30c}.md")] {
            let mut bundle = Bundle::default();
            bundle.add(first, &b""[..]).unwrap();
            assert!(bundle.add(second, &b""[..]).is_err(), "{second}");
        }
    }

    #[test]
    fn skills_are_found_at_any_place_and_one_within_another_is_no_skill() {
        let mut bundle = Bundle::default();
        for (path, text) in [
            ("skills/a/SKILL.md", "---\nname: alpha\ndescription: x\n---\n"),
            ("skills/a/more/SKILL.md", "no header"),
            ("b/SKILL.md", "---\nname: ../evil\ndescription: x\n---\n"),
            ("README.md", "x"),
        ] {
            bundle.add(path, text.as_bytes()).unwrap();
        }
        let found: Vec<_> = bundle.skills().into_iter().map(|skill| (skill.name, skill.folder)).collect();
        assert_eq!(found, [("b".into(), "b".into()), ("alpha".to_owned(), "skills/a".to_owned())]);
    }
}
