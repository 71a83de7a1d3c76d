//! One skill out of its folder: a [`Skill`] per SKILL.md, or the reasons why there is none.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::{frontmatter::parse, inside::read_plain, manifest::SkillFile};
use crate::model::{
    diagnostic::{Diagnostic, Place},
    limits::{
        COMPATIBILITY_CHARS, DESCRIPTION_CHARS, NAME_CHARS, SKILL_BYTES, SKILL_DEPTH, SKILL_FILES, SKILL_TOTAL_BYTES,
    },
    name::SkillName,
    trust::Trust,
};

/// One skill.
#[derive(Debug, Clone)]
pub struct Skill {
    /// From the header, else the folder's.
    pub name: SkillName,
    /// What it is for and when to use it; never empty.
    pub description: String,
    /// The playbook; every version of a set that has it shares it.
    pub body: Arc<str>,
    /// The folder, without links in it.
    pub folder: PathBuf,
    /// Paths of its other files below the folder, `/` between, sorted.
    pub references: Vec<String>,
    /// `allowed-tools`, where it is given.
    pub allowed_tools: Option<Vec<String>>,
    /// Whether only the user may ask for it: not in the catalogue, but loaded by name.
    pub is_hidden: bool,
    /// For filters and counts.
    pub tags: Vec<String>,
    /// Lowercase hex SHA-256 of its SKILL.md.
    pub digest: String,
    /// The file called SKILL.md, whatever its case.
    pub file: PathBuf,
    /// The header as its author wrote it; absent where it is not valid YAML, so that others would not read the same.
    pub frontmatter: Option<Map<String, Value>>,
    /// As far as the folder is trusted that it was found in.
    pub trust: Trust,
    /// Grows with every change of its files that whoever asked for their digests can see.
    pub revision: u64,
    /// Its files with their digests, once they were asked for.
    pub(super) manifest: Arc<OnceLock<Vec<SkillFile>>>,
}

/// What a file looks like from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    size_bytes: u64,
    inode: u64,
    /// Absent where the system keeps none.
    pub(super) changed: Option<SystemTime>,
}

impl Stamp {
    fn of(data: &fs::Metadata) -> Self {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(data);
        #[cfg(not(unix))]
        let inode = 0;
        Self { size_bytes: data.len(), inode, changed: data.modified().ok() }
    }
}

/// Folders that never hold skills of the user: what tools put there, often by the ten thousand files. A virtual
/// environment of another name than `.venv` keeps its files in `site-packages`.
const NOISE: &[&str] = &[
    ".cache",
    ".git",
    ".gradle",
    ".hg",
    ".mypy_cache",
    ".nox",
    ".pytest_cache",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    "__pycache__",
    "node_modules",
    "site-packages",
    "target",
];

/// Whether a folder is one of [`NOISE`].
pub(super) fn is_noise(folder: &Path) -> bool {
    folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| NOISE.contains(&name))
}

/// Reads one SKILL.md.
pub(super) struct Reader<'a> {
    pub(super) file: &'a Path,
    pub(super) findings: Vec<Diagnostic>,
}

