//! Config, maps and skills as they are on disk. Read again, what broke keeps its last good version, and says why.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use super::vetting::Vetting;
use crate::{
    catalog::{Inputs, Snapshot, UpstreamFacts, UpstreamTools},
    config::{Config, Loaded},
    gate::map::GatingMap,
    lock::Pinned,
    model::diagnostic::{Diagnostic, Place},
    skill::{SkillSet, load_folders},
};

/// What was read from disk.
#[derive(Debug, Clone)]
pub struct Files {
    /// Checked.
    pub config: Arc<Config>,
    /// Absent where the config names no map, or only broken ones.
    pub map: Option<Arc<GatingMap>>,
    /// From the config's folders.
    pub skills: Arc<SkillSet>,
    /// What is thought of them.
    pub vetting: Vetting,
    /// What was accepted of upstreams; absent where nothing is pinned.
    pub pinned: Option<Arc<Pinned>>,
    /// What was wrong with maps, skills and the lock, and with the config where it was read again.
    pub findings: Vec<Diagnostic>,
}

impl Files {
    /// Reads the maps and skills that `config` names. A broken map leaves its part of the gate closed.
    pub fn read(config: Config) -> Self {
        let mut map = GatingMap::default();
        let mut findings = Vec::new();
        for (file, text) in config.maps.iter().zip(texts(&config.maps)) {
            findings.extend(join(&mut map, file, text).err().unwrap_or_default());
        }
        let skills = load_folders(&config.skills);
        findings.extend(skills.findings.iter().cloned());
        let map = (!config.maps.is_empty()).then(|| Arc::new(map));
        let (pinned, finding) = Pinned::read(&config.pins);
        findings.extend(finding);
        let (vetting, found) = Vetting::new(&config, &skills, None);
        findings.extend(found);
        Self {
            config: Arc::new(config),
            map,
            skills: Arc::new(skills),
            vetting,
            pinned: pinned.map(Arc::new),
            findings,
        }
    }

    /// Makes a snapshot of this and of what upstreams offer.
    pub fn snapshot(
        &self,
        generation: u64,
        upstreams: Vec<(UpstreamTools, UpstreamFacts)>,
        reserved: &[&str],
    ) -> Snapshot {
        let (config, map, skills) = (Arc::clone(&self.config), self.map.clone(), Arc::clone(&self.skills));
        let Vetting { trust, withheld, scanner, .. } = self.vetting.clone();
        let unaccepted = self.pinned.as_ref().map(|pinned| pinned.unaccepted(&upstreams)).unwrap_or_default();
        let inputs = Inputs { generation, config, map, skills, trust, withheld, scanner, upstreams, unaccepted };
        Snapshot::build(inputs, reserved)
    }

    /// What the upstreams of the config offer before any of them was asked: nothing, under their names.
    pub fn nothing_yet(&self) -> Vec<(UpstreamTools, UpstreamFacts)> {
        let empty = |(index, upstream): (usize, &crate::config::Upstream)| {
            let (name, prefix) = (upstream.name.clone(), upstream.prefix.clone());
            (UpstreamTools { index, name, prefix, tools: Arc::new([]) }, UpstreamFacts::default())
        };
        self.config.upstreams.iter().enumerate().map(empty).collect()
    }

    /// Whether a snapshot of `other` would be the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.config == other.config
            && self.map == other.map
            && self.pinned == other.pinned
            && self.vetting.is_same(&other.vetting)
            && self.skills.has_same_skills(&other.skills)
    }
}

/// How the config is read again.
pub struct Again {
    /// The config file; where there is none, only maps and skills are read again.
    pub file: Option<PathBuf>,
    /// What was found in it at the start.
    pub findings: Vec<Diagnostic>,
    /// Makes a checked config of its text.
    pub read: Box<dyn Fn(String) -> Loaded + Send>,
}

impl Again {
    /// For what is not from a config file.
    pub fn without_config() -> Self {
        let read = |_text| Loaded { config: None, findings: Vec::new() };
        Self { file: None, findings: Vec::new(), read: Box::new(read) }
    }
}

impl std::fmt::Debug for Again {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Again").field("file", &self.file).finish_non_exhaustive()
    }
}

/// A file's text, or why it cannot be read.
type Text = Result<String, String>;

