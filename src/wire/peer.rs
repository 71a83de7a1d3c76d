//! One connection, seen from our side: the id table, calls of our own, relayed calls, cancellation and progress tokens.
//! Both ways: a server is asked for a client, and a client is asked for a server. Must not know what is called or why.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::oneshot, time::Instant};

use super::{
    envelope::{Envelope, as_text, notification_line, request_line},
    outbox::{Held, Outbox, PushError},
    splice::{member, members, replaced},
    timer,
};
use crate::model::sent::{Sent, SentAs};

/// A call that is passed on: where its answer goes, and under which id and token.
#[derive(Debug)]
pub struct Relay {
    /// The asker's queue.
    pub to: Arc<Outbox>,
    /// Tells the asker's calls from those of others: number of a session, or of a connection to a server.
    pub session: u64,
    /// The asker's request id, as JSON.
    pub client_id: Box<str>,
    /// What is called, for messages.
    pub label: Arc<str>,
    /// What kind of answer the asker expects where there is none.
    pub form: Form,
    /// Whether log messages go to it that come during the call.
    pub takes_log: bool,
    /// The asker's progress token, as JSON.
    pub token: Option<Box<str>>,
    /// Whether it does no harm if the server gets it twice.
    pub is_repeatable: bool,
    /// Changes the answer on its way, if anything is to change.
    pub finish: Option<Finish>,
    /// Who wants to know what becomes of it, if anybody does.
    pub watcher: Option<Box<dyn Watcher>>,
    /// Where the size of the answer is counted, if anywhere.
    pub sent: Option<Arc<Sent>>,
    /// Kept until the call is over.
    pub held: Option<Held>,
    /// Without answer or progress for this long the call is given up.
    pub idle: Duration,
    /// When the call is given up as things stand.
    pub expires: Instant,
    /// When the call is given up whatever happens.
    pub ends: Instant,
}

/// Wants to know what becomes of a call. Dropped without a word, the call was given up.
pub trait Watcher: fmt::Debug + Send + Sync {
    /// This line is the answer.
    fn answered(&self, line: &[u8]);
    /// There is none: a word for why.
    fn failed(&self, outcome: &'static str);
}

/// The form of an answer of ours in place of the asked one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A JSON-RPC error.
    Error,
    /// A result for a model, to a legacy client.
    ToolResult,
    /// A result for a model, to a modern client.
    ModernToolResult,
}

/// What is done with the line of an answer that already has the asker's id. Where nothing comes back, the call goes on and
/// is answered later.
pub struct Finish(pub Box<dyn FnOnce(Vec<u8>) -> Option<Vec<u8>> + Send>);

impl fmt::Debug for Finish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Finish")
    }
}

/// Who waits for a relayed call.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Number of its session.
    pub session: u64,
    /// The stream that its answer goes to.
    pub to: Arc<Outbox>,
    /// Whether log messages go to it.
    pub takes_log: bool,
}

impl Caller {
    fn of(relay: &Relay) -> Self {
        Self { session: relay.session, to: Arc::clone(&relay.to), takes_log: relay.takes_log }
    }
}

/// What a server answered to a call of our own.
#[derive(Debug)]
pub enum Reply {
    /// The result.
    Result(Box<str>),
    /// The error object.
    Error(Box<str>),
}

/// Why a call of our own has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The request could not be sent.
    #[error(transparent)]
    Push(#[from] PushError),
    /// The connection ended before the answer.
    #[error("the connection ended before the answer")]
    Gone,
    /// Nothing came in time.
    #[error("no answer in time")]
    TimedOut,
    /// The answer is over the line limit.
    #[error("the answer is longer than a line may be")]
    TooLong,
    /// The answer is no JSON-RPC message.
    #[error("the answer cannot be read")]
    Unreadable,
    /// The request was refused, with this HTTP status.
    #[error("it answered with HTTP status {0}")]
    Refused(u16),
}

#[derive(Debug)]
enum Ticket {
    Relay(Relay),
    Await(oneshot::Sender<Result<Reply, CallError>>),
}

/// What came of an answer.
#[derive(Debug)]
pub enum Answered {
    /// This line goes to that client.
    Pass(Arc<Outbox>, Vec<u8>),
    /// It was for a call of our own, or for one that was given up.
    Kept,
}

