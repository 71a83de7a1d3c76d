//! Floor 5, all wiring: what is started in which order, and how it stops.

use std::{
    io,
    path::PathBuf,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use data_encoding::HEXLOWER;
use tokio::{
    sync::watch,
    task::{JoinSet, spawn_blocking},
    time::{Instant, timeout},
};

use crate::{
    catalog::{Snapshot, SnapshotStore},
    config::{Config, Transport},
    gate::key::Secret,
    gateway::{Gateway, META_TOOLS},
    model::{
        diagnostic::Diagnostic,
        limits::{CLIENT_QUEUE_BYTES, DRAIN, HANDSHAKE, LAST_ANSWERS, SENT_EVERY, SENT_PAUSE, SENT_TRIES},
        principal::Principal,
    },
    reload::{Again, Files, Reloader, start_deadline},
    session::{Session, write_sent},
    upstream::{Phase, Pool},
    wire::{
        guard::Guard,
        outbox::Outbox,
        stdio::{Input, Output},
        timer,
    },
};

/// A running gatekey, without clients.
#[derive(Debug)]
pub struct App {
    /// The data plane.
    pub gateway: Arc<Gateway>,
    /// The upstreams.
    pub pool: Arc<Pool>,
    /// The current truth.
    pub store: Arc<SnapshotStore>,
    /// What was read last.
    files: watch::Receiver<Arc<Files>>,
    settled: watch::Receiver<bool>,
    tasks: JoinSet<()>,
    guard: Arc<Guard>,
    guarding: JoinSet<()>,
    sent: Option<SentFile>,
}

/// Where what clients were sent is written.
#[derive(Debug, Clone)]
struct SentFile {
    gateway: Arc<Gateway>,
    file: PathBuf,
    /// Tells its sessions from those of others.
    process: String,
}

impl SentFile {
    /// Another process may just be writing; then a few moments later.
    async fn write(&self) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let (records, n_ended) = self.gateway.sent_records(&self.process, at);
        if records.is_empty() {
            return;
        }
        for _ in 0..SENT_TRIES {
            let (file, records) = (self.file.clone(), records.clone());
            match spawn_blocking(move || write_sent(&file, &records)).await {
                Ok(Ok(true)) => return self.gateway.forget_ended(n_ended),
                Ok(Ok(false)) => timer::sleep(SENT_PAUSE).await,
                Ok(Err(error)) => {
                    tracing::debug!(%error, "what clients were sent is not written down");
                    return;
                }
                Err(error) => return tracing::error!(%error, "writing down what clients were sent failed"),
            }
        }
    }
}

