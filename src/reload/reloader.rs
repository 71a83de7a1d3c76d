//! Builds a snapshot when something changed, and publishes it. The first one is built like any other.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    task::spawn_blocking,
    time::{Instant, sleep, sleep_until},
};

use super::{
    disk::{Again, Disk, Files},
    places::Places,
    watch::Watcher,
};
use crate::{
    catalog::{Doubt, Snapshot, SnapshotStore, UpstreamFacts, UpstreamTools},
    config::{Config, Watch},
    model::{
        diagnostic::Severity,
        hidden::visible,
        limits::{self, FILE_POLL, FILE_QUIET, FILE_STORM},
    },
    upstream::{Link, Pool},
};

/// Quiet after a change of an upstream, so that those that start together make one snapshot.
const QUIET: Duration = Duration::from_millis(20);

/// The single writer.
#[derive(Debug)]
pub struct Reloader {
    /// What was read last.
    pub files: watch::Sender<Arc<Files>>,
    /// Names that no upstream tool may have.
    pub reserved: &'static [&'static str],
    /// Where snapshots go.
    pub store: Arc<SnapshotStore>,
    /// Where tools come from.
    pub pool: Arc<Pool>,
    /// Set once the upstreams had their time to start.
    pub settled: watch::Sender<bool>,
}

/// What upstreams offer.
type Offers = Vec<(UpstreamTools, UpstreamFacts)>;

/// Changes of files that are waited out together.
#[derive(Debug, Clone, Copy)]
struct Batch {
    begun: Instant,
    due: Instant,
}

impl Batch {
    /// One more change, now.
    fn with(batch: Option<Self>, now: Instant) -> Self {
        let begun = batch.map_or(now, |batch| batch.begun);
        Self { begun, due: (now + FILE_QUIET).min(begun + FILE_STORM) }
    }

    fn is_over(self, now: Instant) -> bool {
        now >= self.begun + FILE_STORM
    }
}

/// The files and who tells of their changes. Used away from the thread that serves everybody.
#[derive(Debug)]
struct Sight {
    disk: Disk,
    watcher: Watcher,
}

/// What one look at the files found.
struct Looked {
    files: Files,
    /// Whether there are folders now that nobody watched until now: what happens in them was not told.
    has_new_places: bool,
    is_polling: bool,
}

impl Sight {
    fn look(&mut self) -> Looked {
        self.watcher.renew();
        let files = self.disk.read();
        let has_new_places = self.watcher.watch(Places::of(self.disk.config_file(), &files));
        Looked { files, has_new_places, is_polling: self.watcher.is_polling }
    }
}

/// The files of a running gatekey.
struct Watched {
    sight: Arc<Mutex<Sight>>,
    wake: Arc<Notify>,
    batch: Option<Batch>,
    is_polling: bool,
}

impl Watched {
    fn new(again: Again, files: Files) -> Self {
        let wake = Arc::new(Notify::new());
        let watcher = Watcher::new(files.config.watch, Arc::clone(&wake));
        let sight = Arc::new(Mutex::new(Sight { disk: Disk::new(again, files), watcher }));
        // Between the first reading and the first watching files may have changed.
        Self { sight, wake, batch: Some(Batch::with(None, Instant::now())), is_polling: false }
    }

    /// Waits until the files must be read.
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    async fn is_due(&mut self) {
        loop {
            let batch = self.batch;
            let due = async {
                match batch {
                    Some(batch) => sleep_until(batch.due).await,
                    None if self.is_polling => sleep(FILE_POLL).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.wake.notified() => self.batch = Some(Batch::with(batch, Instant::now())),
                () = due => match batch {
                    Some(_) => return,
                    None if self.asked(|sight| sight.watcher.has_news()).await == Some(true) => {
                        // Whoever changes something may not be done.
                        self.batch = Some(Batch::with(None, Instant::now()));
                    }
                    None => {}
                },
            }
        }
    }

    /// Reads the files; `None` where they are still changing.
    async fn look(&mut self) -> Option<Files> {
        // What is told from here on begins a new batch.
        let batch = self.batch.take();
        let looked = self.asked(Sight::look).await?;
        self.is_polling = looked.is_polling;
        if !looked.has_new_places {
            return Some(looked.files);
        }
        let now = Instant::now();
        let is_over = batch.is_some_and(|batch| batch.is_over(now));
        self.batch = Some(Batch::with(batch.filter(|_| !is_over), now));
        is_over.then_some(looked.files)
    }

    async fn asked<T: Send + 'static>(&self, ask: impl FnOnce(&mut Sight) -> T + Send + 'static) -> Option<T> {
        let sight = Arc::clone(&self.sight);
        // What a panic leaves is compared with the disk at the next look.
        let asked = spawn_blocking(move || ask(&mut sight.lock().unwrap_or_else(PoisonError::into_inner)));
        asked.await.inspect_err(|error| tracing::error!(%error, "looking at the files failed")).ok()
    }
}