/// One connection.
#[derive(Debug)]
pub struct Peer {
    /// Tells connections apart, also those to one server after each other.
    number: u64,
    outbox: Arc<Outbox>,
    tickets: Mutex<Tickets>,
}

#[derive(Debug, Default)]
struct Tickets {
    last_id: u64,
    open: HashMap<u64, Ticket>,
}

impl Peer {
    /// Makes a connection that holds at most `queue_bytes` unsent.
    pub fn new(queue_bytes: usize) -> Self {
        Self::over(Arc::new(Outbox::new(queue_bytes)))
    }

    /// Makes a connection whose lines go to `outbox`.
    pub fn over(outbox: Arc<Outbox>) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self { number: LAST.fetch_add(1, Ordering::Relaxed) + 1, outbox, tickets: Mutex::default() }
    }

    /// Tells connections apart.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The queue towards the other side.
    pub fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    fn tickets(&self) -> MutexGuard<'_, Tickets> {
        // Nothing in here can panic half-way through a change.
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, ticket: Ticket) -> u64 {
        let mut tickets = self.tickets();
        tickets.last_id += 1;
        let id = tickets.last_id;
        tickets.open.insert(id, ticket);
        id
    }

    /// Sends the line that `line` makes of the new request's id, and passes the answer on as `relay` says.
    ///
    /// # Errors
    /// The line was not taken; nobody will answer `relay`.
    pub fn relay(&self, relay: Relay, line: impl FnOnce(&str) -> Vec<u8>) -> Result<(), PushError> {
        self.relay_over(&self.outbox, relay, line)
    }

    /// As [`Peer::relay`], over another stream of the same connection.
    ///
    /// # Errors
    /// The line was not taken; nobody will answer `relay`.
    pub fn relay_over(
        &self,
        stream: &Outbox,
        relay: Relay,
        line: impl FnOnce(&str) -> Vec<u8>,
    ) -> Result<(), PushError> {
        let id = self.open(Ticket::Relay(relay));
        stream.push(line(&id.to_string())).inspect_err(|_| {
            self.tickets().open.remove(&id);
        })
    }

    /// Who waits for the relayed call with this id of ours.
    pub fn caller(&self, id: u64) -> Option<Caller> {
        match self.tickets().open.get(&id)? {
            Ticket::Relay(relay) => Some(Caller::of(relay)),
            Ticket::Await(_) => None,
        }
    }

    /// One of the relayed calls of each session that waits for any.
    pub fn callers(&self) -> Vec<Caller> {
        let tickets = self.tickets();
        let mut callers: Vec<Caller> = Vec::new();
        for ticket in tickets.open.values() {
            if let Ticket::Relay(relay) = ticket
                && callers.iter().all(|caller| caller.session != relay.session)
            {
                callers.push(Caller::of(relay));
            }
        }
        callers
    }

    /// Whether the call with this id of ours may be sent a second time; calls of our own only ask.
    pub fn is_repeatable(&self, id: u64) -> bool {
        match self.tickets().open.get(&id) {
            Some(Ticket::Relay(relay)) => relay.is_repeatable,
            Some(Ticket::Await(_)) => true,
            None => false,
        }
    }

    /// The calls of `session` wait for somebody: only their whole time counts from now on.
    pub fn hold(&self, session: u64) {
        for ticket in self.tickets().open.values_mut() {
            if let Ticket::Relay(relay) = ticket
                && relay.session == session
            {
                relay.expires = relay.ends;
            }
        }
    }

    /// Calls the server and waits; `params` is JSON.
    ///
    /// # Errors
    /// See [`CallError`]. After a timeout the server is told, unless it was asked to `initialize`, which the protocol
    /// does not let anyone cancel.
    ///
    /// # Cancel safety
    /// Dropping the future gives the call up without telling the server.
    pub async fn call(&self, method: &str, params: &str, timeout: Duration) -> Result<Reply, CallError> {
        self.call_over(&self.outbox, method, params, timeout).await
    }

    /// As [`Peer::call`], over another stream of the same connection.
    ///
    /// # Errors
    /// See [`CallError`].
    ///
    /// # Cancel safety
    /// Dropping the future gives the call up without telling the other side.
    pub async fn call_over(
        &self,
        stream: &Outbox,
        method: &str,
        params: &str,
        timeout: Duration,
    ) -> Result<Reply, CallError> {
        let (sender, receiver) = oneshot::channel();
        let id = self.open(Ticket::Await(sender));
        let pending = Pending { peer: self, id };
        stream.push(request_line(&id.to_string(), method, params))?;
        match tokio::time::timeout(timeout, receiver).await {
            Ok(answer) => answer.unwrap_or(Err(CallError::Gone)),
            Err(_elapsed) => {
                drop(pending);
                if method != "initialize" {
                    self.tell_cancelled(id, None);
                }
                Err(CallError::TimedOut)
            }
        }
    }

    /// Asks something whose answer nobody waits for.
    pub fn tell(&self, method: &str, params: &str) {
        let id = {
            let mut tickets = self.tickets();
            tickets.last_id += 1;
            tickets.last_id
        };
        // A side that takes nothing more is about to be given up anyway.
        self.outbox.push(request_line(&id.to_string(), method, params)).ok();
    }

    /// As [`Peer::call`], but a call that is dropped is cancelled.
    ///
    /// # Errors
    /// See [`CallError`].
    ///
    /// # Cancel safety
    /// Dropping the future tells the server.
    pub async fn call_to_cancel(&self, method: &str, params: &str, timeout: Duration) -> Result<Reply, CallError> {
        let (sender, receiver) = oneshot::channel();
        let id = self.open(Ticket::Await(sender));
        let mut pending = Subscribed { peer: self, id, is_open: true };
        self.outbox.push(request_line(&id.to_string(), method, params))?;
        let answer = timer::timeout(timeout, receiver).await;
        pending.is_open = answer.is_none();
        answer.map_or(Err(CallError::TimedOut), |answer| answer.unwrap_or(Err(CallError::Gone)))
    }

    /// Takes an answer of the server; `envelope` was parsed from `line`.
    pub fn answered(&self, line: &[u8], envelope: &Envelope<'_>) -> Answered {
        let ticket = envelope.id.and_then(own_id).and_then(|id| self.tickets().open.remove(&id));
        match (ticket, envelope.id) {
            (Some(Ticket::Relay(relay)), Some(id)) => {
                if let Some(watcher) = &relay.watcher {
                    watcher.answered(line);
                }
                let out = replaced(line, id, &relay.client_id);
                let finished = match relay.finish {
                    Some(Finish(finish)) => finish(out),
                    None => Some(out),
                };
                if let (Some(line), Some(sent)) = (&finished, &relay.sent) {
                    sent.add(SentAs::Result, line.len());
                }
                finished.map_or(Answered::Kept, |line| Answered::Pass(relay.to, line))
            }
            (Some(Ticket::Await(sender)), _) => {
                let reply = match (envelope.error, envelope.result) {
                    (Some(error), _) => Reply::Error(error.into()),
                    (None, result) => Reply::Result(result.unwrap_or("null").into()),
                };
                // Whoever waited may have given up.
                drop(sender.send(Ok(reply)));
                Answered::Kept
            }
            _ => Answered::Kept,
        }
    }

    /// Takes the news of an answer that cannot be used; returns the relayed call that it answers.
    pub fn answer_useless(&self, id: &str, why: CallError) -> Option<Relay> {
        match id.parse().ok().and_then(|id: u64| self.tickets().open.remove(&id))? {
            Ticket::Relay(relay) => Some(relay),
            Ticket::Await(sender) => {
                drop(sender.send(Err(why)));
                None
            }
        }
    }

    /// Takes a progress notification; returns where it goes, with the client's own token, if anywhere.
    pub fn progressed(&self, line: &[u8], params: &str) -> Option<(Arc<Outbox>, Vec<u8>)> {
        let members = members(params)?;
        let token = member(&members, "progressToken")?.value;
        let mut tickets = self.tickets();
        let Some(Ticket::Relay(relay)) = tickets.open.get_mut(&own_id(token)?) else { return None };
        relay.expires = (Instant::now() + relay.idle).min(relay.ends);
        let theirs = relay.token.as_ref()?;
        Some((Arc::clone(&relay.to), replaced(line, token, theirs)))
    }

    /// Gives up the call that `session` knows as `client_id` and tells the server, with the client's `reason`. Says
    /// whether there was such a call.
    pub fn cancel(&self, session: u64, client_id: &str, reason: Option<&str>) -> bool {
        let mut tickets = self.tickets();
        let found = tickets.open.iter().find_map(|(id, ticket)| match ticket {
            Ticket::Relay(relay) if relay.session == session && &*relay.client_id == client_id => Some(*id),
            _ => None,
        });
        let Some(id) = found else { return false };
        tickets.open.remove(&id);
        drop(tickets);
        self.tell_cancelled(id, reason);
        true
    }

    /// Gives up every call of `session`, because its client is gone.
    pub fn cancel_all(&self, session: u64) {
        let gone = self.take(|relay| relay.session == session);
        for (id, _) in gone {
            self.tell_cancelled(id, None);
        }
    }

    /// Gives up the calls whose time is over; returns them, to be answered.
    pub fn expire(&self, now: Instant) -> Vec<Relay> {
        let expired = self.take(|relay| relay.expires <= now);
        for (id, _) in &expired {
            self.tell_cancelled(*id, None);
        }
        expired.into_iter().map(|(_, relay)| relay).collect()
    }

    /// The connection is gone: returns the relayed calls, to be answered; calls of our own end by themselves.
    pub fn lose(&self) -> Vec<Relay> {
        self.outbox.close();
        let lost = self.take(|_| true);
        self.tickets().open.clear();
        lost.into_iter().map(|(_, relay)| relay).collect()
    }

    /// Whether the call with this id of ours waits for its answer.
    pub fn is_open(&self, id: u64) -> bool {
        self.tickets().open.contains_key(&id)
    }

    /// Waits until no relayed call is open.
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    pub async fn idle(&self) {
        while self.n_open() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Relayed calls without an answer.
    pub fn n_open(&self) -> usize {
        self.tickets().open.values().filter(|ticket| matches!(ticket, Ticket::Relay(_))).count()
    }

    fn take(&self, is_wanted: impl Fn(&Relay) -> bool) -> Vec<(u64, Relay)> {
        let mut tickets = self.tickets();
        let wanted = |ticket: &Ticket| matches!(ticket, Ticket::Relay(relay) if is_wanted(relay));
        let mut taken: Vec<(u64, Relay)> = tickets
            .open
            .extract_if(|_, ticket| wanted(ticket))
            .filter_map(|(id, ticket)| match ticket {
                Ticket::Relay(relay) => Some((id, relay)),
                Ticket::Await(_) => None,
            })
            .collect();
        taken.sort_by_key(|(id, _)| *id);
        taken
    }

    fn tell_cancelled(&self, id: u64, reason: Option<&str>) {
        let reason = reason.map(|reason| format!(r#","reason":{reason}"#)).unwrap_or_default();
        let params = format!(r#"{{"requestId":{id}{reason}}}"#);
        // A server that takes nothing more is about to be given up anyway.
        self.outbox.push(notification_line("notifications/cancelled", Some(&params))).ok();
    }
}

/// Removes an own call's ticket when its future is dropped.
struct Pending<'a> {
    peer: &'a Peer,
    id: u64,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.peer.tickets().open.remove(&self.id);
    }
}

/// Gives up an own call when its future is dropped.
struct Subscribed<'a> {
    peer: &'a Peer,
    id: u64,
    is_open: bool,
}

