//! Telling clients that a list of theirs changed: once for each that sees a difference, and nothing to the others.

use std::sync::Arc;

use tokio::time::Instant;

use super::{
    dispatch::{Gateway, Request, listed_tools},
    subscribe::subscription_params,
};
use crate::{
    session::{Session, State},
    wire::{envelope::notification_line, era::Era, outbox::Outbox},
};

const LIST_CHANGED: &str = "notifications/tools/list_changed";
const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";

impl Gateway {
    /// Follows the snapshots and tells every session what changed for it.
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    pub async fn follow(self: Arc<Self>) {
        let mut generations = self.store.watch();
        while generations.changed().await.is_ok() {
            for session in self.sessions() {
                self.tell(&session, session.outbox());
                self.tell_of_resources(&session);
            }
        }
    }

    /// Tells one session over the stream `to`, if its list is another than the one it has.
    pub(super) fn tell(&self, session: &Session, to: &Outbox) {
        let snapshot = self.store.load();
        let is_legacy = session.state().is_legacy;
        if is_legacy {
            let digest = self.list_of(session, &snapshot, Era::Legacy).digest;
            let mut state = session.state();
            // A client that never listed has nothing to renew.
            if state.known_list.is_some_and(|known| known != digest) {
                state.known_list = Some(digest);
                to.put(notification_line(LIST_CHANGED, None));
            }
        }
        if session.state().listeners.is_empty() {
            return;
        }
        let digest = self.list_of(session, &snapshot, Era::Modern).digest;
        for listener in &mut session.state().listeners {
            if listener.known_list.is_some_and(|known| known != digest) {
                listener.known_list = Some(digest);
                listener.to.put(notification_line(LIST_CHANGED, Some(&subscription_params(listener))));
            }
        }
    }

    /// Tells one session if our own skills are others as resources than those that it knows of.
    fn tell_of_resources(&self, session: &Session) {
        let mut state = session.state();
        let is_listening = state.listeners.iter().any(|listener| listener.known_resources.is_some());
        if state.known_resources.is_none() && !is_listening {
            return;
        }
        let digest = self.lists.resources(&self.store.load(), &session.principal);
        // Says whether that is news for whoever knew `known`.
        let is_news = |known: &mut Option<u64>| known.is_some() && known.replace(digest) != Some(digest);
        if is_news(&mut state.known_resources) && state.is_legacy {
            session.outbox().put(notification_line(RESOURCES_CHANGED, None));
        }
        for listener in &mut state.listeners {
            if is_news(&mut listener.known_resources) {
                listener.to.put(notification_line(RESOURCES_CHANGED, Some(&subscription_params(listener))));
            }
        }
    }

    /// Does something in a legacy session and tells it if its list is another one then, over the stream of the request:
    /// the answer comes after this.
    pub(super) fn change_own_list(&self, request: &Request<'_>, change: impl FnOnce(&mut State)) {
        let session = request.session;
        let snapshot = self.store.load();
        let before = listed_tools(session, &snapshot, Era::Legacy);
        change(&mut session.state());
        if before == listed_tools(session, &snapshot, Era::Legacy) || !session.state().is_legacy {
            return;
        }
        // One that never listed has no list that could be another one later.
        let has_listed = session.state().known_list.is_some();
        let digest = has_listed.then(|| self.list_of(session, &snapshot, Era::Legacy).digest);
        session.state().known_list = digest;
        session.state().notice(Instant::now());
        request.to.put(notification_line(LIST_CHANGED, None));
    }
}
