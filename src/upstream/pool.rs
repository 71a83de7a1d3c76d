//! All upstreams of the config, started together.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::link::{Link, OnFailure, Phase, Shared};
use crate::{
    config::Upstream,
    wire::{guard::Guard, peer::Peer},
};

/// Every upstream. Its tasks end with [`Pool::stop`].
#[derive(Debug)]
pub struct Pool {
    links: Vec<Arc<Link>>,
    shared: Arc<Shared>,
    stop: CancellationToken,
    tasks: tokio::sync::Mutex<JoinSet<()>>,
}

impl Pool {
    /// Makes the links and starts them all at once; must be called within a runtime.
    pub fn start(
        upstreams: &[Upstream],
        line_limit_bytes: usize,
        on_failure: OnFailure,
        guard: Option<Arc<Guard>>,
    ) -> Self {
        let shared = Arc::new(Shared { changes: watch::Sender::new(0), on_failure, guard, line_limit_bytes });
        let link = |upstream: &Upstream| Arc::new(Link::new(upstream.clone(), Arc::clone(&shared)));
        let links: Vec<Arc<Link>> = upstreams.iter().map(link).collect();
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for link in &links {
            tasks.spawn(Arc::clone(link).run(stop.clone()));
        }
        // Held across an await only by `stop`, which is the last to want it.
        Self { links, shared, stop, tasks: tokio::sync::Mutex::new(tasks) }
    }

    /// In the config's order.
    pub fn links(&self) -> &[Arc<Link>] {
        &self.links
    }

    /// Follows the changes of any view.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// Waits until every upstream is up or has failed, at most until `deadline`. Says whether they all were.
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    pub async fn settled(&self, deadline: Instant) -> bool {
        let mut changes = self.changes();
        let all = async {
            while self.links.iter().any(|link| link.phase() == Phase::Starting) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        timeout_at(deadline, all).await.is_ok()
    }

    /// Does something with every connection that is up.
    pub fn each_peer(&self, what: impl Fn(&Peer)) {
        for peer in self.links.iter().filter_map(|link| link.peer()) {
            what(&peer);
        }
    }

    /// Waits until no relayed call is open, at most `most`.
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    pub async fn drained(&self, most: Duration) {
        let deadline = Instant::now() + most;
        let is_busy = || self.links.iter().filter_map(|link| link.peer()).any(|peer| peer.n_open() > 0);
        while is_busy() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Ends every upstream and waits until nothing of them is left.
    ///
    /// # Cancel safety
    /// Must run to its end; dropped, it leaves processes behind until the guard ends them.
    pub async fn stop(&self) {
        self.stop.cancel();
        let mut tasks = self.tasks.lock().await;
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "the task of an upstream panicked");
            }
        }
    }
}
