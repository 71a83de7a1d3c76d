//! A client's message → its answer. Everything that needs no waiting is done at once, in the order of the messages; the
//! rest goes on in a task of the session. Knows no transport: whoever has one calls [`Gateway::take`].

use std::{
    cell::Cell,
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};
use tracing::debug;

use super::{
    admission::Allowed, experience::Experience, finding::Finding, ledger::Ledger, list::Lists, offers::Offers,
    params::Params, tasks::Tasks,
};
use crate::{
    audit::Audit,
    catalog::{SkillFor, Snapshot, SnapshotStore},
    gate::key::Secret,
    model::{name::SkillName, principal::Principal, sent::SentAs},
    session::Session,
    upstream::Pool,
    wire::{
        envelope::{Envelope, Kind, error_line, id_key, notification_line, result_line},
        era::{Era, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MODERN, UNSUPPORTED_VERSION},
        outbox::Outbox,
        peer::Answered,
    },
};

/// The data plane. One for all sessions.
#[derive(Debug)]
pub struct Gateway {
    pub(super) store: Arc<SnapshotStore>,
    pub(super) pool: Arc<Pool>,
    pub(super) secret: Secret,
    pub(super) lists: Lists,
    pub(super) offers: Offers,
    pub(super) tasks: Tasks,
    pub(super) finding: Finding,
    pub(super) experience: Experience,
    pub(super) ledger: Ledger,
    pub(super) allowed: Allowed,
    pub(super) audit: OnceLock<Arc<Audit>>,
    /// Whether the first snapshot with the upstreams' tools is out.
    settled: watch::Receiver<bool>,
    sessions: Mutex<BTreeMap<u64, Weak<Session>>>,
}

/// A request with all that its answer depends on.
pub(super) struct Request<'a> {
    pub(super) session: &'a Arc<Session>,
    /// Where the answer goes, and what belongs to it.
    pub(super) to: &'a Arc<Outbox>,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) era: Era,
    /// As JSON, see [`id_key`].
    pub(super) id: Box<str>,
    pub(super) params: Params<'a>,
    /// The whole line, to take the request up again after a wait.
    pub(super) line: &'a [u8],
    /// How often it has waited already: for what upstreams have, or for a connection to one. It waits for neither twice.
    pub(super) n_waits: usize,
    /// How often the client was asked for input to it.
    pub(super) n_rounds: usize,
    /// What an answer of ours counts as, if as anything.
    pub(super) sent_as: Cell<Option<SentAs>>,
}

/// Why a skill is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSkill {
    /// The caller may not use it.
    Forbidden,
    /// There is none, or it must look so.
    Unknown,
}

/// What happened to a request before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tries {
    /// See [`Request::n_waits`].
    pub(super) n_waits: usize,
    /// See [`Request::n_rounds`].
    pub(super) n_rounds: usize,
}

/// A client's notice that is for every upstream.
const ROOTS_CHANGED: &str = "notifications/roots/list_changed";

/// A request waits for lists of upstreams, then for a connection, and is answered then.
const WAITS: usize = 2;

impl Request<'_> {
    /// Whether it has waited already.
    pub(super) fn has_waited(&self) -> bool {
        self.n_waits > 0
    }

    /// Whether it must be answered now.
    pub(super) fn is_last_try(&self) -> bool {
        self.n_waits >= WAITS
    }

    /// Answers with a result of ours.
    pub(super) fn answer(&self, mut result: Value) {
        if self.era == Era::Modern {
            result["resultType"] = json!("complete");
        }
        self.answer_with(&result.to_string());
    }

    /// Answers with a result of ours, a JSON object with members, parts of which must stay as they were written.
    pub(super) fn answer_raw(&self, result: String) {
        let result = match self.era {
            Era::Legacy => result,
            Era::Modern => result.replacen('{', r#"{"resultType":"complete","#, 1),
        };
        self.answer_with(&result);
    }

    fn answer_with(&self, result: &str) {
        if let Some(kind) = self.sent_as.get() {
            self.session.sent.add(kind, result.len());
        }
        self.to.answer(result_line(&self.id, result));
    }

    /// Answers with a JSON-RPC error.
    pub(super) fn refuse(&self, code: i64, message: &str) {
        self.refuse_with(code, message, None);
    }

    /// Answers with a JSON-RPC error that has `data`.
    pub(super) fn refuse_with(&self, code: i64, message: &str, data: Option<&Value>) {
        let data = data.map(Value::to_string);
        self.to.answer(error_line(&self.id, code, message, data.as_deref()));
    }
}

