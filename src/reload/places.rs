//! Where to look for changes: the folders of files and of the links that lead to them, and what in them matters.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use notify::{
    Event, EventKind,
    event::{AccessKind, AccessMode},
};

use super::disk::Files;
use crate::model::limits::{FILE_LINKS, FILE_TIMES};

/// Folders, each with the names that matter in it; all do where there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Places(BTreeMap<PathBuf, Option<BTreeSet<OsString>>>);

impl Places {
    /// Where changes of `files` and of the config file would be seen.
    pub(super) fn of(config: Option<&Path>, files: &Files) -> Self {
        let mut places = Self::default();
        for folder in &files.skills.folders {
            places.0.insert(absolute(folder), None);
        }
        let config_of = &files.config;
        let folders = config_of.skills.iter().map(|folder| &folder.path);
        let single = config_of.maps.iter().chain(folders).chain(&files.skills.links);
        let single = single.chain(&config_of.pins.file).chain(&config_of.approvals).chain(&config_of.scan.patterns);
        for path in config.into_iter().chain(single.map(PathBuf::as_path)) {
            places.add(&absolute(path), FILE_LINKS);
        }
        places
    }

    /// A path changes where it is, where a link on its way is changed for another, and where it or its folder appears.
    fn add(&mut self, path: &Path, n_links: usize) {
        for part in path.ancestors() {
            let Some((folder, name)) = part.parent().zip(part.file_name()) else { continue };
            match fs::symlink_metadata(part) {
                Ok(data) if data.is_symlink() => {
                    self.name(folder, name);
                    if let Some(n_links) = n_links.checked_sub(1)
                        && let Ok(target) = fs::read_link(part)
                    {
                        self.add(&folder.join(target), n_links);
                    }
                }
                Ok(_) if part != path => {}
                Ok(_) => self.name(folder, name),
                Err(_) if folder.is_dir() => self.name(folder, name),
                Err(_) => {}
            }
        }
    }

    fn name(&mut self, folder: &Path, name: &std::ffi::OsStr) {
        if let Some(names) = self.0.entry(folder.into()).or_insert_with(|| Some(BTreeSet::new())) {
            names.insert(name.into());
        }
    }

    /// The folders.
    pub(super) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    /// Whether news of the system may be about something that matters. When in doubt it is.
    pub(super) fn is_concerned(&self, event: &Event) -> bool {
        match event.kind {
            _ if event.need_rescan() => return true,
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => {}
            // We ourselves read these files.
            EventKind::Access(_) => return false,
            _ => {}
        }
        let matters = |path: &PathBuf| {
            let (folder, name) = (path.parent().and_then(|folder| self.0.get(folder)), path.file_name());
            match (folder, name) {
                (Some(Some(names)), Some(name)) => names.contains(name),
                _ => true,
            }
        };
        event.paths.is_empty() || event.paths.iter().any(matters)
    }

    /// What everything that matters looks like from outside; `None` where something changed so recently that it may change
    /// again without looking other.
    pub(super) fn stamp(&self, now: SystemTime) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        let mut is_old = true;
        let mut add = |path: &Path| {
            path.hash(&mut hasher);
            // Of what a link leads to, which changes when the link does.
            let Ok(data) = fs::metadata(path) else { return };
            let changed = data.modified().ok();
            is_old &= changed.is_some_and(|changed| changed + FILE_TIMES < now);
            (data.len(), changed, data.is_dir()).hash(&mut hasher);
            #[cfg(unix)]
            std::os::unix::fs::MetadataExt::ino(&data).hash(&mut hasher);
        };
        for (folder, names) in &self.0 {
            match names {
                Some(names) => names.iter().for_each(|name| add(&folder.join(name))),
                None => {
                    let mut entries: Vec<PathBuf> =
                        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
                    entries.sort();
                    entries.iter().for_each(|entry| add(entry));
                }
            }
        }
        is_old.then(|| hasher.finish())
    }

    /// Whether any of the folders is on a file system whose changes others make, of which this machine is not told.
    #[cfg(target_os = "linux")]
    pub(super) fn is_remote(&self) -> bool {
        /// NFS, SMB (three), FUSE (also sshfs and virtiofs), 9P (WSL), Ceph, AFS, VirtualBox: the numbers of
        /// `statfs(2)` and of the kernel's `magic.h`.
        const REMOTE: [u32; 10] = [
            0x6969,
            0x517B,
            0xFE53_4D42,
            0xFF53_4D42,
            0x6573_5546,
            0x0102_1997,
            0x00C3_6400,
            0x5346_414F,
            0x6B41_4653,
            0x786F_4256,
        ];
        let kind = |folder: &Path| rustix::fs::statfs(folder).map(|found| found.f_type).ok();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the numbers have 32 bits, their type differs between machines"
        )]
        self.folders().filter_map(kind).any(|kind| REMOTE.contains(&(kind as u32)))
    }

    /// Elsewhere the system tells of changes on network file systems as far as it can.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn is_remote(&self) -> bool {
        false
    }
}