impl Reloader {
    /// Publishes whenever the upstreams' offers change, and whenever files do if they can be read `again`. The first time
    /// it waits until all upstreams had a chance, at most until `deadline`, so that names do not depend on which upstream
    /// starts first.
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    pub async fn run(self, deadline: Instant, again: Option<Again>) {
        let mut changes = self.pool.changes();
        self.pool.settled(deadline).await;
        changes.mark_unchanged();
        let files = Arc::clone(&self.files.borrow());
        let mut published = self.publish(&files, self.links()).await;
        self.settled.send_replace(true);
        let again = again.filter(|_| files.config.watch != Watch::Off);
        let mut watched = again.map(|again| Watched::new(again, Files::clone(&files)));
        loop {
            let due = async {
                match &mut watched {
                    Some(watched) => watched.is_due().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    sleep(QUIET).await;
                    changes.mark_unchanged();
                    let links = self.links();
                    if !is_same(&published, &offers(&links)) {
                        let files = Arc::clone(&self.files.borrow());
                        published = self.publish(&files, links).await;
                    }
                }
                () = due => {
                    if let Some(watched) = &mut watched
                        && let Some(files) = watched.look().await
                        && let Some(offers) = self.take(files).await
                    {
                        published = offers;
                    }
                }
            }
        }
    }

    fn links(&self) -> Vec<Arc<Link>> {
        self.pool.links().to_vec()
    }

    /// Takes files that were read again; publishes if that changes anything.
    async fn take(&self, files: Files) -> Option<Offers> {
        let before = Arc::clone(&self.files.borrow());
        for finding in files.findings.iter().filter(|finding| !before.findings.contains(finding)) {
            match finding.severity {
                Severity::Note => tracing::debug!("{finding}"),
                Severity::Warning | Severity::Error => tracing::warn!("{finding}"),
            }
        }
        let files = Arc::new(files);
        let has_changed = !files.is_same(&before);
        let mut published = None;
        if has_changed {
            let links = self.pool.links_for(&files.config.upstreams);
            published = Some(self.publish(&files, links).await);
            tracing::info!(generation = self.store.load().generation, "changed files are in use");
        }
        self.files.send_replace(files);
        published
    }

    /// Publishes a snapshot of `files` and of what `links` offer, which take the place of those before them.
    async fn publish(&self, files: &Arc<Files>, links: Vec<Arc<Link>>) -> Offers {
        let offers = offers(&links);
        let generation = self.store.load().generation + 1;
        let (files, reserved, given) = (Arc::clone(files), self.reserved, offers.clone());
        match spawn_blocking(move || files.snapshot(generation, given, reserved)).await {
            Ok(snapshot) => {
                let removed = self.pool.adopt(links);
                tell_withheld(&self.store.load(), &snapshot);
                self.store.publish(snapshot);
                for link in removed {
                    self.pool.retire(link);
                }
                tracing::debug!(generation, "snapshot is published");
            }
            Err(error) => tracing::error!(%error, "the snapshot cannot be built"),
        }
        offers
    }
}

/// Somebody must look at them.
fn tell_withheld(before: &Snapshot, now: &Snapshot) {
    let known: HashSet<_> = before.withheld().map(|tool| (&tool.upstream, &tool.tool.name)).collect();
    for tool in now.withheld().filter(|tool| !known.contains(&(&tool.upstream, &tool.tool.name))) {
        let name = visible(tool.tool.name.as_str());
        let why = match &tool.doubt {
            Some(Doubt::Changed) => "it has changed since it was accepted",
            Some(Doubt::New) => "it is new",
            Some(Doubt::Imitates(_)) => "its name imitates another one",
            None => continue,
        };
        tracing::warn!(upstream = %tool.upstream, tool = name, why, "a tool is withheld");
    }
}

fn offers(links: &[Arc<Link>]) -> Offers {
    links.iter().map(|link| link.offer()).collect()
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