impl Gateway {
    /// Makes the data plane; requests that depend on upstreams wait until `settled` is true.
    pub fn new(store: Arc<SnapshotStore>, pool: Arc<Pool>, secret: Secret, settled: watch::Receiver<bool>) -> Self {
        let finding = Finding::new(&store.load().config.search);
        Self {
            store,
            pool,
            secret,
            lists: Lists::default(),
            offers: Offers::default(),
            tasks: Tasks::default(),
            finding,
            experience: Experience::default(),
            ledger: Ledger::default(),
            allowed: Allowed::default(),
            audit: OnceLock::new(),
            settled,
            sessions: Mutex::default(),
        }
    }

    /// Lets a session hear of changes.
    pub fn open(&self, session: &Arc<Session>) {
        self.record_session(session, "session_opened");
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(session.id, Arc::downgrade(session));
    }

    /// Gives up the calls of a session whose client is gone, and what upstreams asked it.
    pub fn close(&self, session: &Session) {
        self.record_session(session, "session_closed");
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(&session.id);
        self.ledger.end(session);
        self.pool.each_peer(|peer| peer.cancel_all(session.id));
        self.no_client(session);
        self.pool.end_own(session.id);
        let has_subscribed = {
            let state = session.state();
            !state.subscribed.is_empty() || state.listeners.iter().any(|listener| !listener.resources.is_empty())
        };
        if has_subscribed {
            self.resubscribe();
        }
    }

