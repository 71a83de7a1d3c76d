//! One upstream's life: start, greet, list, serve, end, and start again after a pause. What it is at the moment stands in
//! its [`View`]; calls go through its [`Peer`].

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher as _, Hasher as _},
    io,
    process::ExitStatus,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicUsize},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::{
    handshake::{HandshakeError, Hello, Memory, greet, params},
    lists::list_tools,
};
use crate::{
    catalog::{UpstreamFacts, UpstreamTools},
    config::{Transport, Upstream},
    model::{
        diagnostic::Diagnostic,
        limits::{
            BACKOFF_FIRST, BACKOFF_MOST, BACKOFF_RESET, BACKOFF_SERVED, LIST_QUIET, LIST_STORM, SUBSCRIPTION, SWEEP,
            UPSTREAM_QUEUE_BYTES,
        },
        name::UpstreamName,
        program::Program,
        tool::Tool,
    },
    wire::{
        child::{Server, StderrRing},
        era::Era,
        guard::Guard,
        peer::{CallError, Peer, Relay, Reply},
    },
};

/// After one of the two, a server's exit and the end of its stdout, the other is waited for this long.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Where an upstream stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Being started, greeted and listed.
    Starting,
    /// Takes calls.
    Ready,
    /// Failed or ended, for this reason; started again after a pause.
    Waiting(String),
    /// Cannot be started at all, for this reason.
    Unusable(String),
}

/// What is known of an upstream.
#[derive(Debug, Clone)]
pub struct View {
    /// Where it stands.
    pub phase: Phase,
    /// How it speaks, once it was greeted.
    pub era: Option<Era>,
    /// What it said of itself, last.
    pub facts: UpstreamFacts,
    /// Its tools, as last listed; kept while it is down.
    pub tools: Arc<[Arc<Tool>]>,
    /// What was wrong with its list.
    pub findings: Vec<Diagnostic>,
}

/// Why a relayed call has no answer of its upstream's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The upstream ended, for this reason.
    Ended(String),
    /// Nothing came in time; it was told that the call is given up.
    TimedOut,
    /// The answer is no JSON-RPC message.
    Unreadable,
    /// The answer is over the line limit.
    TooLong {
        /// Its length.
        size_bytes: usize,
    },
}

/// Told of each relayed call that has no answer of its upstream's. Called from the links' tasks, so it must not wait.
pub type OnFailure = fn(&UpstreamName, &Relay, &Failure);

/// What all links share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Grows with every change of a view.
    pub(super) changes: watch::Sender<u64>,
    pub(super) on_failure: OnFailure,
    pub(super) guard: Option<Arc<Guard>>,
    pub(super) line_limit_bytes: usize,
}

/// One upstream.
#[derive(Debug)]
pub struct Link {
    config: Upstream,
    view: Mutex<View>,
    /// Set while it takes calls.
    peer: ArcSwapOption<Peer>,
    pub(super) shared: Arc<Shared>,
    /// The upstream's own news that its list changed.
    pub(super) list_changed: Notify,
    /// Lines that were no messages.
    pub(super) n_noise: AtomicUsize,
}

/// How one run of the server ended.
struct Ended {
    reason: String,
    was_ready: bool,
    was_probed: bool,
}

impl Link {
    pub(super) fn new(config: Upstream, shared: Arc<Shared>) -> Self {
        let view = View {
            phase: Phase::Starting,
            era: None,
            facts: UpstreamFacts::default(),
            tools: Arc::new([]),
            findings: Vec::new(),
        };
        let (view, peer) = (Mutex::new(view), ArcSwapOption::empty());
        Self { config, view, peer, shared, list_changed: Notify::new(), n_noise: AtomicUsize::new(0) }
    }

    /// Its config.
    pub fn config(&self) -> &Upstream {
        &self.config
    }

    /// Its name.
    pub fn name(&self) -> &UpstreamName {
        &self.config.name
    }

    fn locked(&self) -> MutexGuard<'_, View> {
        // Nothing in here can panic half-way through a change.
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of it.
    pub fn view(&self) -> View {
        self.locked().clone()
    }

    /// Where it stands.
    pub fn phase(&self) -> Phase {
        self.locked().phase.clone()
    }

    /// Its tools and what it said of itself, for the catalogue.
    pub fn offer(&self) -> (UpstreamTools, UpstreamFacts) {
        let view = self.locked();
        let (name, prefix) = (self.config.name.clone(), self.config.prefix.clone());
        (UpstreamTools { name, prefix, tools: Arc::clone(&view.tools) }, view.facts.clone())
    }

    /// The connection, while it takes calls.
    pub fn peer(&self) -> Option<Arc<Peer>> {
        self.peer.load_full()
    }

    /// How it speaks; legacy until it was greeted.
    pub fn era(&self) -> Era {
        self.locked().era.unwrap_or(Era::Legacy)
    }

