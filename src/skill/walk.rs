//! Folders of skills, walked within bounds; read again, only what changed is parsed, and what broke keeps its last good
//! version. Read [`SkillSet::read_again`] first.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::folder::{Reader, Skill, Stamp, digest, is_noise};
use crate::model::{
    diagnostic::{Diagnostic, Place},
    limits::{FILE_TIMES, SKILL_DEPTH, SKILL_FOLDERS},
    name::SkillName,
    trust::{SkillFolder, Trust},
};

/// The skills of all folders, with what was found while reading them.
#[derive(Debug, Clone, Default)]
pub struct SkillSet {
    /// By name. On a clash the folder that stands first in the config wins.
    pub skills: BTreeMap<SkillName, Skill>,
    /// In the order of the walk.
    pub findings: Vec<Diagnostic>,
    /// Every folder that was looked into, by the path by which it was reached.
    pub folders: BTreeSet<PathBuf>,
    /// Every link in them.
    pub links: BTreeSet<PathBuf>,
    /// What was read of each SKILL.md, by the path by which it was reached.
    files: BTreeMap<PathBuf, Known>,
}

/// What was read of one SKILL.md.
#[derive(Debug, Clone)]
struct Known {
    /// Of the bytes that were read last, good or not; absent where they cannot be read.
    digest: Option<String>,
    /// The last good version.
    skill: Option<Skill>,
    findings: Vec<Diagnostic>,
    /// The skill's other files.
    references: Vec<(String, Stamp)>,
    seen_at: SystemTime,
}

/// Reads every skill below `folders`.
pub fn load_folders(folders: &[impl Clone + Into<SkillFolder>]) -> SkillSet {
    SkillSet::default().read_again(folders, SystemTime::UNIX_EPOCH)
}

impl SkillSet {
    /// Reads every skill below `folders`; of those that this set knows only what changed is parsed. One that gives no skill
    /// any more, while its file is there, stays as it was. `now` tells which files may change without looking other.
    ///
    /// Of skills with one name the most trusted folder's counts, and of these the first one's. A folder of the list within
    /// another one is not looked at with that.
    pub fn read_again(&self, folders: &[impl Clone + Into<SkillFolder>], now: SystemTime) -> Self {
        let mut set = Self::default();
        let mut folders: Vec<SkillFolder> = folders.iter().cloned().map(Into::into).collect();
        folders.sort_by_key(|folder| Reverse(folder.trust));
        let roots: BTreeSet<PathBuf> =
            folders.iter().filter_map(|folder| fs::canonicalize(&folder.path).ok()).collect();
        for SkillFolder { path: folder, trust } in &folders {
            let (seen, roots, trust) = (BTreeSet::new(), &roots, *trust);
            let mut walk = Walk { before: self, now, set: &mut set, trust, roots, seen, most: SKILL_FOLDERS };
            if let Err(error) = walk.enter(folder, None, 0) {
                let finding = Diagnostic::error("skills-folder", format!("cannot be read: {error}")).at(whole(folder));
                let hint = match walk.keep(folder, &error) {
                    0 => "no skill of it is there, and what they open stays closed",
                    _ => "its skills stay as they were read last",
                };
                set.findings.push(finding.hint(hint));
            }
        }
        set
    }

    /// The skills that count, each with the path by which its SKILL.md was reached.
    pub fn reached(&self) -> impl Iterator<Item = (&Path, &Skill)> {
        let known = self.files.iter().filter_map(|(file, known)| Some((file.as_path(), known.skill.as_ref()?)));
        known.filter(|(_, skill)| self.skills.get(&skill.name).is_some_and(|first| first.file == skill.file))
    }

    /// Whether nobody could tell these skills from `other`.
    pub fn has_same_skills(&self, other: &Self) -> bool {
        self.skills.len() == other.skills.len()
            && self.skills.values().zip(other.skills.values()).all(|(a, b)| a.is_same(b))
    }
}

impl Skill {
    /// Whether it is the same as `other`, of another reading of the same folders.
    fn is_same(&self, other: &Self) -> bool {
        let told = |skill: &Self| (skill.name.clone(), skill.file.clone(), skill.digest.clone(), skill.revision);
        told(self) == told(other) && self.references == other.references && self.trust == other.trust
    }
}

fn whole(file: &Path) -> Place {
    Place { file: file.into(), ..Place::default() }
}

/// Whether a path is called SKILL.md, whatever its case.
fn is_skill_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.eq_ignore_ascii_case("SKILL.md"))
}

/// What an entry of a folder is, or what the link leads to that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    File,
    Folder,
    LinkedFolder,
    /// A link to what is not there.
    Nothing,
}

struct Walk<'a> {
    before: &'a SkillSet,
    now: SystemTime,
    set: &'a mut SkillSet,
    /// Folders that were entered, without links: circles end here.
    seen: BTreeSet<PathBuf>,
    /// Of the skills that are found.
    trust: Trust,
    /// Folders that have a walk of their own, without links.
    roots: &'a BTreeSet<PathBuf>,
    /// How many they may be.
    most: usize,
}

