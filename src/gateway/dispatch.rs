//! A client's line → its answer. Everything that needs no waiting is done at once, in the order of the lines; the rest
//! goes on in a task of the session.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use serde_json::{Value, json};
use tokio::{
    io::AsyncRead,
    sync::watch,
    task::JoinSet,
    time::{Instant, timeout},
};
use tracing::debug;

use super::{catalogue, list::Lists, params::Params};
use crate::{
    catalog::{Snapshot, SnapshotStore},
    gate::key::Secret,
    model::limits::{LAST_ANSWERS, LOAD_WAIT},
    session::{Listener, Session},
    upstream::Pool,
    wire::{
        envelope::{Envelope, Kind, error_line, id_key, json_text, notification_line, result_line},
        era::{
            Era, INVALID_PARAMS, INVALID_REQUEST, LEGACY, LEGACY_VERSIONS, META_SERVER, META_SUBSCRIPTION,
            METHOD_NOT_FOUND, MODERN, PARSE_ERROR, UNSUPPORTED_VERSION,
        },
        line::{Line, LineReader, TooLong},
    },
};

/// The data plane. One for all sessions.
#[derive(Debug)]
pub struct Gateway {
    pub(super) store: Arc<SnapshotStore>,
    pub(super) pool: Arc<Pool>,
    pub(super) secret: Secret,
    pub(super) lists: Lists,
    /// Whether the first snapshot with the upstreams' tools is out.
    settled: watch::Receiver<bool>,
    sessions: Mutex<BTreeMap<u64, Weak<Session>>>,
}

/// A request with all that its answer depends on.
pub(super) struct Request<'a> {
    pub(super) session: &'a Arc<Session>,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) era: Era,
    /// As JSON, see [`id_key`].
    pub(super) id: Box<str>,
    pub(super) params: Params<'a>,
    /// The whole line, to take the request up again after a wait.
    line: &'a [u8],
    /// Whether it has waited already; it must be answered now.
    pub(super) has_waited: bool,
}

/// What a session's reader holds besides the line at hand.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// Requests that wait for one upstream.
    tasks: JoinSet<()>,
    /// Requests that came before the upstreams were up, by id, in their order.
    early: VecDeque<(Box<str>, Vec<u8>)>,
}

/// Early requests that are held before the client is read on.
const EARLY: usize = 256;

impl Request<'_> {
    /// Answers with a result of ours.
    pub(super) fn answer(&self, mut result: Value) {
        if self.era == Era::Modern {
            result["resultType"] = json!("complete");
        }
        self.session.outbox.put(result_line(&self.id, &result.to_string()));
    }

    /// Answers with a JSON-RPC error.
    pub(super) fn refuse(&self, code: i64, message: &str) {
        self.session.outbox.put(error_line(&self.id, code, message, None));
    }
}

impl Gateway {
    /// Makes the data plane; requests that depend on upstreams wait until `settled` is true.
    pub fn new(store: Arc<SnapshotStore>, pool: Arc<Pool>, secret: Secret, settled: watch::Receiver<bool>) -> Self {
        Self { store, pool, secret, lists: Lists::default(), settled, sessions: Mutex::default() }
    }