    /// Whether a call may be tried: it is up, or on its way up.
    pub fn is_available(&self) -> bool {
        self.peer.load().is_some() || self.locked().phase == Phase::Starting
    }

    fn change(&self, change: impl FnOnce(&mut View)) {
        change(&mut self.locked());
        self.shared.changes.send_modify(|number| *number += 1);
    }

    /// Keeps the upstream running until `stop`, then ends it.
    pub(super) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let transport = match &self.config.transport {
            Ok(Transport::Stdio(program)) => Ok(program.clone()),
            Ok(Transport::Http(_)) => Err("upstreams over HTTP are not served yet".to_owned()),
            Err(reason) => Err(reason.clone()),
        };
        let program = match transport {
            Ok(program) => program,
            Err(reason) => {
                warn!(upstream = %self.name(), reason, "upstream cannot be used");
                self.change(|view| view.phase = Phase::Unusable(reason));
                return;
            }
        };
        let mut memory = Memory::Unknown;
        let mut has_fallen_back = false;
        let mut n_failures = 0;
        while !stop.is_cancelled() {
            let started = Instant::now();
            let ended = self.serve_once(&program, &mut memory, &stop).await;
            if stop.is_cancelled() {
                return;
            }
            if ended.was_probed && memory == Memory::Unknown && !has_fallen_back {
                // Some servers exit on any request before `initialize`; such a one gets its second start at once.
                debug!(upstream = %self.name(), "upstream ended on the probe, greeting it in the legacy way");
                (memory, has_fallen_back) = (Memory::Known(Era::Legacy), true);
                continue;
            }
            if !ended.was_ready {
                // Perhaps it ended for another reason, or is another server by now: the other way next time.
                memory = if memory == Memory::Unknown { Memory::Known(Era::Legacy) } else { Memory::Unknown };
            }
            if started.elapsed() >= BACKOFF_RESET {
                n_failures = 0;
            }
            let pause = pause(n_failures, ended.was_ready);
            n_failures += 1;
            warn!(upstream = %self.name(), reason = ended.reason, ?pause, "upstream is down, starting it again after a pause");
            self.change(|view| view.phase = Phase::Waiting(ended.reason));
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(pause) => {}
            }
            self.change(|view| view.phase = Phase::Starting);
        }
    }

    /// Starts the server and serves it until it ends or `stop`.
    async fn serve_once(self: &Arc<Self>, program: &Program, memory: &mut Memory, stop: &CancellationToken) -> Ended {
        let (mut server, pipes) = match Server::spawn(program, self.shared.guard.clone()) {
            Ok(started) => started,
            Err(error) => {
                let reason = spawn_reason(program, &error);
                return Ended { reason, was_ready: false, was_probed: false };
            }
        };
        let peer = Arc::new(Peer::new(UPSTREAM_QUEUE_BYTES));
        let stderr = StderrRing::default();
        let mut io = JoinSet::new();
        io.spawn({
            let peer = Arc::clone(&peer);
            async move { drop(peer.outbox().write_to(pipes.stdin).await) }
        });
        let (closing, mut closed) = tokio::sync::oneshot::channel::<()>();
        io.spawn({
            let (link, peer) = (Arc::clone(self), Arc::clone(&peer));
            async move {
                link.read(&peer, pipes.stdout).await;
                drop(closing);
            }
        });
        io.spawn({
            let stderr = stderr.clone();
            async move { stderr.fill(pipes.stderr).await }
        });
        io.spawn(Arc::clone(self).sweep(Arc::clone(&peer)));

        let was_unknown = *memory == Memory::Unknown;
        let life = self.live(&peer, memory);
        tokio::pin!(life);
        let outcome = tokio::select! {
            () = stop.cancelled() => None,
            reason = &mut life => Some(reason),
            status = server.wait() => {
                // What it wrote before it ended is still in the pipe.
                timeout(LAST_WORDS, &mut closed).await.ok();
                Some(exit_reason(status))
            }
            _closed = &mut closed => {
                let status = timeout(LAST_WORDS, server.wait()).await;
                Some(status.map_or_else(|_running| "it closed the connection".into(), exit_reason))
            }
        };
        let was_ready = self.peer.swap(None).is_some();
        let reason = match (outcome, stderr.last()) {
            (None, _) => "gatekey is stopping".to_owned(),
            (Some(reason), None) => reason,
            (Some(reason), Some(line)) => format!("{reason}; its last line on stderr: {line}"),
        };
        if was_ready {
            self.change(|view| view.phase = Phase::Waiting(reason.clone()));
        }
        // Answered before the process is ended, which may take a while.
        for relay in peer.lose() {
            (self.shared.on_failure)(self.name(), &relay, &Failure::Ended(reason.clone()));
        }
        server.end().await;
        io.shutdown().await;
        Ended { reason, was_ready, was_probed: was_unknown && !was_ready }
    }

    /// Greets and lists, then follows changes of the list; returns the reason why that failed.
    async fn live(&self, peer: &Arc<Peer>, memory: &mut Memory) -> String {
        let hello = match greet(peer, *memory, self.config.handshake).await {
            Ok(hello) => hello,
            Err(HandshakeError::Call { source: CallError::Gone | CallError::Push(_), .. }) => {
                // The process is ending; its exit code is the better reason.
                return std::future::pending().await;
            }
            Err(error) => return error.to_string(),
        };
        *memory = Memory::Known(hello.era);
        info!(upstream = %self.name(), era = ?hello.era, "upstream is connected");
        if let Err(reason) = self.list(peer, &hello).await {
            return reason;
        }
        self.peer.store(Some(Arc::clone(peer)));
        self.change(|view| view.phase = Phase::Ready);
        self.follow(peer, &hello).await
    }

    async fn list(&self, peer: &Peer, hello: &Hello) -> Result<(), String> {
        let listed = if hello.has_tools {
            list_tools(peer, self.name(), hello).await.map_err(|error| error.to_string())?
        } else {
            Default::default()
        };
        for finding in &listed.findings {
            warn!(upstream = %self.name(), "{}", finding.message);
        }
        let facts = UpstreamFacts { title: hello.title.clone(), instructions: hello.instructions.clone() };
        self.change(|view| {
            (view.era, view.facts) = (Some(hello.era), facts);
            (view.tools, view.findings) = (listed.tools.into(), listed.findings);
        });
        Ok(())
    }

    /// Lists again whenever the upstream says that its list changed.
    async fn follow(&self, peer: &Peer, hello: &Hello) -> String {
        let news = async {
            loop {
                self.list_changed.notified().await;
                // A storm of notifications becomes one request, a steady one a request each second.
                let quiet = async { while timeout(LIST_QUIET, self.list_changed.notified()).await.is_ok() {} };
                timeout(LIST_STORM, quiet).await.ok();
                if let Err(reason) = self.list(peer, hello).await {
                    warn!(upstream = %self.name(), reason, "listing again failed, the tools stay as they were");
                }
            }
        };
        let subscribed = async {
            if hello.era == Era::Modern && hello.tells_changes {
                self.subscribe(peer, hello.era).await;
            }
            std::future::pending::<String>().await
        };
        tokio::select! {
            reason = news => reason,
            reason = subscribed => reason,
        }
    }

    /// Keeps a subscription to the changes of the list, until the upstream refuses it.
    async fn subscribe(&self, peer: &Peer, era: Era) {
        let wanted = params(era, Some(r#""notifications":{"toolsListChanged":true}"#));
        loop {
            // Answered when the subscription ends, which a server may do at any time.
            let ended = peer.call("subscriptions/listen", &wanted, SUBSCRIPTION).await;
            debug!(upstream = %self.name(), ?ended, "the subscription to list changes ended");
            if !matches!(ended, Ok(Reply::Result(_)) | Err(CallError::TimedOut)) {
                return;
            }
            sleep(BACKOFF_FIRST).await;
            // What happened in between was not told.
            self.list_changed.notify_one();
        }
    }

    /// Gives up calls whose time is over.
    async fn sweep(self: Arc<Self>, peer: Arc<Peer>) {
        let mut ticks = tokio::time::interval(SWEEP);
        loop {
            ticks.tick().await;
            for relay in peer.expire(Instant::now()) {
                (self.shared.on_failure)(self.name(), &relay, &Failure::TimedOut);
            }
        }
    }

    /// Waits until it takes calls, fails, or `most` is over.
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    pub async fn wait_ready(&self, most: Duration) -> Option<Arc<Peer>> {
        let mut changes = self.shared.changes.subscribe();
        let ready = async {
            loop {
                let peer = self.peer();
                if peer.is_some() || self.phase() != Phase::Starting || changes.changed().await.is_err() {
                    return peer;
                }
            }
        };
        timeout(most, ready).await.unwrap_or_default()
    }
}

/// The pause before the next start: doubled with each failure, a little longer by chance so that many do not start at once.
fn pause(n_failures: u32, was_ready: bool) -> Duration {
    let first = if was_ready && n_failures == 0 { BACKOFF_SERVED } else { BACKOFF_FIRST };
    let doubled = first.saturating_mul(1 << n_failures.min(16)).min(BACKOFF_MOST);
    let chance = RandomState::new().build_hasher().finish() % 100;
    doubled + doubled.mul_f64(f64::from(u32::try_from(chance).unwrap_or_default()) / 1_000.0)
}

fn spawn_reason(program: &Program, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if program.cwd.as_ref().is_some_and(|cwd| !cwd.is_dir()) => {
            "its working folder does not exist".into()
        }
        io::ErrorKind::NotFound => format!("there is no program `{}`", program.command),
        _ => format!("program `{}` cannot be started: {error}", program.command),
    }
}

fn exit_reason(status: io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => match status.code() {
            Some(code) => format!("it exited with code {code}"),
            None => format!("it was ended: {status}"),
        },
        Err(error) => format!("it is lost: {error}"),
    }
}