impl Walk<'_> {
    /// `real` is the folder without links in it, where that is known.
    fn enter(&mut self, folder: &Path, real: Option<PathBuf>, depth: usize) -> io::Result<()> {
        let real = real.map_or_else(|| fs::canonicalize(folder), Ok)?;
        if self.seen.contains(&real) || (depth > 0 && self.roots.contains(&real)) {
            return Ok(());
        }
        if depth > SKILL_DEPTH {
            self.note_depth(folder);
            return Ok(());
        }
        self.seen.insert(real.clone());
        if self.seen.len() > self.most {
            if self.seen.len() == self.most + 1 {
                let message = format!("more than {} folders, the rest is not looked at", self.most);
                self.set.findings.push(Diagnostic::warning("skill-too-many", message).at(whole(folder)));
            }
            return Ok(());
        }
        self.set.folders.insert(folder.into());
        let entries = self.entries(folder)?;
        if let Some((file, _)) = entries.iter().find(|(path, kind)| *kind == Kind::File && is_skill_file(path)) {
            if let Some(known) = self.read(file, &real) {
                self.add(file, known);
            }
        } else if let Some((file, _)) =
            entries.iter().find(|(path, kind)| *kind == Kind::Nothing && is_skill_file(path))
        {
            let finding = Diagnostic::error("skill-link-dangling", "the link leads to nothing");
            let finding = finding.at(whole(file)).hint("copy the file itself, or mend the link");
            self.set.findings.push(finding);
        }
        for (entry, kind) in entries.iter().filter(|(entry, _)| !is_noise(entry)) {
            let real = match kind {
                Kind::Folder => entry.file_name().map(|name| real.join(name)),
                Kind::LinkedFolder => None,
                Kind::File | Kind::Nothing => continue,
            };
            if let Err(error) = self.enter(entry, real, depth + 1) {
                let finding = Diagnostic::warning("skills-folder", format!("cannot be read: {error}"));
                self.set.findings.push(finding.at(whole(entry)));
                self.keep(entry, &error);
            }
        }
        Ok(())
    }

    /// What is in a folder, by name; its links are kept in mind.
    fn entries(&mut self, folder: &Path) -> io::Result<Vec<(PathBuf, Kind)>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder)?.flatten() {
            let path = entry.path();
            // The entry's own type costs nothing; only behind a link somebody must look.
            let kind = match entry.file_type() {
                Ok(kind) if kind.is_symlink() => {
                    self.set.links.insert(path.clone());
                    match fs::metadata(&path) {
                        Ok(data) if data.is_dir() => Kind::LinkedFolder,
                        Ok(data) if data.is_file() => Kind::File,
                        Err(error) if error.kind() == io::ErrorKind::NotFound => Kind::Nothing,
                        _ => continue,
                    }
                }
                Ok(kind) if kind.is_dir() => Kind::Folder,
                Ok(kind) if kind.is_file() => Kind::File,
                _ => continue,
            };
            entries.push((path, kind));
        }
        entries.sort();
        Ok(entries)
    }

    /// A skill that lies too deep is not loaded, but not without a word.
    fn note_depth(&mut self, folder: &Path) {
        let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        if let Some(file) = names.into_iter().find(|path| is_skill_file(path)) {
            let message = format!("more than {SKILL_DEPTH} folders below the skills folder, so it is not read");
            let finding = Diagnostic::warning("skill-too-deep", message).at(whole(&file));
            self.set.findings.push(finding.hint("name a folder nearer to it in `skills`"));
        }
    }

    /// Keeps what is known below a folder that cannot be read, unless it is gone; returns how many files that are.
    fn keep(&mut self, folder: &Path, error: &io::Error) -> usize {
        if error.kind() == io::ErrorKind::NotFound {
            return 0;
        }
        let before = self.before;
        let below: Vec<_> = before.files.iter().filter(|(file, _)| file.starts_with(folder)).collect();
        self.set.folders.extend(before.folders.iter().filter(|known| known.starts_with(folder)).cloned());
        for (file, known) in &below {
            self.add(file, (*known).clone());
        }
        below.len()
    }

    /// Reads one SKILL.md; `None` where it is gone.
    fn read(&self, file: &Path, folder: &Path) -> Option<Known> {
        let mut reader = Reader { file, findings: Vec::new() };
        let references = reader.references(folder);
        let bytes = reader.bytes().ok()?;
        let digest = bytes.as_deref().map(digest);
        let names = || references.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
        let before = self.before.files.get(file);
        if let Some(known) = before.filter(|known| digest.is_some() && known.digest == digest)
            && known.skill.as_ref().is_none_or(|skill| skill.folder == folder && skill.references == names())
        {
            let mut known = known.clone();
            known.renew(references, self.now);
            return Some(known);
        }
        let read = bytes.and_then(|bytes| reader.skill(&bytes, folder, names()));
        let mut findings = reader.findings;
        let good = before.and_then(|known| known.skill.clone());
        let skill = match (read, good) {
            (Some(mut skill), Some(good)) => {
                skill.revision = good.revision;
                if let Some(seen) = good.manifest.get() {
                    // Whoever asked once asks again, and should not wait then.
                    skill.revision += u64::from(skill.manifest() != seen);
                }
                Some(skill)
            }
            (None, Some(good)) => {
                for finding in findings.iter_mut().filter(|finding| finding.is_error()) {
                    finding.hint = Some("the skill stays as it was read last".into());
                }
                Some(good)
            }
            (read, None) => read,
        };
        Some(Known { digest, skill, findings, references, seen_at: self.now })
    }

    fn add(&mut self, file: &Path, mut known: Known) {
        known.skill.iter_mut().for_each(|skill| skill.trust = self.trust);
        self.set.findings.extend(known.findings.iter().cloned());
        if let Some(skill) = &known.skill {
            if let Some(first) = self.set.skills.get(&skill.name) {
                let message =
                    format!("skill `{}` is already in `{}`; this one is left out", skill.name, first.folder.display());
                self.set.findings.push(Diagnostic::warning("skill-duplicate", message).at(whole(file)));
            } else {
                self.set.skills.insert(skill.name.clone(), skill.clone());
            }
        }
        self.set.files.insert(file.into(), known);
    }
}