    /// Serves one client until its input ends and what it asked for is answered.
    ///
    /// # Cancel safety
    /// Dropped, it leaves its calls running; they are given up with [`Gateway::close`].
    pub async fn serve(self: &Arc<Self>, session: &Arc<Session>, input: impl AsyncRead + Unpin) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(session.id, Arc::downgrade(session));
        let mut inbox = Inbox::default();
        let mut reader = LineReader::new(input, self.store.load().config.line_limit_bytes);
        let mut is_open = true;
        // After its end the input may still have requests that wait for the upstreams.
        while is_open || !inbox.early.is_empty() {
            session.outbox.has_room().await;
            let may_read = is_open && inbox.early.len() < EARLY;
            let line = tokio::select! {
                biased;
                () = self.settled(), if !inbox.early.is_empty() => {
                    self.take_early(session, &mut inbox);
                    continue;
                }
                line = reader.next(), if may_read => line,
            };
            match line {
                Ok(Some(Line::Whole(line))) => self.take(session, line, &mut inbox),
                Ok(Some(Line::TooLong(found))) => refuse_too_long(session, &found),
                Ok(None) => is_open = false,
                Err(error) => {
                    debug!(%error, "reading from the client failed");
                    is_open = false;
                }
            }
            while let Some(ended) = inbox.tasks.try_join_next() {
                log_panic(ended);
            }
        }
        // Whoever pipes requests into us has sent them all and waits for the answers.
        let waiting = async {
            while let Some(ended) = inbox.tasks.join_next().await {
                log_panic(ended);
            }
        };
        timeout(LOAD_WAIT + LAST_ANSWERS, waiting).await.ok();
    }

    async fn settled(&self) {
        // The sender lives as long as the gateway's process; without it there is nothing more to wait for.
        self.settled.clone().wait_for(|is_settled| *is_settled).await.ok();
    }

    fn take_early(self: &Arc<Self>, session: &Arc<Session>, inbox: &mut Inbox) {
        for (_, line) in std::mem::take(&mut inbox.early) {
            if let Ok(envelope) = Envelope::parse(&line) {
                self.requested(session, &line, &envelope, false, inbox);
            }
        }
    }

    /// Gives up the calls of a session whose client is gone.
    pub fn close(&self, session: &Session) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(&session.id);
        self.pool.each_peer(|peer| peer.cancel_all(session.id));
    }

    /// The sessions that are open.
    pub(super) fn sessions(&self) -> Vec<Arc<Session>> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.values().filter_map(Weak::upgrade).collect()
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

    fn take(self: &Arc<Self>, session: &Arc<Session>, line: &[u8], inbox: &mut Inbox) {
        let envelope = match Envelope::parse(line) {
            Ok(envelope) => envelope,
            Err(error) => return refuse_unreadable(session, line, &error),
        };
        match envelope.kind() {
            Kind::Request { id, method } => {
                let is_early = !*self.settled.borrow() || !inbox.early.is_empty();
                if needs_upstreams(method) && is_early {
                    inbox.early.push_back((id_key(id), line.to_owned()));
                } else {
                    self.requested(session, line, &envelope, false, inbox);
                }
            }
            Kind::Notification { method } => self.notified(session, method, &envelope, inbox),
            // We ask clients nothing, so an answer is noise, as is anything else.
            Kind::Response { .. } => {}
            Kind::Noise => session.outbox.put(error_line("null", INVALID_REQUEST, "this is no JSON-RPC message", None)),
        }
    }

    fn requested(
        self: &Arc<Self>,
        session: &Arc<Session>,
        line: &[u8],
        envelope: &Envelope<'_>,
        has_waited: bool,
        inbox: &mut Inbox,
    ) {
        let Kind::Request { id, method } = envelope.kind() else { return };
        if let Some(request) = self.request(session, line, id_key(id), envelope, has_waited) {
            self.serve_request(&request, method, inbox);
        }
    }

    /// Takes a request up again when `wait` is over, unless it was cancelled in between.
    pub(super) fn later(
        self: &Arc<Self>,
        request: &Request<'_>,
        inbox: &mut Inbox,
        wait: impl Future<Output = ()> + Send + 'static,
    ) {
        let (gateway, session) = (Arc::clone(self), Arc::clone(request.session));
        let (id, line) = (request.id.clone(), request.line.to_owned());
        session.state().begin_wait(&id);
        inbox.tasks.spawn(async move {
            wait.await;
            // On its own line, so that the lock is free again.
            let is_wanted = session.state().end_wait(&id);
            if let (true, Ok(envelope)) = (is_wanted, Envelope::parse(&line)) {
                gateway.requested(&session, &line, &envelope, true, &mut Inbox::default());
            }
        });
    }

    /// Takes the snapshot and resolves the era; answers what cannot be resolved.
    fn request<'a>(
        &self,
        session: &'a Arc<Session>,
        line: &'a [u8],
        id: Box<str>,
        envelope: &Envelope<'a>,
        has_waited: bool,
    ) -> Option<Request<'a>> {
        let Some(params) = Params::read(envelope.params).filter(|params| !params.is_ambiguous()) else {
            let message = "`params` must be an object in which no member stands twice";
            session.outbox.put(error_line(&id, INVALID_PARAMS, message, None));
            return None;
        };
        let era = match params.version().as_deref() {
            None => Era::Legacy,
            Some(MODERN) => Era::Modern,
            Some(other) => {
                let data = json!({"supported": [MODERN], "requested": other}).to_string();
                let line = error_line(&id, UNSUPPORTED_VERSION, "unsupported protocol version", Some(&data));
                session.outbox.put(line);
                return None;
            }
        };
        Some(Request { session, snapshot: self.store.load(), era, id, params, line, has_waited })
    }

    fn serve_request(self: &Arc<Self>, request: &Request<'_>, method: &str, inbox: &mut Inbox) {
        match (method, request.era) {
            ("tools/call", _) => self.call(request, inbox),
            ("tools/list", _) => self.list(request),
            ("initialize", _) => self.initialize(request),
            ("server/discover", Era::Modern) => self.discover(request),
            ("subscriptions/listen", Era::Modern) => self.listen(request),
            ("ping", Era::Legacy) => request.answer(json!({})),
            _ => request.refuse(METHOD_NOT_FOUND, &format!("method not found: {method}")),
        }
    }

    fn initialize(&self, request: &Request<'_>) {
        let asked = request.params.text_of("protocolVersion").unwrap_or_default();
        let version = LEGACY_VERSIONS.iter().find(|known| **known == asked).unwrap_or(&LEGACY);
        let texts = catalogue::texts(&request.snapshot, &request.session.principal);
        request.session.state().initialize();
        request.answer(json!({
            "protocolVersion": version,
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": server_info(),
            "instructions": texts.instructions,
        }));
    }

    fn discover(&self, request: &Request<'_>) {
        let texts = catalogue::texts(&request.snapshot, &request.session.principal);
        request.answer(json!({
            "supportedVersions": [MODERN],
            "capabilities": {"tools": {"listChanged": true}},
            "instructions": texts.instructions,
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {META_SERVER: server_info()},
        }));
    }

    fn list(&self, request: &Request<'_>) {
        if request.params.raw("cursor").is_some_and(|cursor| cursor.get() != "null") {
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
        request.session.outbox.put(result_line(&request.id, &prepared.result));
    }

    fn listen(&self, request: &Request<'_>) {
        let wanted = request.params.raw("notifications").map_or("{}", |raw| raw.get());
        let wanted: Value = serde_json::from_str(wanted).unwrap_or_default();
        let wants_tools = wanted["toolsListChanged"].as_bool() == Some(true);
        let accepted = if wants_tools { json!({"toolsListChanged": true}) } else { json!({}) };
        let meta = json!({META_SUBSCRIPTION: serde_json::from_str::<Value>(&request.id).unwrap_or_default()});
        let params = json!({"notifications": accepted, "_meta": meta}).to_string();
        let acknowledged = notification_line("notifications/subscriptions/acknowledged", Some(&params));
        request.session.outbox.put(acknowledged);
        if wants_tools {
            let known_list = self.list_of(request.session, &request.snapshot, Era::Modern).digest;
            request.session.state().listeners.push(Listener { id: request.id.clone(), known_list });
        }
    }

    fn notified(&self, session: &Session, method: &str, envelope: &Envelope<'_>, inbox: &mut Inbox) {
        match (method, envelope.params) {
            ("notifications/cancelled", Some(raw)) => {
                let Some(params) = Params::read(Some(raw)) else { return };
                let Some(id) = params.raw("requestId").map(id_key) else { return };
                inbox.early.retain(|(early, _)| *early != id);
                {
                    let mut state = session.state();
                    state.listeners.retain(|listener| listener.id != id);
                    state.end_wait(&id);
                }
                // Ids that never were, and calls already answered, are nobody's.
                self.pool.each_peer(|peer| {
                    peer.cancel(session.id, &id, params.raw("reason"));
                });
            }
            _ => debug!(method, "notification of the client is not passed on"),
        }
    }

    /// The list that this session sees in this era.
    pub(super) fn list_of(&self, session: &Session, snapshot: &Snapshot, era: Era) -> super::list::Prepared {
        let visible = match era {
            Era::Legacy => session.state().listed_tools(snapshot, &session.principal, Instant::now()),
            Era::Modern => {
                let all = 0..snapshot.registry.tools().len();
                let is_listed = |position: &usize| {
                    snapshot.is_always_open(*position) && snapshot.is_visible(*position, &session.principal)
                };
                all.filter(is_listed).collect()
            }
        };
        self.lists.prepared(snapshot, era, &session.principal, visible)
    }
}

fn server_info() -> Value {
    json!({"name": "gatekey", "title": "gatekey", "version": env!("CARGO_PKG_VERSION")})
}

fn needs_upstreams(method: &str) -> bool {
    matches!(method, "tools/call" | "tools/list")
}

fn refuse_unreadable(session: &Session, line: &[u8], error: &serde_json::Error) {
    let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
    let code = if is_json { INVALID_REQUEST } else { PARSE_ERROR };
    session.outbox.put(error_line("null", code, &format!("the line cannot be read: {error}"), None));
}

fn refuse_too_long(session: &Session, found: &TooLong) {
    let data = json!({"size_bytes": found.size_bytes}).to_string();
    if let Some(id) = found.id.as_ref().filter(|_| found.has_method) {
        session.outbox.put(error_line(id, INVALID_REQUEST, "the message is longer than a line may be", Some(&data)));
    }
}

fn log_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "the task of a request panicked");
    }
}

/// The subscription id of a notification, as JSON params.
pub(super) fn subscription_params(listener: &Listener) -> String {
    format!(r#"{{"_meta":{{{}:{}}}}}"#, json_text(META_SUBSCRIPTION), listener.id)
}