impl Drop for Subscribed<'_> {
    fn drop(&mut self) {
        if self.peer.tickets().open.remove(&self.id).is_some() && self.is_open {
            self.peer.tell_cancelled(self.id, None);
        }
    }
}

/// Ids and tokens of ours are whole numbers; some servers send them back as texts.
fn own_id(raw: &str) -> Option<u64> {
    raw.parse().ok().or_else(|| as_text(raw)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relay(to: &Arc<Outbox>, session: u64, client_id: &str) -> Relay {
        let now = Instant::now();
        Relay {
            to: Arc::clone(to),
            session,
            client_id: client_id.into(),
            label: "t".into(),
            form: Form::ToolResult,
            takes_log: true,
            token: Some(r#""their token""#.into()),
            is_repeatable: false,
            finish: None,
            watcher: None,
            sent: None,
            held: None,
            idle: Duration::from_secs(5),
            expires: now + Duration::from_secs(5),
            ends: now + Duration::from_secs(8),
        }
    }

    async fn sent(outbox: &Outbox) -> Vec<String> {
        outbox.close();
        let mut written = Vec::new();
        outbox.write_to(&mut written).await.unwrap();
        String::from_utf8(written).unwrap().lines().map(str::to_owned).collect()
    }

    fn answer(peer: &Peer, line: &str) -> Option<String> {
        match peer.answered(line.as_bytes(), &Envelope::parse(line.as_bytes()).unwrap()) {
            Answered::Pass(_, line) => Some(String::from_utf8(line).unwrap()),
            Answered::Kept => None,
        }
    }

    #[tokio::test]
    async fn an_answer_comes_back_under_the_clients_id_and_else_unchanged() {
        let (peer, client) = (Peer::new(1 << 20), Arc::new(Outbox::new(1 << 20)));
        peer.relay(relay(&client, 1, r#""c""#), |id| format!(r#"{{"id":{id}}}"#).into()).unwrap();
        let line = r#"{ "jsonrpc":"2.0", "id": 1, "x":0, "result":{"n":1e400} }"#;
        let expected = r#"{ "jsonrpc":"2.0", "id": "c", "x":0, "result":{"n":1e400} }"#;
        assert_eq!(answer(&peer, line).unwrap(), expected);
        assert_eq!(answer(&peer, line), None, "a second answer surfaces nowhere");
    }

    #[tokio::test]
    async fn an_answer_is_finished_after_it_has_the_askers_id() {
        let (peer, client) = (Peer::new(1 << 20), Arc::new(Outbox::new(1 << 20)));
        let finish = Finish(Box::new(|line| Some([line, b" ".to_vec()].concat())));
        peer.relay(Relay { finish: Some(finish), ..relay(&client, 1, "5") }, |_| Vec::new()).unwrap();
        assert_eq!(peer.callers().len(), 1);
        assert_eq!(answer(&peer, r#"{"id":1,"result":{}}"#).unwrap(), r#"{"id":5,"result":{}} "#);
    }

    #[tokio::test]
    async fn a_cancellation_reaches_the_server_under_its_own_id_and_the_late_answer_is_dropped() {
        let (peer, client) = (Peer::new(1 << 20), Arc::new(Outbox::new(1 << 20)));
        for (session, id) in [(1, "7"), (2, "7")] {
            peer.relay(relay(&client, session, id), |_| b"call".into()).unwrap();
        }
        let reason = r#""enough""#;
        assert!(peer.cancel(2, "7", Some(reason)));
        assert!(!peer.cancel(2, "7", None), "it is given up once");
        assert!(!peer.cancel(2, r#""7""#, None), "a text is another id");
        assert_eq!(answer(&peer, r#"{"id":2,"result":{}}"#), None);
        let cancelled =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"enough"}}"#;
        assert_eq!(sent(peer.outbox()).await, ["call", "call", cancelled]);
    }

    #[tokio::test(start_paused = true)]
    async fn progress_carries_the_clients_token_and_prolongs_the_call_up_to_its_end() {
        let (peer, client) = (Peer::new(1 << 20), Arc::new(Outbox::new(1 << 20)));
        peer.relay(relay(&client, 1, "7"), |_| Vec::new()).unwrap();
        let line = r#"{"method":"notifications/progress","params":{"progressToken":1,"progress":0.5}}"#;
        let envelope = Envelope::parse(line.as_bytes()).unwrap();
        tokio::time::advance(Duration::from_secs(4)).await;
        let (_, passed) = peer.progressed(line.as_bytes(), envelope.params.unwrap()).unwrap();
        assert_eq!(String::from_utf8(passed).unwrap(), line.replace("\":1", "\":\"their token\""));
        tokio::time::advance(Duration::from_secs(3)).await;
        assert!(peer.expire(Instant::now()).is_empty(), "progress came 3 s ago");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(peer.expire(Instant::now()).len(), 1, "the whole call has had 8 s");
        assert!(peer.progressed(line.as_bytes(), envelope.params.unwrap()).is_none(), "nothing after the end");
    }

    #[tokio::test(start_paused = true)]
    async fn an_own_call_that_times_out_is_cancelled_but_initialize_is_not() {
        let peer = Peer::new(1 << 20);
        for method in ["tools/list", "initialize"] {
            assert_eq!(peer.call(method, "{}", Duration::from_secs(1)).await.unwrap_err(), CallError::TimedOut);
        }
        let lines = sent(peer.outbox()).await;
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[1].contains("notifications/cancelled") && lines[1].contains(r#""requestId":1"#));
    }
}