impl Known {
    /// SKILL.md is as it was; its other files may have changed.
    fn renew(&mut self, references: Vec<(String, Stamp)>, now: SystemTime) {
        let is_recent =
            |(_, stamp): &(String, Stamp)| stamp.changed.is_none_or(|changed| changed + FILE_TIMES >= self.seen_at);
        if let Some(skill) = &mut self.skill
            // Of a broken one the files belong to another version than the one that stays.
            && self.digest.as_ref() == Some(&skill.digest)
            && (references != self.references || references.iter().any(is_recent))
            && skill.renew_manifest()
        {
            skill.revision += 1;
        }
        (self.references, self.seen_at) = (references, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(file: &Path, text: &str) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn text(name: &str, description: &str) -> String {
        format!("---\nname: {name}\ndescription: {description}\n---\nBody\n")
    }

    #[test]
    fn a_broken_skill_stays_as_it_was_until_it_is_mended_or_deleted() {
        let root = tempfile::tempdir().unwrap();
        let folders = [root.path().to_owned()];
        let file = root.path().join("a/SKILL.md");
        write(&file, &text("a", "First."));
        let first = load_folders(&folders);
        write(&file, "---\nname: a\n---\n");
        let broken = first.read_again(&folders, SystemTime::now());
        assert!(first.has_same_skills(&broken));
        assert_eq!(broken.findings[0].code, "skill-description-missing");
        assert_eq!(broken.findings[0].hint.as_deref(), Some("the skill stays as it was read last"));
        assert_eq!(broken.read_again(&folders, SystemTime::now()).findings, broken.findings, "it is still broken");
        write(&file, &text("a", "Second."));
        let mended = broken.read_again(&folders, SystemTime::now());
        assert_eq!((mended.skills["a"].description.as_str(), mended.findings.len()), ("Second.", 0));
        assert!(!mended.has_same_skills(&broken));
        fs::remove_file(&file).unwrap();
        assert!(mended.read_again(&folders, SystemTime::now()).skills.is_empty());
    }

    #[test]
    fn folders_over_the_limit_are_not_looked_at_and_that_is_said_once() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..9 {
            write(&root.path().join(format!("s{number}/SKILL.md")), &text(&format!("s{number}"), "One of nine."));
        }
        let before = SkillSet::default();
        let mut set = SkillSet::default();
        let now = SystemTime::UNIX_EPOCH;
        let (roots, trust) = (BTreeSet::new(), Trust::User);
        let mut walk =
            Walk { before: &before, now, set: &mut set, trust, roots: &roots, seen: BTreeSet::new(), most: 5 };
        walk.enter(root.path(), None, 0).unwrap();
        assert_eq!((set.skills.len(), set.findings.len(), set.findings[0].code), (4, 1, "skill-too-many"));
    }

    #[test]
    fn what_has_the_same_bytes_is_the_same_whatever_its_times() {
        let root = tempfile::tempdir().unwrap();
        let folders = [root.path().to_owned()];
        write(&root.path().join("a/SKILL.md"), &text("a", "First."));
        write(&root.path().join("a/notes.md"), "one");
        let first = load_folders(&folders);
        first.skills["a"].manifest();
        write(&root.path().join("a/SKILL.md"), &text("a", "First."));
        write(&root.path().join("a/notes.md"), "one");
        let again = first.read_again(&folders, SystemTime::now());
        assert!(first.has_same_skills(&again));
        // Within the precision of times, and of the same length.
        write(&root.path().join("a/notes.md"), "two");
        let changed = again.read_again(&folders, SystemTime::now());
        assert!(!changed.has_same_skills(&again));
        assert_ne!(changed.skills["a"].manifest(), again.skills["a"].manifest());
    }
}