/// By the path as the user wrote it: links stay in it.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, Flag, ModifyKind};

    use super::*;
    use crate::config::Config;

    /// The folders and names of a config file in a temporary folder, without that folder's path.
    fn shown(places: &Places, root: &Path) -> Vec<String> {
        let below = places.0.iter().filter_map(|(folder, names)| Some((folder.strip_prefix(root).ok()?, names)));
        let names = |names: &BTreeSet<OsString>| {
            names.iter().map(|name| name.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        below
            .map(|(folder, of)| format!("{}: {}", folder.display(), of.as_ref().map_or("*".to_owned(), names)))
            .collect()
    }

    fn places(root: &Path) -> Places {
        let config = Config {
            maps: vec![root.join("maps/a.toml"), root.join("not/yet/b.toml")],
            skills: vec![root.join("skills").into()],
            ..Config::default()
        };
        Places::of(Some(&root.join("gatekey.toml")), &Files::read(config))
    }

    #[test]
    fn files_are_watched_by_name_and_skills_with_all_but_noise() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        for folder in ["maps", "skills/a/references", "skills/node_modules/b"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let places = places(&root);
        insta::assert_snapshot!(shown(&places, &root).join("\n"), @r"
        : gatekey.toml not skills
        maps: a.toml
        skills: *
        skills/a: *
        skills/a/references: *
        ");
        let created = |path: &str| Event::new(EventKind::Create(CreateKind::Any)).add_path(root.join(path));
        for (event, expected) in [
            (created("gatekey.toml"), true),
            (created("journal.log"), false),
            (created("journal.log").set_flag(Flag::Rescan), true),
            (created("skills/a/new"), true),
            (created("elsewhere/x"), true),
            (Event::new(EventKind::Modify(ModifyKind::Any)), true),
            (Event::new(EventKind::Access(AccessKind::Read)).add_path(root.join("gatekey.toml")), false),
        ] {
            assert_eq!(places.is_concerned(&event), expected, "{event:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_on_the_way_are_watched_where_they_are_and_where_they_lead() {
        use std::os::unix::fs::symlink;
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("maps/..1")).unwrap();
        fs::write(root.join("maps/..1/a.toml"), "version = 1").unwrap();
        symlink("..1", root.join("maps/..data")).unwrap();
        symlink("..data/a.toml", root.join("maps/a.toml")).unwrap();
        // A circle ends.
        symlink("skills", root.join("skills")).unwrap();
        insta::assert_snapshot!(shown(&places(&root), &root).join("\n"), @r"
        : gatekey.toml not skills
        maps: ..1 ..data a.toml
        maps/..data: a.toml
        ");
    }

    #[test]
    fn a_stamp_differs_when_a_file_does_and_is_none_while_it_may_change_unseen() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        fs::write(root.join("gatekey.toml"), "one").unwrap();
        let places = places(&root);
        let later = SystemTime::now() + 2 * FILE_TIMES;
        let first = places.stamp(later);
        assert!(first.is_some() && places.stamp(SystemTime::now()).is_none());
        assert_eq!(places.stamp(later), first);
        fs::write(root.join("gatekey.toml"), "more").unwrap();
        assert_ne!(places.stamp(later), first);
    }
}
