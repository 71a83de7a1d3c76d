//! One upstream's life: start, greet, list, serve, end, and start again after a pause. What it is at the moment stands in
//! its [`View`]; calls go through its [`Peer`].

use std::{
    collections::{BTreeSet, HashMap, hash_map::RandomState},
    hash::{BuildHasher as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, atomic::AtomicUsize},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use reqwest::header::HeaderMap;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::{
    clients::Clients,
    credential,
    handshake::{HandshakeError, Hello, Introduced, Memory, greet},
    lists::list_tools,
    offers::{Capabilities, Offer, Offering},
};
use crate::{
    catalog::{UpstreamFacts, UpstreamTools},
    config::{Transport, Upstream},
    model::{
        diagnostic::Diagnostic,
        limits::{BACKOFF_FIRST, BACKOFF_MOST, BACKOFF_RESET, BACKOFF_SERVED, LIST_QUIET, LIST_STORM, SWEEP},
        name::UpstreamName,
        program::Endpoint,
        tool::Tool,
    },
    wire::{
        era::Era,
        guard::Guard,
        headers::{ParamHeader, param_headers},
        http_client::{Credential, HttpClient},
        peer::{CallError, Peer, Relay},
        timer,
    },
};

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
    /// What it said that it can do.
    pub capabilities: Arc<Capabilities>,
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
    /// The request over HTTP came to nothing, for this reason.
    Http(String),
    /// The upstream does not know, or does not take, who is asking, for this reason; nothing was done.
    NoRight(String),
}

/// What all links share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Grows with every change of a view.
    pub(super) changes: watch::Sender<u64>,
    /// Set before the first link runs.
    pub(super) clients: OnceLock<Arc<dyn Clients>>,
    /// The client, once it is known.
    pub(super) client: watch::Sender<Option<Introduced>>,
    pub(super) guard: Arc<Guard>,
    pub(super) line_limit_bytes: usize,
}

/// One connection to an upstream: the one that all clients share, or one of a session's own.
#[derive(Debug)]
pub struct Link {
    config: Upstream,
    /// The upstream's number, which no other ever has; its position in the first config.
    index: usize,
    /// Whose own it is, where not all share it.
    own: Option<Own>,
    /// Whether the upstream asked clients anything, or cannot be spoken to in the older era.
    habits: Mutex<Habits>,
    view: Mutex<View>,
    /// Set while it takes calls.
    peer: ArcSwapOption<Peer>,
    /// What its lines are posted by, if it is reached over HTTP.
    pub(super) remote: ArcSwapOption<HttpClient>,
    /// What it offers besides tools, as last asked.
    pub(super) offers: Mutex<HashMap<Offering, Arc<[Offer]>>>,
    /// Resources whose changes clients want to hear of, by the upstream's own URIs.
    pub(super) wanted: watch::Sender<BTreeSet<String>>,
    pub(super) shared: Arc<Shared>,
    /// The upstream's own news that its list changed.
    pub(super) list_changed: Notify,
    /// The same of its resources and templates.
    pub(super) resources_changed: Notify,
    /// The same of its prompts.
    pub(super) prompts_changed: Notify,
    /// Lines that were no messages.
    pub(super) n_noise: AtomicUsize,
    /// Why it does not take who is asking, if that is why it is down.
    pub(super) no_right: Mutex<Option<String>>,
    /// Somebody would like it to be tried again before its pause is over.
    retry: Notify,
}

/// Whose a connection is that not all share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// The session that the upstream may ask, in the older era.
    pub session: Option<u64>,
    /// The caller by whose right it is spoken to.
    pub caller: Option<CallerId>,
}

/// A caller with one of the credentials that they have for an upstream.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallerId {
    /// Name of the principal.
    pub name: String,
    /// SHA-256 of the credential.
    pub digest: [u8; 32],
}

/// What a connection has that not all share.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) owner: Owner,
    /// The client that it is introduced as; that of all where there is none.
    pub(super) client: Option<watch::Sender<Option<Introduced>>>,
    /// Headers that its caller brought for the upstream.
    pub(super) brought: HeaderMap,
}