impl Reader<'_> {
    /// The bytes of SKILL.md; `None` where they cannot be used, which is a finding then.
    ///
    /// # Errors
    /// The file is not there any more.
    pub(super) fn bytes(&mut self) -> io::Result<Option<Vec<u8>>> {
        match read_plain(self.file, SKILL_BYTES) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                self.error("skill-too-large", 0, format!("the file is over {SKILL_BYTES} bytes"));
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
            Err(error) => {
                self.error("skills-folder", 0, format!("cannot be read: {error}"));
                Ok(None)
            }
        }
    }

    /// Reads the skill out of the bytes of its SKILL.md; `references` are its other files.
    pub(super) fn skill(&mut self, bytes: &[u8], folder: &Path, references: Vec<String>) -> Option<Skill> {
        let document = parse(bytes).map_err(|refusal| self.error(refusal.code, refusal.line, refusal.message)).ok()?;
        if document.was_quoted {
            self.warn("skill-frontmatter-quoted", "the header is not valid YAML; values were read as if in quotes");
        }
        if self.file.file_name().is_some_and(|name| name != "SKILL.md") {
            self.warn("skill-file-case", "the file should be called `SKILL.md`");
        }
        let members = document.members;
        self.note_extra_members(&members);
        let description = self.description(&members)?;
        let allowed_tools = self.allowed_tools(&members)?;
        Some(Skill {
            name: self.name(&members, folder),
            description,
            body: document.body.into(),
            references,
            folder: folder.into(),
            allowed_tools,
            is_hidden: members.get("disable-model-invocation").is_some_and(is_true),
            tags: tags(&members),
            file: folder.join(self.file.file_name().unwrap_or_default()),
            frontmatter: (!document.was_quoted).then_some(members),
            revision: 0,
            manifest: Arc::default(),
            trust: Trust::Untrusted,
            digest: digest(bytes),
        })
    }

    fn name(&mut self, members: &Map<String, Value>, folder: &Path) -> SkillName {
        let of_folder = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let given = members.get("name").and_then(scalar).filter(|name| !name.is_empty());
        let Some(name) = given.filter(|name| !name.chars().any(char::is_control)) else {
            self.warn("skill-name-missing", "the header has no usable `name`; the folder's is used");
            return SkillName::new(of_folder);
        };
        if !is_standard_name(&name) {
            let rule = "1 to 64 of `a-z0-9-`, without `-` at the ends or twice in a row";
            self.warn("skill-name-invalid", format!("name `{name}` is not {rule}"));
        }
        if name != of_folder {
            self.warn("skill-name-differs", format!("name `{name}` differs from its folder `{of_folder}`"));
        }
        SkillName::new(name)
    }

    fn description(&mut self, members: &Map<String, Value>) -> Option<String> {
        let text = match members.get("description") {
            Some(Value::Array(parts)) => {
                self.warn("skill-member-type", "`description` is a list; its items are joined");
                parts.iter().filter_map(scalar).collect::<Vec<_>>().join(" ")
            }
            other => other.and_then(scalar).unwrap_or_default(),
        };
        // Terminals and some model APIs take control characters for commands or refuse them.
        let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        if text.contains(is_control) {
            self.warn("skill-control-character", "`description` holds control characters; blanks stand for them");
        }
        let text = text.replace(is_control, " ").trim().to_owned();
        if text.is_empty() {
            self.error(
                "skill-description-missing",
                0,
                "the header has no `description`, so nobody could choose the skill",
            );
            return None;
        }
        if text.chars().count() > DESCRIPTION_CHARS {
            let message = format!("`description` has over {DESCRIPTION_CHARS} characters; the catalogue cuts it");
            self.warn("skill-description-cut", message);
        }
        Some(text)
    }

    /// A restriction that cannot be read costs the skill: without it the skill would be more than its author meant.
    fn allowed_tools(&mut self, members: &Map<String, Value>) -> Option<Option<Vec<String>>> {
        let split = |text: &str| -> Vec<String> {
            text.split([',', ' ', '\t']).filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        match members.get("allowed-tools") {
            None | Some(Value::Null) => Some(None),
            Some(Value::String(text)) => Some(Some(split(text))),
            Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
                Some(Some(items.iter().filter_map(Value::as_str).map(|item| item.trim().to_owned()).collect()))
            }
            Some(_) => {
                self.error("skill-member-type", 0, "`allowed-tools` is neither a text nor a list of texts");
                None
            }
        }
    }

    fn note_extra_members(&mut self, members: &Map<String, Value>) {
        const KNOWN: &[&str] = &["name", "description", "license", "compatibility", "metadata", "allowed-tools"];
        let extra: Vec<&str> = members.keys().map(String::as_str).filter(|name| !KNOWN.contains(name)).collect();
        if !extra.is_empty() {
            let message = format!("members that the standard does not know: {}", extra.join(", "));
            self.findings.push(Diagnostic::note("skill-extra-member", message).at(whole(self.file)));
        }
        if members.get("metadata").is_some_and(|metadata| !metadata.is_object() && !metadata.is_null()) {
            self.warn("skill-member-type", "`metadata` is not a map; it is left out");
        }
        let is_short = |text: &str| text.chars().count() <= COMPATIBILITY_CHARS;
        if members.get("compatibility").is_some_and(|value| !value.is_null() && !value.as_str().is_some_and(is_short)) {
            let message = format!("`compatibility` is not a text of at most {COMPATIBILITY_CHARS} characters");
            self.warn("skill-member-type", message);
        }
    }

    /// Lists the files that may be read, without links and hidden files.
    pub(super) fn references(&mut self, folder: &Path) -> Vec<(String, Stamp)> {
        let mut found = Vec::new();
        let mut size_bytes = 0;
        let mut folders = vec![folder.to_owned()];
        let is_over = |n_files: usize, size_bytes: u64| n_files > SKILL_FILES || size_bytes > SKILL_TOTAL_BYTES;
        while let Some(here) = folders.pop() {
            // A SKILL.md above a whole catalogue: the rest need not be counted.
            if is_over(found.len(), size_bytes) {
                break;
            }
            for entry in fs::read_dir(&here).into_iter().flatten().flatten() {
                let (path, name) = (entry.path(), entry.file_name());
                // The entry's own type: links are neither files nor folders here.
                let Ok(kind) = entry.file_type() else { continue };
                if name.to_string_lossy().starts_with('.') || is_noise(&path) {
                    continue;
                }
                if kind.is_dir() && path.components().count() <= folder.components().count() + SKILL_DEPTH {
                    folders.push(path);
                } else if kind.is_file() && path.as_path() != folder.join(self.file.file_name().unwrap_or_default()) {
                    let Ok(stamp) = entry.metadata().map(|data| Stamp::of(&data)) else { continue };
                    size_bytes += stamp.size_bytes;
                    found.extend(relative(folder, &path).map(|path| (path, stamp)));
                }
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        if is_over(found.len(), size_bytes) {
            let message = format!("over {SKILL_FILES} files or {SKILL_TOTAL_BYTES} bytes; only SKILL.md is served");
            self.warn("skill-too-many", message);
            found.clear();
        }
        found
    }

    fn error(&mut self, code: &'static str, line: usize, message: impl Into<String>) {
        let place = Place { file: self.file.into(), line, column: 0 };
        self.findings.push(Diagnostic::error(code, message).at(place).hint("the skill is left out"));
    }

    fn warn(&mut self, code: &'static str, message: impl Into<String>) {
        self.findings.push(Diagnostic::warning(code, message).at(whole(self.file)));
    }
}

/// Lowercase hex SHA-256.
pub(super) fn digest(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}

fn whole(file: &Path) -> Place {
    Place { file: file.into(), ..Place::default() }
}

/// Whether a name is one by the standard.
pub(super) fn is_standard_name(name: &str) -> bool {
    (1..=NAME_CHARS).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

fn relative(folder: &Path, path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path.strip_prefix(folder).ok()?.iter().map(std::ffi::OsStr::to_str).collect();
    Some(parts?.join("/"))
}

/// A YAML scalar as the text its author typed, as far as that can be known.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        _ => None,
    }
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(truth) => *truth,
        Value::String(text) => ["true", "yes", "on", "1"].contains(&text.to_lowercase().as_str()),
        Value::Number(number) => number.as_u64() == Some(1),
        _ => false,
    }
}

