//! Telling clients that their list changed: once for each that sees a difference, and nothing to the others.

use std::sync::Arc;

use tokio::time::Instant;

use super::dispatch::{Gateway, subscription_params};
use crate::{
    session::{Session, State},
    wire::{envelope::notification_line, era::Era},
};

const LIST_CHANGED: &str = "notifications/tools/list_changed";

impl Gateway {
    /// Follows the snapshots and tells every session what changed for it.
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    pub async fn follow(self: Arc<Self>) {
        let mut generations = self.store.watch();
        while generations.changed().await.is_ok() {
            for session in self.sessions() {
                self.tell(&session);
            }
        }
    }

    /// Tells one session, if its list is another than the one it has.
    pub(super) fn tell(&self, session: &Session) {
        let snapshot = self.store.load();
        let is_legacy = session.state().is_legacy;
        if is_legacy {
            let digest = self.list_of(session, &snapshot, Era::Legacy).digest;
            let mut state = session.state();
            // A client that never listed has nothing to renew.
            if state.known_list.is_some_and(|known| known != digest) {
                state.known_list = Some(digest);
                session.outbox.put(notification_line(LIST_CHANGED, None));
            }
        }
        if session.state().listeners.is_empty() {
            return;
        }
        let digest = self.list_of(session, &snapshot, Era::Modern).digest;
        for listener in session.state().listeners.iter_mut().filter(|listener| listener.known_list != digest) {
            listener.known_list = digest;
            session.outbox.put(notification_line(LIST_CHANGED, Some(&subscription_params(listener))));
        }
    }

    /// Does something in a legacy session and tells it if its list is another one then; the answer comes after this.
    pub(super) fn change_own_list(&self, session: &Session, change: impl FnOnce(&mut State)) {
        let snapshot = self.store.load();
        let before = self.list_of(session, &snapshot, Era::Legacy).digest;
        change(&mut session.state());
        let after = self.list_of(session, &snapshot, Era::Legacy).digest;
        let mut state = session.state();
        if state.is_legacy && before != after {
            state.known_list = Some(after);
            state.notice(Instant::now());
            session.outbox.put(notification_line(LIST_CHANGED, None));
        }
    }
}