/// What an upstream was seen to do.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Habits {
    pub(super) asks: bool,
    pub(super) is_modern_only: bool,
}

/// How one run of the server ended.
pub(super) struct Ended {
    pub(super) reason: String,
    pub(super) was_ready: bool,
    pub(super) was_probed: bool,
}

impl Ended {
    /// It did not even start.
    pub(super) fn early(reason: String) -> Self {
        Self { reason, was_ready: false, was_probed: false }
    }
}

impl Link {
    pub(super) fn new(config: Upstream, index: usize, own: Option<Own>, shared: Arc<Shared>) -> Self {
        let view = View {
            phase: Phase::Starting,
            era: None,
            capabilities: Arc::default(),
            facts: UpstreamFacts::default(),
            tools: Arc::new([]),
            findings: Vec::new(),
        };
        Self {
            config,
            index,
            own,
            habits: Mutex::default(),
            view: Mutex::new(view),
            peer: ArcSwapOption::empty(),
            remote: ArcSwapOption::empty(),
            offers: Mutex::default(),
            wanted: watch::Sender::default(),
            shared,
            list_changed: Notify::new(),
            resources_changed: Notify::new(),
            prompts_changed: Notify::new(),
            n_noise: AtomicUsize::new(0),
            no_right: Mutex::default(),
            retry: Notify::new(),
        }
    }

