//! What upstreams ask of clients and tell them: found out whose it is, and passed on to that client only. What cannot be
//! told apart is not passed on where clients of different principals could get each other's.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::debug;

use super::{dispatch::Gateway, error::answer_failure, recorded::outcome_of};
use crate::{
    config::BeyondTools,
    gate::policy::Kind,
    session::{LogLevel, Session},
    upstream::{Clients, Failure, Link, Message, Offering, Owner},
    wire::{
        envelope::{Envelope, error_line, id_key, json_text, notification_line},
        era::{Era, INTERNAL_ERROR, META_SUBSCRIPTION, METHOD_NOT_FOUND},
        outbox::Outbox,
        peer::{Caller, Form, Peer, Relay},
        splice::{Edits, member, members},
    },
};

const RESOURCE_UPDATED: &str = "notifications/resources/updated";

impl Clients for Gateway {
    fn failed(&self, link: &Link, relay: &Relay, failure: &Failure) {
        if let Some(watcher) = &relay.watcher {
            watcher.failed(outcome_of(failure));
        }
        answer_failure(link.name(), relay, failure);
    }

    fn asked(&self, link: &Arc<Link>, message: &Message<'_>) {
        let (Some(id), Some(method)) = (message.envelope.id, message.envelope.method.as_deref()) else { return };
        if let Some(shared) = self.pool.link(link.index()) {
            shared.note_question();
        }
        let refusal = match self.asked_client(link, message, method) {
            Some((session, to)) if can(&session, method) => {
                message.peer.hold(session.id);
                if pass_question(link, &session, &to, message) {
                    return;
                }
                error_line(id, INTERNAL_ERROR, "the client is gone", None)
            }
            Some(_) => error_line(id, METHOD_NOT_FOUND, "the client cannot do this", None),
            None => error_line(id, METHOD_NOT_FOUND, "there is no single client that this could be for", None),
        };
        debug!(upstream = %link.name(), method, "what the upstream asks is not passed on");
        message.peer.outbox().push(refusal).ok();
    }

    fn changed(&self, offering: Offering) {
        if offering == Offering::Prompts {
            self.tell_all("promptsListChanged", "notifications/prompts/list_changed");
        } else {
            self.tell_all("resourcesListChanged", "notifications/resources/list_changed");
        }
    }

    fn told(&self, link: &Arc<Link>, message: &Message<'_>) {
        let method = message.envelope.method.as_deref().unwrap_or_default();
        match method {
            "notifications/message" => self.log_message(link, message),
            RESOURCE_UPDATED => self.resource_updated(link, message),
            "notifications/cancelled" => self.question_cancelled(message),
            "notifications/tasks" | "notifications/tasks/status" => self.task_changed(link, message),
            _ => {
                for caller in self.recipients(link, message) {
                    caller.to.put(message.line.to_owned());
                }
            }
        }
    }

    fn connected(&self, link: &Arc<Link>, peer: &Arc<Peer>) {
        if link.owner().is_some() {
            return self.own_connected(link, peer);
        }
        self.note_shared_uris();
        // Clients that listed before it was up, or before it went down, must list again.
        let is_news = [Offering::Resources, Offering::Prompts]
            .map(|offering| link.known(offering).is_some() || (self.is_settled() && link.offers(offering)));
        for offering in [Offering::Resources, Offering::Templates, Offering::Prompts, Offering::Skills] {
            link.forget(offering);
        }
        self.tell_log_level();
        if is_news[0] {
            self.tell_all("resourcesListChanged", "notifications/resources/list_changed");
        }
        if is_news[1] {
            self.tell_all("promptsListChanged", "notifications/prompts/list_changed");
        }
    }

    fn removed(&self, link: &Link) {
        self.note_shared_uris();
        if link.offers(Offering::Resources) {
            self.tell_all("resourcesListChanged", "notifications/resources/list_changed");
        }
        if link.offers(Offering::Prompts) {
            self.tell_all("promptsListChanged", "notifications/prompts/list_changed");
        }
    }

    fn lost(&self, peer: &Peer) {
        for session in self.sessions() {
            session.client.cancel_all(peer.number());
        }
    }
}

impl Gateway {
    /// The client that a question is for: whose request it came with; else the only one that waits for this upstream;
    /// else the only one there is.
    fn asked_client(&self, link: &Link, message: &Message<'_>, method: &str) -> Option<(Arc<Session>, Arc<Outbox>)> {
        let with_session = |caller: Caller| Some((self.session(caller.session)?, caller.to));
        if let Some(id) = message.about
            && let Some(caller) = message.peer.caller(id)
        {
            return with_session(caller);
        }
        let mut callers = message.peer.callers();
        match callers.len() {
            0 if link.owner().is_some() => {
                let session = self.session(link.session()?)?;
                let to = Arc::clone(session.outbox());
                Some((session, to))
            }
            0 => {
                let mut able = self.sessions().into_iter().filter(|session| can(session, method));
                // It may be about somebody who has just gone.
                let only = able.next().filter(|only| able.next().is_none() && !only.is_one_of_many)?;
                let to = Arc::clone(only.outbox());
                Some((only, to))
            }
            1 => callers.pop().and_then(with_session),
            _ => None,
        }
    }