/// What is in use, and what was read of it last, good or not.
#[derive(Debug)]
pub(super) struct Disk {
    again: Again,
    files: Files,
    config_text: Option<Text>,
    map_texts: Option<(Vec<PathBuf>, Vec<Text>)>,
    map_findings: Vec<Diagnostic>,
    lock_finding: Option<Diagnostic>,
}

impl Disk {
    /// Starts with what was read at the start.
    pub(super) fn new(again: Again, files: Files) -> Self {
        Self { again, files, config_text: None, map_texts: None, map_findings: Vec::new(), lock_finding: None }
    }

    pub(super) fn config_file(&self) -> Option<&Path> {
        self.again.file.as_deref()
    }

    /// Reads everything again; only what changed is parsed.
    pub(super) fn read(&mut self) -> Files {
        self.read_config();
        self.read_maps();
        self.read_lock();
        let skills = self.files.skills.read_again(&self.files.config.skills, SystemTime::now());
        let mut findings = self.again.findings.clone();
        findings.extend(self.map_findings.iter().chain(&skills.findings).chain(&self.lock_finding).cloned());
        let (vetting, found) = Vetting::new(&self.files.config, &skills, Some(&self.files.vetting));
        findings.extend(found);
        self.files = Files { skills: Arc::new(skills), vetting, findings, ..self.files.clone() };
        self.files.clone()
    }

    fn read_config(&mut self) {
        let Some(file) = &self.again.file else { return };
        let text = read(file);
        if self.config_text.as_ref() == Some(&text) {
            return;
        }
        self.config_text = Some(text.clone());
        let Loaded { config, mut findings } = match text {
            Ok(text) => (self.again.read)(text),
            Err(error) => Loaded { config: None, findings: vec![unreadable(file, "", &error)] },
        };
        match config {
            Some(mut config) => {
                for name in config.keep_fixed(&self.files.config) {
                    let message = format!("`{name}` cannot be changed while clients are served, it stays as it was");
                    let finding = Diagnostic::warning("config-restart", message).at(whole(file));
                    findings.push(finding.hint("start gatekey again"));
                }
                if config != *self.files.config {
                    self.files.config = Arc::new(config);
                }
            }
            None => say(&mut findings, "the config stays as it was read last"),
        }
        self.again.findings = findings;
    }

    fn read_lock(&mut self) {
        let (pinned, finding) = Pinned::read(&self.files.config.pins);
        // A lock that is half written takes nobody's tools away.
        if finding.is_none() && self.files.pinned.as_deref() != pinned.as_ref() {
            self.files.pinned = pinned.map(Arc::new);
        }
        self.lock_finding = finding.map(|finding| match &self.files.pinned {
            Some(_) => finding.hint("what was accepted stays as it was read last"),
            None => finding,
        });
    }

    fn read_maps(&mut self) {
        let files = &self.files.config.maps;
        let texts = texts(files);
        if self.map_texts.as_ref().is_some_and(|(known, known_texts)| known == files && *known_texts == texts) {
            return;
        }
        let mut map = GatingMap::default();
        let mut findings = Vec::new();
        for (file, text) in files.iter().zip(texts.iter().cloned()) {
            findings.extend(join(&mut map, file, text).err().unwrap_or_default());
        }
        let map = (!files.is_empty()).then(|| Arc::new(map));
        self.map_texts = Some((files.clone(), texts));
        if findings.is_empty() {
            if self.files.map != map {
                self.files.map = map;
            }
        } else {
            say(&mut findings, "the gate stays as it was read last");
        }
        self.map_findings = findings;
    }
}

fn texts(files: &[PathBuf]) -> Vec<Text> {
    files.iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> Text {
    std::fs::read_to_string(file).map_err(|error| error.to_string())
}

fn join(map: &mut GatingMap, file: &Path, text: Text) -> Result<(), Vec<Diagnostic>> {
    match text {
        Ok(text) => map.join(file, text),
        Err(error) => Err(vec![unreadable(file, "gating map ", &error)]),
    }
}

fn unreadable(file: &Path, what: &str, error: &str) -> Diagnostic {
    Diagnostic::error("config-syntax", format!("{what}cannot be read: {error}")).at(whole(file))
}

fn whole(file: &Path) -> Place {
    Place { file: file.into(), ..Place::default() }
}

/// Says with every error what is used instead, where nothing better is known.
fn say(findings: &mut [Diagnostic], instead: &str) {
    for finding in findings.iter_mut().filter(|finding| finding.is_error() && finding.hint.is_none()) {
        finding.hint = Some(instead.to_owned());
    }
}
