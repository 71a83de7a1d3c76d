//! All upstreams of the config, started together.

use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    clients::Clients,
    link::{Link, Phase, Shared},
};
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
    tasks: Mutex<JoinSet<()>>,
}

impl Pool {
    /// Makes the links; none of them does anything yet.
    pub fn new(upstreams: &[Upstream], line_limit_bytes: usize, guard: Option<Arc<Guard>>) -> Self {
        let (changes, capabilities) = (watch::Sender::new(0), watch::Sender::new(None));
        let shared = Arc::new(Shared { changes, clients: OnceLock::new(), capabilities, guard, line_limit_bytes });
        let link = |upstream: &Upstream| Arc::new(Link::new(upstream.clone(), Arc::clone(&shared)));
        let links = upstreams.iter().map(link).collect();
        Self { links, shared, stop: CancellationToken::new(), tasks: Mutex::default() }
    }

    /// Starts all links at once, for `clients`; must be called within a runtime, once.
    pub fn start(&self, clients: Arc<dyn Clients>) {
        self.shared.clients.set(clients).ok();
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        for link in &self.links {
            tasks.spawn(Arc::clone(link).run(self.stop.clone()));
        }
    }

    /// Says what the client can do, as JSON; the first word holds. Upstreams of the older era are told so when they are
    /// greeted.
    pub fn introduce(&self, capabilities: &str) {
        self.shared.capabilities.send_if_modified(|known| {
            let is_first = known.is_none();
            if is_first {
                *known = Some(capabilities.into());
            }
            is_first
        });
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
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "the task of an upstream panicked");
            }
        }
    }
}
