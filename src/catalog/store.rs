//! Where readers take the current snapshot from, without a lock.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::watch;

use super::snapshot::Snapshot;

/// Holds the current snapshot. Only `reload` publishes.
#[derive(Debug)]
pub struct SnapshotStore {
    current: ArcSwap<Snapshot>,
    generation: watch::Sender<u64>,
}

impl SnapshotStore {
    /// Starts with `first`.
    pub fn new(first: impl Into<Arc<Snapshot>>) -> Self {
        let first = first.into();
        let generation = watch::Sender::new(first.generation);
        Self { current: ArcSwap::from(first), generation }
    }

    /// The current snapshot; a request takes it once.
    pub fn load(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Puts `next` in place and wakes those who watch.
    pub fn publish(&self, next: Snapshot) {
        let generation = next.generation;
        self.current.store(Arc::new(next));
        self.generation.send_replace(generation);
    }

    /// Follows the generations.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }
}