impl App {
    /// Reads maps and skills and starts the upstreams; must be called within a runtime. Files are watched, and read again
    /// when they change, where `again` says how.
    ///
    /// # Errors
    /// There is no randomness for the keys' secret.
    pub fn start(config: Config, again: Option<Again>) -> io::Result<Self> {
        let started = Instant::now();
        let secret = secret(&config)?;
        let deadline = start_deadline(&config, started);
        let line_limit_bytes = config.line_limit_bytes;
        let guard = Arc::new(Guard::default());
        let mut guarding = JoinSet::new();
        if config.upstreams.iter().any(|upstream| matches!(upstream.transport, Ok(Transport::Stdio(_)))) {
            // Before the first child. Without it only a killed gatekey leaves something behind.
            match guard.start() {
                Ok(process) => drop(guarding.spawn(Arc::clone(&guard).keep(process))),
                Err(error) => tracing::warn!(%error, "the guard of child processes cannot be started"),
            }
        }
        let pool = Arc::new(Pool::new(&config.upstreams, line_limit_bytes, Arc::clone(&guard)));
        let mut files = Files::read(config);
        files.findings.extend(again.iter().flat_map(|again| again.findings.iter().cloned()));
        let store = Arc::new(SnapshotStore::new(files.snapshot(0, files.nothing_yet(), META_TOOLS)));
        let (settled, is_settled) = watch::channel(false);
        let gateway = Arc::new(Gateway::new(Arc::clone(&store), Arc::clone(&pool), secret, is_settled.clone()));
        pool.start(Arc::clone(&gateway) as _);
        let (files_sender, files) = watch::channel(Arc::new(files));
        let reloader = Reloader {
            files: files_sender,
            reserved: META_TOOLS,
            store: Arc::clone(&store),
            pool: Arc::clone(&pool),
            settled,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(reloader.run(deadline, again));
        tasks.spawn(Arc::clone(&gateway).follow());
        Ok(Self { gateway, pool, store, files, settled: is_settled, tasks, guard, guarding, sent: None })
    }

    /// Lets search know what there is before somebody searches; for those who serve.
    pub fn learn(&mut self) {
        self.tasks.spawn(Arc::clone(&self.gateway).learn());
    }

    /// Keeps the file of what clients were sent, now and when it ends.
    pub fn keep_sent(&mut self, file: PathBuf) {
        let mut bytes = [0; 4];
        // Without randomness the name of the process is only more often that of another one.
        getrandom::fill(&mut bytes).ok();
        let process = HEXLOWER.encode(&bytes);
        let sent = SentFile { gateway: Arc::clone(&self.gateway), file, process };
        let keeping = sent.clone();
        self.tasks.spawn(async move {
            loop {
                // Not the runtime's timer: one that stands there makes every call dearer.
                timer::sleep(SENT_EVERY).await;
                keeping.write().await;
            }
        });
        self.sent = Some(sent);
    }

    /// Shows the newest snapshot to `look` once every upstream is up or has failed, and each time there is another one;
    /// it may take its time.
    pub fn on_snapshots(&mut self, mut look: impl FnMut(&Snapshot) + Send + 'static) {
        let (answered, store) = (self.answered(), Arc::clone(&self.store));
        self.tasks.spawn(async move {
            answered.await;
            let mut generations = store.watch();
            loop {
                let snapshot = store.load();
                let looked = spawn_blocking(move || {
                    look(&snapshot);
                    look
                });
                look = match looked.await {
                    Ok(look) => look,
                    Err(error) => return tracing::error!(%error, "following the snapshots failed"),
                };
                if generations.changed().await.is_err() {
                    return;
                }
            }
        });
    }

    /// What was read last.
    pub fn files(&self) -> Arc<Files> {
        Arc::clone(&self.files.borrow())
    }

    /// Waits until the first snapshot with the upstreams' tools is out.
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    pub async fn settled(&self) {
        // The sender lives in a task of ours; if that is gone there is nothing to wait for.
        self.settled.clone().wait_for(|is_settled| *is_settled).await.ok();
    }

    /// Waits until every upstream is up or has failed, however long its handshake may take, and its tools are published.
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    pub async fn all_answered(&self) {
        self.answered().await;
    }

    fn answered(&self) -> impl Future<Output = ()> + Send + use<> {
        let (mut settled, pool, gateway) = (self.settled.clone(), Arc::clone(&self.pool), Arc::clone(&self.gateway));
        async move {
            // As in `settled`.
            settled.wait_for(|is_settled| *is_settled).await.ok();
            pool.settled(Instant::now() + HANDSHAKE).await;
            gateway.published().await;
        }
    }

    /// Whether an upstream is down.
    pub fn has_failed_upstreams(&self) -> bool {
        self.pool.links().iter().any(|link| matches!(link.phase(), Phase::Waiting(_) | Phase::Unusable(_)))
    }

    /// Everything that was found about maps, skills, upstreams and names, errors first.
    pub fn findings(&self) -> Vec<Diagnostic> {
        let files = self.files();
        let mut found = files.findings.clone();
        for link in self.pool.links().iter() {
            let view = link.view();
            found.extend(view.findings);
            if let Phase::Waiting(reason) | Phase::Unusable(reason) = view.phase {
                let message = format!("upstream `{}` is down: {reason}", link.name());
                found.push(Diagnostic::error("upstream-unreachable", message));
            }
        }
        let mut of_snapshot = self.store.load().findings();
        if self.has_failed_upstreams() || !files.config.left_out.is_empty() {
            // A prefix or rule may be for the tools of an upstream that nobody has seen.
            of_snapshot.retain(|finding| !["gate-dead-prefix", "rule-dead"].contains(&finding.code));
        }
        found.extend(of_snapshot);
        found.sort();
        found
    }

    /// Serves one client over the given streams until it goes away or `stop` is ready, then lets its calls in flight end.
    ///
    /// # Cancel safety
    /// Must run to its end, or answers that are on their way are lost.
    pub async fn serve(&self, principal: Principal, input: Input, output: Output, stop: impl Future<Output = ()>) {
        let outbox = Arc::new(Outbox::new(CLIENT_QUEUE_BYTES));
        let mut session = Session::new(Arc::clone(&outbox), principal);
        session.is_alone = true;
        let session = Arc::new(session);
        let mut writer = JoinSet::new();
        writer.spawn(async move {
            if let Err(error) = outbox.write_to(output).await {
                tracing::debug!(%error, "writing to the client failed");
            }
        });
        let is_stopped = tokio::select! {
            () = self.gateway.serve(&session, input) => false,
            // A client that reads no more is gone.
            _ended = writer.join_next() => false,
            () = stop => true,
        };
        self.pool.drained(if is_stopped { DRAIN } else { LAST_ANSWERS }).await;
        self.gateway.close(&session);
        session.outbox().close();
        // A client that does not read what it asked for is not waited for.
        timeout(LAST_ANSWERS, writer.join_next()).await.ok();
        writer.shutdown().await;
    }

    /// Ends everything: first what starts upstreams, then the upstreams.
    ///
    /// # Cancel safety
    /// Must run to its end; dropped, it leaves processes behind until the guard ends them.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
        if let Some(sent) = &self.sent {
            sent.write().await;
        }
        self.pool.stop().await;
        self.guard.close();
        // It ends at once where nothing is left to guard.
        drop(self.guarding.join_next().await);
    }
}

fn secret(config: &Config) -> io::Result<Secret> {
    if let Some(secret) = &config.key_secret {
        return Ok(Secret::new(secret.as_bytes()));
    }
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(Secret::new(bytes))
}
