//! One stream of messages to a client of the older era, which can be taken up again after it broke: what was sent is kept
//! for a while, under numbers that the client repeats.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;

use crate::{
    model::limits::REPLAY_BYTES,
    wire::{outbox::Outbox, sse},
};

/// One stream; its number is unique in its session.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) number: u64,
    pub(super) outbox: Arc<Outbox>,
    sent: Mutex<Sent>,
    /// Grows with each connection that takes the stream; only the last one reads.
    reader: AtomicU64,
}

/// What was sent, oldest first.
#[derive(Debug, Default)]
struct Sent {
    last: u64,
    events: VecDeque<(u64, Bytes)>,
    size_bytes: usize,
}

impl Stream {
    pub(super) fn new(number: u64, outbox: Arc<Outbox>) -> Self {
        Self { number, outbox, sent: Mutex::default(), reader: AtomicU64::new(0) }
    }

    fn sent(&self) -> MutexGuard<'_, Sent> {
        // Nothing in here can panic half-way through a change.
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Becomes the reader; returns its ticket.
    pub(super) fn attach(&self) -> u64 {
        let ticket = self.reader.fetch_add(1, Ordering::Relaxed) + 1;
        // Wakes the reader before, which finds that it is not the one any more.
        self.outbox.wake();
        ticket
    }

    /// Whether the connection with this ticket still is the reader.
    pub(super) fn is_reader(&self, ticket: u64) -> bool {
        self.reader.load(Ordering::Relaxed) == ticket
    }

    /// Makes an event of a message and keeps it.
    pub(super) fn event(&self, message: &[u8]) -> Bytes {
        let mut sent = self.sent();
        sent.last += 1;
        let event = sse::event(Some(&self.id(sent.last)), message);
        sent.size_bytes += event.len();
        let number = sent.last;
        sent.events.push_back((number, event.clone()));
        while sent.size_bytes > REPLAY_BYTES
            && sent.events.len() > 1
            && let Some((_, oldest)) = sent.events.pop_front()
        {
            sent.size_bytes -= oldest.len();
        }
        event
    }

    /// The events after the one with this number.
    pub(super) fn after(&self, last: u64) -> Vec<Bytes> {
        self.sent().events.iter().filter(|(number, _)| *number > last).map(|(_, event)| event.clone()).collect()
    }

    /// Bytes that are kept.
    pub(super) fn size_bytes(&self) -> usize {
        self.sent().size_bytes
    }

    /// The id of an event.
    pub(super) fn id(&self, event: u64) -> String {
        format!("{}-{event}", self.number)
    }
}

/// The stream's number and the event's, out of an event id.
pub(super) fn parse_id(id: &str) -> Option<(u64, u64)> {
    let (stream, event) = id.split_once('-')?;
    Some((stream.parse().ok()?, event.parse().ok()?))
}