/// `tags` at the top or in `metadata`, as a list or a text with commas.
fn tags(members: &Map<String, Value>) -> Vec<String> {
    let value = members.get("tags").or_else(|| members.get("metadata")?.get("tags"));
    let mut tags: Vec<String> = match value {
        Some(Value::Array(items)) => items.iter().filter_map(scalar).collect(),
        Some(Value::String(text)) => text.split(',').map(|tag| tag.trim().to_owned()).collect(),
        _ => Vec::new(),
    };
    tags.retain(|tag| !tag.is_empty());
    tags.sort();
    tags.dedup();
    tags
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::load_folders;

    fn fixtures(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("skills-fixtures").join(name)
    }

    #[test]
    fn the_shops_skills_load_without_a_finding_and_list_their_references() {
        let set = load_folders(&[fixtures("eshop")]);
        assert!(set.findings.is_empty(), "{:?}", set.findings);
        assert_eq!(set.skills.len(), 7);
        let orders = &set.skills["eshop-orders"];
        assert_eq!(
            orders.references,
            ["references/common-cases.md", "references/order-states.md", "references/refund-rules.md"]
        );
    }

    #[test]
    fn a_folder_that_is_not_there_is_a_finding() {
        let set = load_folders(&[fixtures("nowhere")]);
        assert_eq!(set.findings[0].code, "skills-folder");
    }

    #[cfg(unix)]
    #[test]
    fn links_inside_a_skill_are_not_listed_and_circles_end() {
        let root = tempfile::tempdir().unwrap();
        let skill = root.path().join("a");
        fs::create_dir_all(skill.join("refs")).unwrap();
        fs::write(skill.join("SKILL.md"), "---\nname: a\ndescription: d\n---\n").unwrap();
        fs::write(skill.join("refs/x.md"), "x").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", skill.join("refs/link.md")).unwrap();
        std::os::unix::fs::symlink(root.path(), skill.join("up")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.path().join("dangling")).unwrap();
        let set = load_folders(&[root.path().to_owned()]);
        assert_eq!(set.skills["a"].references, ["refs/x.md"]);
        assert_eq!(set.skills.len(), 1);
    }
}