    /// The sessions that are open.
    pub(super) fn sessions(&self) -> Vec<Arc<Session>> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.values().filter_map(Weak::upgrade).collect()
    }

    /// The open session with this number.
    pub(super) fn session(&self, number: u64) -> Option<Arc<Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).get(&number).and_then(Weak::upgrade)
    }

    /// Whether the first snapshot with the upstreams' tools is out.
    pub fn is_settled(&self) -> bool {
        *self.settled.borrow()
    }

    /// Waits until the first snapshot with the upstreams' tools is out.
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    pub async fn settled(&self) {
        // The sender lives as long as the gateway's process; without it there is nothing more to wait for.
        self.settled.clone().wait_for(|is_settled| *is_settled).await.ok();
    }

    /// The current snapshot.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.store.load()
    }

    /// The skill of this name, where `principal` may know it.
    ///
    /// # Errors
    /// What is to be said instead.
    pub fn skill(&self, name: &str, principal: &Principal) -> Result<SkillName, NoSkill> {
        let snapshot = self.store.load();
        match snapshot.skill_for(name, principal) {
            // Nobody could be asked before the first request.
            SkillFor::Known(skill) if snapshot.is_free(skill) => Ok(skill.name.clone()),
            SkillFor::Forbidden => Err(NoSkill::Forbidden),
            SkillFor::Known(_) | SkillFor::Unknown => Err(NoSkill::Unknown),
        }
    }

    /// Waits until no relayed call is open, at most `most`.
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    pub async fn drained(&self, most: Duration) {
        self.pool.drained(most).await;
    }

    /// Ends the streams of all subscriptions.
    pub fn end_listeners(&self) {
        for session in self.sessions() {
            for listener in std::mem::take(&mut session.state().listeners) {
                listener.to.close();
            }
        }
    }

    /// Waits until what the upstreams offer now is published.
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    pub async fn published(&self) {
        let mut generations = self.store.watch();
        while !self.is_published() && generations.changed().await.is_ok() {}
    }

    /// Whether the current snapshot has what the upstreams offer now.
    pub(super) fn is_published(&self) -> bool {
        let n_offered: usize = self.pool.links().iter().map(|link| link.offer().0.tools.len()).sum();
        self.store.load().registry.tools().len() == n_offered
    }

    /// Takes a client's message. A request is answered to `to`, at once or later.
    pub fn take(self: &Arc<Self>, session: &Arc<Session>, to: &Arc<Outbox>, line: &[u8]) {
        match Envelope::parse(line) {
            Ok(envelope) => self.take_parsed(session, to, line, &envelope),
            Err(error) => to.answer(error_line("null", error.code(), &error.to_string(), None)),
        }
    }

    /// As [`Gateway::take`]; `envelope` was parsed from `line`.
    pub fn take_parsed(
        self: &Arc<Self>,
        session: &Arc<Session>,
        to: &Arc<Outbox>,
        line: &[u8],
        envelope: &Envelope<'_>,
    ) {
        match envelope.kind() {
            Kind::Request { .. } => self.requested(session, to, line, envelope, Tries::default()),
            Kind::Notification { method } => self.notified(session, method, line, envelope),
            Kind::Response { .. } => {
                // Answers something that an upstream asked; others are noise.
                if let Answered::Pass(upstream, line) = session.client.answered(line, envelope) {
                    upstream.put(line);
                }
            }
            Kind::Noise => to.answer(error_line("null", INVALID_REQUEST, "this is no JSON-RPC message", None)),
        }
    }

    pub(super) fn requested(
        self: &Arc<Self>,
        session: &Arc<Session>,
        to: &Arc<Outbox>,
        line: &[u8],
        envelope: &Envelope<'_>,
        tries: Tries,
    ) {
        let Kind::Request { id, method } = envelope.kind() else { return };
        let id = id_key(id);
        let Some(params) = Params::read(envelope.params).filter(|params| !params.is_ambiguous()) else {
            let message = "`params` must be an object in which no member stands twice";
            return to.answer(error_line(&id, INVALID_PARAMS, message, None));
        };
        let era = match params.version().as_deref() {
            None => Era::Legacy,
            Some(MODERN) => Era::Modern,
            Some(other) => {
                let data = json!({"supported": [MODERN], "requested": other}).to_string();
                return to.answer(error_line(&id, UNSUPPORTED_VERSION, "unsupported protocol version", Some(&data)));
            }
        };
        let Tries { n_waits, n_rounds } = tries;
        let (snapshot, sent_as) = (self.store.load(), Cell::default());
        let request = Request { session, to, snapshot, era, id, params, line, n_waits, n_rounds, sent_as };
        self.serve_request(&request, method);
    }

    /// Takes a request up again when `wait` is over, unless it was cancelled in between.
    pub(super) fn later(self: &Arc<Self>, request: &Request<'_>, wait: impl Future<Output = ()> + Send + 'static) {
        let (gateway, session, to) = (Arc::clone(self), Arc::clone(request.session), Arc::clone(request.to));
        let (id, line) = (request.id.clone(), request.line.to_owned());
        let tries = Tries { n_waits: request.n_waits + 1, n_rounds: request.n_rounds };
        session.state().begin_wait(&id);
        let owner = Arc::clone(&session);
        owner.spawn(async move {
            wait.await;
            // On its own line, so that the lock is free again.
            let is_wanted = session.state().end_wait(&id);
            if let (true, Ok(envelope)) = (is_wanted, Envelope::parse(&line)) {
                gateway.requested(&session, &to, &line, &envelope, tries);
            }
        });
    }

    fn serve_request(self: &Arc<Self>, request: &Request<'_>, method: &str) {
        match (method, request.era) {
            ("tools/call", _) => self.call(request),
            ("tools/list", _) => self.list(request),
            ("initialize", Era::Legacy) => self.initialize(request),
            ("server/discover", Era::Modern) => self.discover(request),
            ("subscriptions/listen", Era::Modern) => self.listen(request),
            ("ping", Era::Legacy) => request.answer(json!({})),
            ("logging/setLevel", Era::Legacy) => self.set_log_level(request),
            ("resources/subscribe" | "resources/unsubscribe", Era::Legacy) => self.subscribe(request, method),
            (
                "initialize"
                | "ping"
                | "logging/setLevel"
                | "resources/subscribe"
                | "resources/unsubscribe"
                | "tasks/list"
                | "tasks/result",
                Era::Modern,
            )
            | ("server/discover" | "subscriptions/listen", Era::Legacy) => no_method(request, method),
            _ => self.relay(request, method),
        }
    }

    fn list(&self, request: &Request<'_>) {
        if request.params.raw("cursor").is_some_and(|cursor| cursor != "null") {
            // The list is one page, so no cursor is ours.
            return request.refuse(INVALID_PARAMS, "invalid cursor");
        }
        if request.era == Era::Legacy {
            request.session.state().listed();
        }
        let prepared = self.list_of(request.session, &request.snapshot, request.era);
        if request.era == Era::Legacy {
            request.session.state().known_list = Some(prepared.digest);
        }
        request.session.sent.add_list(prepared.result.len());
        request.to.answer(result_line(&request.id, &prepared.result));
    }

    fn notified(self: &Arc<Self>, session: &Arc<Session>, method: &str, line: &[u8], envelope: &Envelope<'_>) {
        match (method, envelope.params) {
            ("notifications/cancelled", Some(raw)) => {
                let Some(params) = Params::read(Some(raw)) else { return };
                let Some(id) = params.raw("requestId").map(id_key) else { return };
                self.cancel(session, &id, &params);
            }
            ("notifications/progress", Some(params)) => {
                if let Some((upstream, line)) = session.client.progressed(line, params) {
                    upstream.put(line);
                }
            }
            ("notifications/initialized" | "notifications/cancelled" | "notifications/progress", _) => {}
            // Without an id a request is none, but some servers would serve it.
            _ if !method.starts_with("notifications/") => debug!(method, "a request without an id is not served"),
            _ => self.pass_on(session, method, envelope),
        }
    }

    fn cancel(&self, session: &Session, id: &str, params: &Params<'_>) {
        let was_listening = {
            let mut state = session.state();
            let n_before = state.listeners.len();
            state.listeners.retain(|listener| &*listener.id != id);
            state.end_wait(id);
            state.listeners.len() < n_before
        };
        if was_listening {
            self.resubscribe();
        }
        // Ids that never were, and calls already answered, are nobody's.
        self.pool.each_peer(|peer| {
            peer.cancel(session.id, id, params.raw("reason"));
        });
    }

    /// Changed roots are for every upstream. What a notification does that we know nothing of is not known, so it is for
    /// those of which something is open to the client.
    fn pass_on(&self, session: &Session, method: &str, envelope: &Envelope<'_>) {
        debug!(session = session.id, method, "notification is passed on");
        let is_modern = Params::read(envelope.params).is_some_and(|params| params.version().is_some());
        let era = if is_modern { Era::Modern } else { Era::Legacy };
        let snapshot = self.store.load();
        let open = super::call::open_in(session, &snapshot, era, None);
        // What else stands in the message is for no upstream.
        let line = notification_line(method, envelope.params);
        for link in self.pool.links().iter() {
            if method == ROOTS_CHANGED || super::relay::is_any_open(&snapshot, &open, link.index()) {
                for peer in self.pool.peers_for(link.index(), session.id, &session.principal.name) {
                    // An upstream that takes nothing more is about to be given up anyway.
                    peer.outbox().push(line.clone()).ok();
                }
            }
        }
    }

    /// The list that this session sees in this era.
    pub(super) fn list_of(&self, session: &Session, snapshot: &Snapshot, era: Era) -> super::list::Prepared {
        self.lists.prepared(snapshot, era, &session.principal, listed_tools(session, snapshot, era))
    }
}

/// Positions of the tools of the list that this session sees in this era.
pub(super) fn listed_tools(session: &Session, snapshot: &Snapshot, era: Era) -> Vec<usize> {
    match era {
        Era::Legacy => session.state().listed_tools(snapshot, session, Instant::now()),
        Era::Modern => {
            let all = 0..snapshot.registry.tools().len();
            let own = Arc::new(session.own_skill.iter().cloned().collect());
            let open = snapshot.still_open(own, &session.principal);
            let is_listed = |position: &usize| {
                snapshot.is_open(*position, &open) && snapshot.is_shown(*position, &session.principal)
            };
            all.filter(is_listed).collect()
        }
    }
}

/// Nobody serves the method.
pub(super) fn no_method(request: &Request<'_>, method: &str) {
    request.refuse(METHOD_NOT_FOUND, &format!("method not found: {method}"));
}

/// Whether the answer to such a request depends on what upstreams offer.
pub fn needs_upstreams(method: &str) -> bool {
    !matches!(method, "initialize" | "server/discover" | "ping" | "subscriptions/listen" | "logging/setLevel")
}
