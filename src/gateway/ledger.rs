//! What every client was sent, kept until somebody writes it down. Numbers only.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::dispatch::Gateway;
use crate::{
    model::{limits::SENT_ENDED, sent::Sent},
    session::{SentRecord, Session, servers_digest},
};

/// The sessions that ended, and the clients that have none.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Of clients without sessions, over HTTP, whose requests stand for themselves.
    stateless: Arc<Sent>,
    /// Numbers of sessions with what they were sent, the oldest first.
    ended: Mutex<VecDeque<(u64, Arc<Sent>)>>,
}

impl Ledger {
    fn ended(&self) -> MutexGuard<'_, VecDeque<(u64, Arc<Sent>)>> {
        // Nothing in here can panic half-way through a change.
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session ends.
    pub(super) fn end(&self, session: &Session) {
        if Arc::ptr_eq(&session.sent, &self.stateless) {
            return;
        }
        let mut ended = self.ended();
        ended.push_back((session.id, Arc::clone(&session.sent)));
        while ended.len() > SENT_ENDED {
            ended.pop_front();
        }
    }
}

impl Gateway {
    /// Where is counted what clients without sessions are sent.
    pub fn stateless_sent(&self) -> Arc<Sent> {
        Arc::clone(&self.ledger.stateless)
    }

    /// What was sent to each client that got anything, under names that begin with `process`; those of sessions that ended
    /// come first, and how many they are stands beside.
    pub fn sent_records(&self, process: &str, at: u64) -> (Vec<SentRecord>, usize) {
        let snapshot = self.store.load();
        let servers = servers_digest(snapshot.config.upstreams.iter().map(|upstream| upstream.name.as_str()));
        let ended: Vec<(u64, Arc<Sent>)> = self.ledger.ended().iter().cloned().collect();
        let n_ended = ended.len();
        let open = self.sessions().into_iter().map(|session| (session.id, Arc::clone(&session.sent)));
        let open = open.filter(|(_, sent)| !Arc::ptr_eq(sent, &self.ledger.stateless));
        let stateless = std::iter::once((0, self.stateless_sent()));
        let record = |(number, sent): (u64, Arc<Sent>)| SentRecord {
            session: format!("{process}-{number}"),
            servers: servers.clone(),
            at,
            amounts: sent.amounts(),
        };
        let mut records: Vec<SentRecord> = ended.into_iter().chain(open).chain(stateless).map(record).collect();
        records.retain(|record| !record.is_empty());
        (records, n_ended)
    }

    /// The first so many sessions that ended are written down.
    pub fn forget_ended(&self, n_ended: usize) {
        let mut ended = self.ledger.ended();
        let n_ended = n_ended.min(ended.len());
        ended.drain(..n_ended);
    }
}