    /// A new connection of a session's own is told what the session said before.
    fn own_connected(&self, link: &Link, peer: &Peer) {
        let Some(session) = link.session().and_then(|session| self.session(session)) else { return };
        let (level, subscribed) = {
            let state = session.state();
            (state.log_level, state.subscribed.clone())
        };
        if let Some(level) = level.filter(|_| link.capabilities().said.get("logging").is_some()) {
            peer.tell("logging/setLevel", &json!({"level": level.as_str()}).to_string());
        }
        for found in
            subscribed.iter().filter_map(|uri| self.find_uri(uri)).filter(|found| found.upstream == link.index())
        {
            peer.tell("resources/subscribe", &json!({"uri": found.original}).to_string());
        }
    }

    /// Those whom a message is for that says nothing of that itself.
    fn recipients(&self, link: &Link, message: &Message<'_>) -> Vec<Caller> {
        if let Some(id) = message.about {
            return message.peer.caller(id).into_iter().collect();
        }
        let callers = message.peer.callers();
        if link.owner().is_some() && callers.is_empty() {
            let session = link.session().and_then(|session| self.session(session));
            return session.map(|session| unasked(&session)).into_iter().collect();
        }
        if callers.len() == 1 {
            return callers;
        }
        let sessions = self.sessions();
        let is_waiting = |session: &Arc<Session>| callers.iter().any(|caller| caller.session == session.id);
        let meant: Vec<&Arc<Session>> = if callers.is_empty() {
            sessions.iter().filter(|session| session.state().is_legacy).collect()
        } else {
            sessions.iter().filter(|session| is_waiting(session)).collect()
        };
        let is_one_principal = meant.windows(2).all(|pair| pair[0].principal == pair[1].principal);
        if !is_one_principal || meant.len() < callers.len() {
            return Vec::new();
        }
        if callers.is_empty() { meant.into_iter().map(unasked).collect() } else { callers }
    }

    /// Each client gets the messages of the severity that it asked for.
    fn log_message(&self, link: &Link, message: &Message<'_>) {
        let params: Value = parsed(message.envelope);
        let level = params["level"].as_str().and_then(LogLevel::parse);
        for caller in self.recipients(link, message).into_iter().filter(|caller| caller.takes_log) {
            let wanted = self.session(caller.session).and_then(|session| session.state().log_level);
            if wanted.is_none() || level.is_none() || level >= wanted {
                caller.to.put(message.line.to_owned());
            }
        }
    }

    /// Tells every client that wants to know, that a list changed.
    pub(super) fn tell_all(&self, wish: &str, method: &str) {
        for session in self.sessions() {
            let state = session.state();
            if state.is_legacy {
                session.outbox().put(notification_line(method, None));
            }
            for listener in state.listeners.iter().filter(|listener| listener.wants.contains(&wish)) {
                listener.to.put(notification_line(method, Some(&super::subscribe::subscription_params(listener))));
            }
        }
    }

