//! Builds a snapshot when something changed, and publishes it. The first one is built like any other.

use std::{path::Path, sync::Arc, time::Duration};

use tokio::{sync::watch, time::Instant};

use crate::{
    catalog::{Inputs, Snapshot, SnapshotStore, UpstreamFacts, UpstreamTools},
    config::Config,
    gate::map::GatingMap,
    model::{
        diagnostic::{Diagnostic, Place},
        limits,
    },
    skill::{SkillSet, load_folders},
    upstream::Pool,
};

/// Quiet after a change of an upstream, so that those that start together make one snapshot.
const QUIET: Duration = Duration::from_millis(20);

/// What was read from disk.
#[derive(Debug, Clone)]
pub struct Files {
    /// Checked.
    pub config: Arc<Config>,
    /// Absent where the config names no map, or only broken ones.
    pub map: Option<Arc<GatingMap>>,
    /// From the config's folders.
    pub skills: Arc<SkillSet>,
    /// What was wrong with maps and skills.
    pub findings: Vec<Diagnostic>,
}

impl Files {
    /// Reads the maps and skills that `config` names. A broken map leaves its part of the gate closed.
    pub fn read(config: Config) -> Self {
        let mut map = GatingMap::default();
        let mut findings = Vec::new();
        for file in &config.maps {
            let joined = match std::fs::read_to_string(file) {
                Ok(text) => map.join(file, text),
                Err(error) => Err(vec![unreadable(file, &error)]),
            };
            findings.extend(joined.err().unwrap_or_default());
        }
        let skills = load_folders(&config.skills);
        findings.extend(skills.findings.iter().cloned());
        let map = (!config.maps.is_empty()).then(|| Arc::new(map));
        Self { config: Arc::new(config), map, skills: Arc::new(skills), findings }
    }

    /// Makes a snapshot of this and of what upstreams offer.
    pub fn snapshot(
        &self,
        generation: u64,
        upstreams: Vec<(UpstreamTools, UpstreamFacts)>,
        reserved: &[&str],
    ) -> Snapshot {
        let (config, map, skills) = (Arc::clone(&self.config), self.map.clone(), Arc::clone(&self.skills));
        Snapshot::build(Inputs { generation, config, map, skills, upstreams }, reserved)
    }

    /// What the upstreams of the config offer before any of them was asked: nothing, under their names.
    pub fn nothing_yet(&self) -> Vec<(UpstreamTools, UpstreamFacts)> {
        let empty = |(index, upstream): (usize, &crate::config::Upstream)| {
            let (name, prefix) = (upstream.name.clone(), upstream.prefix.clone());
            (UpstreamTools { index, name, prefix, tools: Arc::new([]) }, UpstreamFacts::default())
        };
        self.config.upstreams.iter().enumerate().map(empty).collect()
    }
}

fn unreadable(file: &Path, error: &std::io::Error) -> Diagnostic {
    let place = Place { file: file.into(), ..Place::default() };
    Diagnostic::error("config-syntax", format!("gating map cannot be read: {error}")).at(place)
}

/// The single writer.
#[derive(Debug)]
pub struct Reloader {
    /// Read at the start.
    pub files: Files,
    /// Names that no upstream tool may have.
    pub reserved: &'static [&'static str],
    /// Where snapshots go.
    pub store: Arc<SnapshotStore>,
    /// Where tools come from.
    pub pool: Arc<Pool>,
    /// Set once the upstreams had their time to start.
    pub settled: watch::Sender<bool>,
}

impl Reloader {
    /// Publishes whenever the upstreams' offers change. The first time it waits until all had a chance, at most until
    /// `deadline`, so that names do not depend on which upstream starts first.
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    pub async fn run(self, deadline: Instant) {
        let mut changes = self.pool.changes();
        self.pool.settled(deadline).await;
        changes.mark_unchanged();
        let mut published = self.publish();
        self.settled.send_replace(true);
        while changes.changed().await.is_ok() {
            tokio::time::sleep(QUIET).await;
            changes.mark_unchanged();
            let offers = self.offers();
            if !is_same(&published, &offers) {
                published = self.publish();
            }
        }
    }

    fn offers(&self) -> Vec<(UpstreamTools, UpstreamFacts)> {
        self.pool.links().iter().map(|link| link.offer()).collect()
    }

    fn publish(&self) -> Vec<(UpstreamTools, UpstreamFacts)> {
        let offers = self.offers();
        let generation = self.store.load().generation + 1;
        self.store.publish(self.files.snapshot(generation, offers.clone(), self.reserved));
        tracing::debug!(generation, "snapshot is published");
        offers
    }
}

/// How long the upstreams of `config` have until the first list is answered without them.
pub(crate) fn start_deadline(config: &Config, started: Instant) -> Instant {
    started + config.start_wait.min(limits::HANDSHAKE)
}

fn is_same(a: &[(UpstreamTools, UpstreamFacts)], b: &[(UpstreamTools, UpstreamFacts)]) -> bool {
    let digests = |tools: &UpstreamTools| tools.tools.iter().map(|tool| tool.digest.clone()).collect::<Vec<_>>();
    a.len() == b.len()
        && a.iter().zip(b).all(|((a_tools, a_facts), (b_tools, b_facts))| {
            a_facts == b_facts && (Arc::ptr_eq(&a_tools.tools, &b_tools.tools) || digests(a_tools) == digests(b_tools))
        })
}