    /// Why it does not take who is asking, if that is why it is down.
    pub fn no_right(&self) -> Option<String> {
        self.no_right.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Is tried again at once where it waits for that: somebody may have logged in.
    pub(super) fn wake(&self) {
        if let Phase::Waiting(_) = self.phase() {
            self.change(|view| view.phase = Phase::Starting);
            self.retry.notify_one();
        }
    }

    /// Offers what `before` did, until it has listed itself.
    pub(super) fn take_over(&self, before: &Self) {
        let known = before.view();
        let mut view = self.locked();
        (view.tools, view.facts, view.findings) = (known.tools, known.facts, known.findings);
    }

    /// Its config.
    pub fn config(&self) -> &Upstream {
        &self.config
    }

    /// The upstream's number, which no other ever has.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Whose own connection it is; `None` where all share it.
    pub fn owner(&self) -> Option<&Owner> {
        self.own.as_ref().map(|own| &own.owner)
    }

    /// The session whose own connection it is.
    pub fn session(&self) -> Option<u64> {
        self.owner().and_then(|owner| owner.session)
    }

    /// By what the upstream knows who is asking, besides the headers of the config.
    pub(super) fn credential(&self, endpoint: &Endpoint) -> Option<Arc<dyn Credential>> {
        let of_caller = self.own.as_ref().and_then(|own| Some((own.owner.caller.as_ref()?, &own.brought)));
        match of_caller {
            Some((caller, brought)) => Some(credential::of_caller(endpoint, self.name(), &caller.name, brought)),
            // A session's own connection goes by the same right as that of all.
            None => credential::of_all(endpoint, self.name()),
        }
    }

    pub(super) fn habits(&self) -> MutexGuard<'_, Habits> {
        // Nothing in here can panic half-way through a change.
        self.habits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the upstream asks clients.
    pub fn note_question(&self) {
        self.habits().asks = true;
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
        let tools = UpstreamTools { index: self.index, name, prefix, tools: Arc::clone(&view.tools) };
        (tools, view.facts.clone())
    }

    /// The connection, while it takes calls.
    pub fn peer(&self) -> Option<Arc<Peer>> {
        self.peer.load_full()
    }

    /// How it speaks; legacy until it was greeted.
    pub fn era(&self) -> Era {
        self.locked().era.unwrap_or(Era::Legacy)
    }

    /// Whether calls go by the right of whoever makes them.
    pub fn is_per_caller(&self) -> bool {
        matches!(&self.config.transport, Ok(Transport::Http(endpoint)) if endpoint.is_per_caller())
    }

    /// Whether it is reached over HTTP, where a further connection costs little.
    pub fn is_remote(&self) -> bool {
        matches!(self.config.transport, Ok(Transport::Http(_)))
    }

    /// Whether sessions that can be asked anything must have connections of their own.
    pub fn is_for_one(&self) -> bool {
        let habits = *self.habits();
        !habits.is_modern_only && (self.is_remote() || self.era() == Era::Modern || habits.asks)
    }

    /// What it said that it can do, last.
    pub fn capabilities(&self) -> Arc<Capabilities> {
        Arc::clone(&self.locked().capabilities)
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
            Ok(transport) => transport,
            Err(reason) => {
                warn!(upstream = %self.name(), reason, "upstream cannot be used");
                self.change(|view| view.phase = Phase::Unusable(reason.clone()));
                return;
            }
        };
        let mut memory = if self.session().is_some() { Memory::Known(Era::Legacy) } else { Memory::Unknown };
        let mut has_fallen_back = false;
        let mut n_failures = 0;
        while !stop.is_cancelled() {
            let started = Instant::now();
            let ended = match transport {
                Transport::Stdio(program) => self.serve_process(program, &mut memory, &stop).await,
                Transport::Http(endpoint) => self.serve_remote(endpoint, &mut memory, &stop).await,
            };
            if stop.is_cancelled() || (self.session().is_some() && self.habits().is_modern_only) {
                return self.change(|view| view.phase = Phase::Unusable(ended.reason));
            }
            if ended.was_probed && memory == Memory::Unknown && !has_fallen_back {
                // Some servers exit on any request before `initialize`; such a one gets its second start at once.
                debug!(upstream = %self.name(), "upstream ended on the probe, greeting it in the legacy way");
                (memory, has_fallen_back) = (Memory::Known(Era::Legacy), true);
                continue;
            }
            if !ended.was_ready && self.session().is_none() {
                // Perhaps it ended for another reason, or is another server by now: the other way next time.
                memory = if memory == Memory::Unknown { Memory::Known(Era::Legacy) } else { Memory::Unknown };
            }
            if started.elapsed() >= BACKOFF_RESET {
                n_failures = 0;
            }
            let pause = pause(n_failures, ended.was_ready);
            n_failures += 1;
            let reason = ended.reason.as_str();
            match self.own {
                None => {
                    warn!(upstream = %self.name(), reason, ?pause, "upstream is down, starting it again after a pause")
                }
                // What one caller lacks is no outage.
                Some(_) => debug!(upstream = %self.name(), reason, ?pause, "a connection of one's own is down"),
            }
            self.change(|view| view.phase = Phase::Waiting(ended.reason));
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(pause) => {}
                () = self.retry.notified() => {}
            }
            self.change(|view| view.phase = Phase::Starting);
        }
    }

    /// Takes no more calls; says whether it took any before.
    pub(super) fn withdraw(&self, reason: &str) -> bool {
        let was_ready = self.peer.swap(None).is_some();
        if was_ready {
            self.change(|view| view.phase = Phase::Waiting(reason.to_owned()));
        }
        was_ready
    }

    /// Takes no more calls, for a reason of ours.
    pub(super) fn fail(&self, reason: &str) {
        self.peer.store(None);
        self.change(|view| view.phase = Phase::Waiting(reason.to_owned()));
    }

    /// Answers the calls of a connection that is gone.
    pub(super) fn lose(&self, peer: &Peer, reason: &str) {
        for relay in peer.lose() {
            self.failed(&relay, &Failure::Ended(reason.to_owned()));
        }
        if let Some(clients) = self.shared.clients.get() {
            clients.lost(peer);
        }
    }

    pub(super) fn failed(&self, relay: &Relay, failure: &Failure) {
        if let Some(clients) = self.shared.clients.get() {
            clients.failed(self, relay, failure);
        }
    }

    /// Greets and lists, then follows changes of the list; returns the reason why that failed.
    pub(super) async fn live(self: &Arc<Self>, peer: &Arc<Peer>, memory: &mut Memory) -> String {
        let own_client = self.own.as_ref().and_then(|own| own.client.as_ref());
        let client = own_client.unwrap_or(&self.shared.client);
        let hello = match greet(peer, *memory, self.config.handshake, client).await {
            Ok(hello) => hello,
            Err(HandshakeError::Call { source: CallError::Gone | CallError::Push(_), .. }) => {
                // The process is ending; its exit code is the better reason.
                return std::future::pending().await;
            }
            Err(error) => {
                let is_answer =
                    matches!(error, HandshakeError::Refused(_) | HandshakeError::Version(_) | HandshakeError::Shape(_));
                if self.session().is_some() && is_answer {
                    self.habits().is_modern_only = true;
                }
                return error.to_string();
            }
        };
        *memory = Memory::Known(hello.era);
        *self.no_right.lock().unwrap_or_else(PoisonError::into_inner) = None;
        info!(upstream = %self.name(), era = ?hello.era, "upstream is connected");
        if self.own.is_some() {
            // The upstream's lists are those of the connection that all share.
            if let Some(remote) = self.remote.load_full() {
                remote.set_params(annotated(&self.view().tools));
            }
            self.change(|view| (view.era, view.capabilities) = (Some(hello.era), Arc::clone(&hello.capabilities)));
            self.peer.store(Some(Arc::clone(peer)));
            self.change(|view| view.phase = Phase::Ready);
            if let Some(clients) = self.shared.clients.get() {
                clients.connected(self, peer);
            }
            return std::future::pending().await;
        }
        if let Err(reason) = self.list(peer, &hello).await {
            return reason;
        }
        self.peer.store(Some(Arc::clone(peer)));
        self.change(|view| view.phase = Phase::Ready);
        if let Some(clients) = self.shared.clients.get() {
            clients.connected(self, peer);
        }
        self.follow(peer, &hello).await
    }

    async fn list(&self, peer: &Peer, hello: &Hello) -> Result<(), String> {
        let listed = if hello.has_tools() {
            list_tools(peer, self.name(), hello).await.map_err(|error| error.to_string())?
        } else {
            Default::default()
        };
        if let Some(remote) = self.remote.load_full() {
            remote.set_params(annotated(&listed.tools));
        }
        for finding in &listed.findings {
            warn!(upstream = %self.name(), "{}", finding.message);
        }
        let facts = UpstreamFacts { title: hello.title.clone(), instructions: hello.instructions.clone() };
        self.change(|view| {
            (view.era, view.facts) = (Some(hello.era), facts);
            view.capabilities = Arc::clone(&hello.capabilities);
            (view.tools, view.findings) = (listed.tools.into(), listed.findings);
        });
        Ok(())
    }

    /// Lists again whenever the upstream says that its list changed.
    async fn follow(&self, peer: &Arc<Peer>, hello: &Hello) -> String {
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
        // Who waits for it is told at once, and of a storm no more often than this.
        let told = |changed, offering| async move {
            loop {
                Notify::notified(changed).await;
                if let Some(clients) = self.shared.clients.get() {
                    clients.changed(offering);
                }
                sleep(LIST_QUIET).await;
            }
        };
        tokio::select! {
            reason = news => reason,
            () = told(&self.resources_changed, Offering::Resources) => String::new(),
            () = told(&self.prompts_changed, Offering::Prompts) => String::new(),
            () = self.subscribe(peer, hello) => "the subscription ended".into(),
        }
    }

    /// Gives up calls whose time is over.
    pub(super) async fn sweep(self: Arc<Self>, peer: Arc<Peer>) {
        loop {
            timer::tick(SWEEP).await;
            for relay in peer.expire(Instant::now()) {
                self.failed(&relay, &Failure::TimedOut);
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

/// The tools some of whose arguments headers repeat.
fn annotated(tools: &[Arc<Tool>]) -> HashMap<String, Vec<ParamHeader>> {
    let is_annotated = |tool: &&Arc<Tool>| tool.input_schema.contains("x-mcp-header");
    let headers = |tool: &Arc<Tool>| {
        let schema = serde_json::from_str(&tool.input_schema).unwrap_or_default();
        (tool.name.as_str().to_owned(), param_headers(&schema))
    };
    tools.iter().filter(is_annotated).map(headers).collect()
}