    fn resource_updated(&self, link: &Arc<Link>, message: &Message<'_>) {
        let Some(params) = message.envelope.params else { return };
        let all = members(params).unwrap_or_default();
        let Some(uri) = member(&all, "uri") else { return };
        let original = crate::wire::envelope::as_text(uri.value).unwrap_or_default();
        let upstream = link.index();
        let exposed = self.expose_uri(upstream, &original);
        let line = |subscription: Option<&str>| {
            let mut edits = Edits::new(params);
            if exposed != original {
                edits.replace(uri.value, json_text(&exposed));
            }
            let meta = member(&all, "_meta");
            match (subscription, meta) {
                // The upstream's own subscription is between it and us.
                (None, Some(_)) => edits.remove(&all, |key| key == "_meta"),
                (Some(id), Some(meta)) => edits.replace(meta.value, format!(r#"{{"{META_SUBSCRIPTION}":{id}}}"#)),
                (Some(id), None) => {
                    edits.insert(params, "_meta", &format!(r#"{{"{META_SUBSCRIPTION}":{id}}}"#));
                }
                (None, None) => {}
            }
            notification_line(RESOURCE_UPDATED, Some(&edits.apply()))
        };
        for session in self.sessions().into_iter().filter(|session| self.hears(link, session)) {
            if !self.may_hear(&session, link, &exposed, &original) {
                continue;
            }
            let state = session.state();
            if state.subscribed.contains(exposed.as_str()) {
                session.outbox().put(line(None));
            }
            for listener in state.listeners.iter().filter(|listener| listener.resources.contains(exposed.as_str())) {
                listener.to.put(line(Some(&listener.id)));
            }
        }
    }

    /// Whether what comes over this connection without being asked for can be for `session`.
    fn hears(&self, link: &Link, session: &Session) -> bool {
        match link.owner() {
            Some(Owner { session: Some(own), .. }) => session.id == *own,
            Some(Owner { caller, .. }) => caller.as_ref().is_some_and(|caller| session.principal.name == caller.name),
            None => !self.pool.has_own(link.index(), session.id),
        }
    }

    /// Whether rules let the client of `session` know this resource, and whether its upstream is open to it where that
    /// counts: both may have changed since it asked to hear of it.
    pub(super) fn may_hear(&self, session: &Session, link: &Link, exposed: &str, original: &str) -> bool {
        let snapshot = self.store.load();
        let is_open = || {
            let era = if session.state().is_legacy { Era::Legacy } else { Era::Modern };
            let open = super::call::open_in(session, &snapshot, era, None);
            super::relay::is_any_open(&snapshot, &open, link.index())
        };
        snapshot.policy.is_visible(&session.principal, Kind::Resource, link.name(), exposed, original)
            && (snapshot.config.beyond_tools == BeyondTools::Readable || is_open())
    }

    /// An upstream takes back what it asked.
    fn question_cancelled(&self, message: &Message<'_>) {
        let all = message.envelope.params.and_then(|params| members(params)).unwrap_or_default();
        let Some(id) = member(&all, "requestId").map(|found| id_key(found.value)) else { return };
        let reason = member(&all, "reason").map(|found| found.value);
        for session in self.sessions() {
            session.client.cancel(message.peer.number(), &id, reason);
        }
    }

    /// News of a task is for whoever owns it.
    fn task_changed(&self, link: &Link, message: &Message<'_>) {
        let params: Value = parsed(message.envelope);
        let id = params["taskId"].as_str().or(params["task"]["taskId"].as_str()).unwrap_or_default();
        if let Some(caller) = message.about.and_then(|about| message.peer.caller(about)) {
            caller.to.put(message.line.to_owned());
            return;
        }
        for session in self.sessions().into_iter().filter(|session| self.hears(link, session)) {
            if session.state().is_legacy && self.tasks.upstream(id, &session.principal) == Some(link.index()) {
                session.outbox().put(message.line.to_owned());
            }
        }
    }

    /// Answers what upstreams asked a client that is gone.
    pub(super) fn no_client(&self, session: &Session) {
        for question in session.client.lose() {
            question.to.put(error_line(&question.client_id, INTERNAL_ERROR, "the client is gone", None));
        }
    }
}

fn unasked(session: &Arc<Session>) -> Caller {
    Caller { session: session.id, to: Arc::clone(session.outbox()), takes_log: true }
}

fn parsed(envelope: &Envelope<'_>) -> Value {
    envelope.params.and_then(|params| serde_json::from_str(params).ok()).unwrap_or_default()
}

/// Whether the client of a session said that it answers such questions. Those that we know nothing of are its own matter.
pub(super) fn can(session: &Session, method: &str) -> bool {
    let needed = match method {
        "sampling/createMessage" => "sampling",
        "elicitation/create" => "elicitation",
        "roots/list" => "roots",
        _ => return session.state().is_legacy,
    };
    let state = session.state();
    let Some(said) = state.capabilities.as_deref().filter(|_| state.is_legacy) else { return false };
    let said: Value = serde_json::from_str(said).unwrap_or_default();
    said.get(needed).is_some()
}

/// Asks a client for an upstream; says whether that could be sent.
fn pass_question(link: &Link, session: &Session, to: &Outbox, message: &Message<'_>) -> bool {
    let (Some(id), Ok(text)) = (message.envelope.id, std::str::from_utf8(message.line)) else { return false };
    let all = message.envelope.params.and_then(|params| members(params)).unwrap_or_default();
    let meta = member(&all, "_meta").and_then(|meta| members(meta.value)).unwrap_or_default();
    let token = member(&meta, "progressToken").map(|token| token.value);
    let now = Instant::now();
    let most = link.config().call_total;
    let relay = || Relay {
        to: Arc::clone(message.peer.outbox()),
        session: message.peer.number(),
        client_id: id_key(id),
        label: message.envelope.method.as_deref().unwrap_or_default().into(),
        form: Form::Error,
        takes_log: false,
        token: token.map(|token| token.into()),
        is_repeatable: false,
        finish: None,
        watcher: None,
        sent: None,
        held: None,
        // It waits for a person.
        idle: most,
        expires: now + most,
        ends: now + most,
    };
    let line = |own: &str| {
        let mut edits = Edits::new(text);
        edits.replace(id, own.to_owned());
        if let Some(token) = token {
            edits.replace(token, own.to_owned());
        }
        edits.apply().into_bytes()
    };
    let is_sent = session.client.relay_over(to, relay(), line).is_ok();
    is_sent || session.client.relay_over(session.outbox(), relay(), line).is_ok()
}
