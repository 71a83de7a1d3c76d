//! All upstreams of the config, started together; one that a new config adds, changes or takes away starts and stops alone.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use reqwest::header::HeaderMap;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    clients::Clients,
    handshake::Introduced,
    link::{Link, Own, Owner, Phase, Shared},
};
use crate::{
    config::Upstream,
    model::limits::{BACKOFF_MOST, DRAIN, OWN_CONNECTIONS, OWN_IDLE, OWN_PER_CALLER},
    wire::{era::Era, guard::Guard, peer::Peer},
};

/// Every upstream. Its tasks end with [`Pool::stop`].
#[derive(Debug)]
pub struct Pool {
    /// In the config's order.
    links: ArcSwap<Vec<Arc<Link>>>,
    /// Grows with each link; a number means the same upstream for ever.
    next_index: AtomicUsize,
    /// By which the links of the config are stopped, by index.
    stops: Mutex<BTreeMap<usize, CancellationToken>>,
    /// Links that are not of the config any more and end their last calls.
    retiring: Mutex<Vec<Arc<Link>>>,
    /// Connections that not all share, by upstream and owner.
    own: Mutex<BTreeMap<(usize, Owner), OwnLink>>,
    shared: Arc<Shared>,
    stop: CancellationToken,
    tasks: Mutex<JoinSet<()>>,
}

/// Runs a link; one that panics costs its calls, and starts again after a pause.
async fn kept_running(link: Arc<Link>, stop: CancellationToken) {
    loop {
        let mut running = JoinSet::new();
        running.spawn(Arc::clone(&link).run(stop.clone()));
        match running.join_next().await {
            Some(Err(error)) if error.is_panic() => {
                tracing::error!(upstream = %link.name(), %error, "the task of an upstream panicked");
                link.fail("gatekey failed on it");
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(BACKOFF_MOST) => {}
                }
            }
            _ => return,
        }
    }
}

/// Peers tell nobody that they have nothing left to do, so they are looked at.
async fn wait_while(is_busy: impl Fn() -> bool, most: Duration) {
    let deadline = Instant::now() + most;
    while is_busy() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A connection that not all share.
#[derive(Debug)]
struct OwnLink {
    link: Arc<Link>,
    stop: CancellationToken,
    used: Instant,
}

impl OwnLink {
    fn is_busy(&self) -> bool {
        self.link.peer().is_some_and(|peer| peer.n_open() > 0)
    }

    /// Whether it has had nothing to do for a while.
    fn is_idle(&self) -> bool {
        !self.is_busy() && self.used.elapsed() >= OWN_IDLE
    }
}

/// A caller who brings another credential each time takes no room from others: the oldest connection goes. `None` where all
/// are busy.
fn make_room(all: &mut BTreeMap<(usize, Owner), OwnLink>, index: usize, caller: &str) -> Option<()> {
    let is_their =
        |owner: &Owner| owner.session.is_none() && owner.caller.as_ref().is_some_and(|known| known.name == caller);
    let their = || all.iter().filter(|((upstream, owner), _)| *upstream == index && is_their(owner));
    if their().count() < OWN_PER_CALLER {
        return Some(());
    }
    let oldest = their().filter(|(_, own)| !own.is_busy()).min_by_key(|(_, own)| own.used).map(|(at, _)| at.clone())?;
    all.remove(&oldest)?.stop.cancel();
    Some(())
}

impl Pool {
    /// Makes the links; none of them does anything yet.
    pub fn new(upstreams: &[Upstream], line_limit_bytes: usize, guard: Arc<Guard>) -> Self {
        let (changes, client) = (watch::Sender::new(0), watch::Sender::new(None));
        let shared = Arc::new(Shared { changes, clients: OnceLock::new(), client, guard, line_limit_bytes });
        let pool = Self {
            links: ArcSwap::default(),
            next_index: AtomicUsize::new(0),
            stops: Mutex::default(),
            retiring: Mutex::default(),
            own: Mutex::default(),
            shared,
            stop: CancellationToken::new(),
            tasks: Mutex::default(),
        };
        pool.links.store(Arc::new(pool.links_for(upstreams)));
        pool
    }

    /// The links for these upstreams: those that there are, and new ones, which do not run yet. A new one that stands for
    /// a known upstream offers what that one did until it has listed.
    pub fn links_for(&self, upstreams: &[Upstream]) -> Vec<Arc<Link>> {
        let known = self.links();
        let link = |upstream: &Upstream| {
            let before = known.iter().find(|link| link.name() == &upstream.name);
            if let Some(same) = before.filter(|link| link.config() == upstream) {
                return Arc::clone(same);
            }
            let index = self.next_index.fetch_add(1, Ordering::Relaxed);
            let link = Link::new(upstream.clone(), index, None, Arc::clone(&self.shared));
            if let Some(before) = before {
                link.take_over(before);
            }
            Arc::new(link)
        };
        upstreams.iter().map(link).collect()
    }

    /// Puts `links` in the place of those that there are, and starts the new ones; returns those that are not among them.
    pub fn adopt(&self, links: Vec<Arc<Link>>) -> Vec<Arc<Link>> {
        let known = self.links();
        let is_in = |link: &Arc<Link>, all: &[Arc<Link>]| all.iter().any(|other| Arc::ptr_eq(other, link));
        for link in links.iter().filter(|link| !is_in(link, &known)) {
            self.run(link);
        }
        let removed = known.iter().filter(|link| !is_in(link, &links)).cloned().collect();
        self.links.store(Arc::new(links));
        removed
    }

    /// Stops a link that no snapshot has any more, once its calls in flight are answered.
    pub fn retire(self: &Arc<Self>, link: Arc<Link>) {
        self.retiring().push(Arc::clone(&link));
        let is_gone = self.links().iter().all(|other| other.name() != link.name());
        if let Some(clients) = self.shared.clients.get().filter(|_| is_gone) {
            clients.removed(&link);
        }
        let (pool, index) = (Arc::clone(self), link.index());
        self.tasks().spawn(async move {
            let is_of_it = |own: &OwnLink| own.link.index() == index;
            let is_busy = || {
                let own: Vec<Arc<Peer>> =
                    pool.own().values().filter(|own| is_of_it(own)).filter_map(|own| own.link.peer()).collect();
                own.into_iter().chain(link.peer()).any(|peer| peer.n_open() > 0)
            };
            tokio::select! {
                () = wait_while(is_busy, DRAIN) => {}
                () = pool.stop.cancelled() => {}
            }
            if let Some(stop) = pool.stops().remove(&index) {
                stop.cancel();
            }
            pool.own().retain(|_, own| {
                if is_of_it(own) {
                    own.stop.cancel();
                }
                !is_of_it(own)
            });
            pool.retiring().retain(|other| !Arc::ptr_eq(other, &link));
        });
    }

    fn run(&self, link: &Arc<Link>) {
        let stop = self.stop.child_token();
        self.stops().insert(link.index(), stop.clone());
        self.tasks().spawn(kept_running(Arc::clone(link), stop));
    }

    /// Starts all links at once, for `clients`; must be called within a runtime, once.
    pub fn start(&self, clients: Arc<dyn Clients>) {
        self.shared.clients.set(clients).ok();
        for link in self.links().iter() {
            self.run(link);
        }
    }

    /// Says who the client is and what it can do, as JSON; the first word holds.
    pub fn introduce(&self, era: Era, capabilities: &str) {
        self.shared.client.send_if_modified(|known| {
            let is_first = known.is_none();
            if is_first {
                *known = Some(Introduced { era, capabilities: capabilities.into() });
            }
            is_first
        });
    }

    /// The connection to the upstream at `index` that is for `owner` alone; opened if there is none. With `client`, which a
    /// session has, it is introduced as that, in the older era. One that is down is tried again if it `may_wake`. `None`
    /// where the upstream does not speak so, or where there are too many.
    pub fn open_own(
        self: &Arc<Self>,
        index: usize,
        owner: Owner,
        capabilities: Option<&str>,
        brought: HeaderMap,
        may_wake: bool,
    ) -> Option<Arc<Link>> {
        let shared_link = self.link(index)?;
        let mut all = self.own();
        let at = (index, owner.clone());
        if let Some(own) = all.get_mut(&at) {
            own.used = Instant::now();
            if owner.session.is_none() && may_wake {
                own.link.wake();
            }
            if own.link.is_available() || owner.session.is_none() {
                return Some(Arc::clone(&own.link));
            }
            shared_link.habits().is_modern_only |= own.link.habits().is_modern_only;
            return None;
        }
        if let Some(caller) = owner.caller.as_ref().filter(|_| owner.session.is_none()) {
            make_room(&mut all, index, &caller.name)?;
        }
        let n_own = all.keys().filter(|(upstream, _)| *upstream == index).count();
        if (owner.session.is_some() && shared_link.habits().is_modern_only) || n_own >= OWN_CONNECTIONS {
            return None;
        }
        let introduced = |said: &str| Introduced { era: Era::Legacy, capabilities: said.into() };
        let client = capabilities.map(|said| watch::Sender::new(Some(introduced(said))));
        let own = Own { owner, client, brought };
        let link = Arc::new(Link::new(shared_link.config().clone(), index, Some(own), Arc::clone(&self.shared)));
        link.take_over(&shared_link);
        let stop = self.stop.child_token();
        self.tasks().spawn(Arc::clone(&link).run(stop.clone()));
        if link.session().is_none() {
            self.tasks().spawn(Arc::clone(self).end_idle(at.clone(), stop.clone()));
        }
        all.insert(at, OwnLink { link: Arc::clone(&link), stop, used: Instant::now() });
        Some(link)
    }

    /// Ends a connection of a caller's own once it has had nothing to do for a while.
    async fn end_idle(self: Arc<Self>, at: (usize, Owner), stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(OWN_IDLE) => {}
            }
            let mut all = self.own();
            if all.get(&at).is_none_or(OwnLink::is_idle) {
                all.remove(&at);
                return stop.cancel();
            }
        }
    }

    /// Whether `session` has a connection of its own to the upstream at `index`.
    pub fn has_own(&self, index: usize, session: u64) -> bool {
        self.own().keys().any(|(upstream, owner)| *upstream == index && owner.session == Some(session))
    }

    /// Asks something over the connections of a session's own; nobody waits for the answers.
    pub fn tell_own(&self, session: u64, method: &str, params: &str) {
        for (_, own) in self.own().iter().filter(|((_, owner), _)| owner.session == Some(session)) {
            if let Some(peer) = own.link.peer() {
                peer.tell(method, params);
            }
        }
    }

    /// Ends the connections of a session's own.
    pub fn end_own(&self, session: u64) {
        self.own().retain(|(_, owner), own| {
            let is_its = owner.session == Some(session);
            if is_its {
                own.stop.cancel();
            }
            !is_its
        });
    }

    fn own(&self) -> MutexGuard<'_, BTreeMap<(usize, Owner), OwnLink>> {
        // Nothing in here can panic half-way through a change.
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stops(&self) -> MutexGuard<'_, BTreeMap<usize, CancellationToken>> {
        self.stops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn retiring(&self) -> MutexGuard<'_, Vec<Arc<Link>>> {
        self.retiring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tasks, without those that have ended.
    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks
    }

    /// In the config's order.
    pub fn links(&self) -> Arc<Vec<Arc<Link>>> {
        self.links.load_full()
    }

    /// The link with this index, while it is of the config.
    pub fn link(&self, index: usize) -> Option<Arc<Link>> {
        let links = self.links.load();
        // Until a new config comes, an index is a position.
        let at_its_position = links.get(index).filter(|link| link.index() == index);
        at_its_position.or_else(|| links.iter().find(|link| link.index() == index)).cloned()
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
            while self.links().iter().any(|link| link.phase() == Phase::Starting) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        timeout_at(deadline, all).await.is_ok()
    }

    /// Does something with every connection that is up.
    pub fn each_peer(&self, what: impl Fn(&Peer)) {
        for peer in self.peers() {
            what(&peer);
        }
    }

    /// The connections to one upstream that are up and that a session of `caller` may use: its own, the caller's, and that
    /// of all where callers have none of their own.
    pub fn peers_for(&self, index: usize, session: u64, caller: &str) -> Vec<Arc<Peer>> {
        let is_theirs = |owner: &Owner| match (owner.session, &owner.caller) {
            (Some(own), _) => own == session,
            (None, known) => known.as_ref().is_some_and(|known| known.name == caller),
        };
        let shared = self.link(index).filter(|link| !link.is_per_caller()).and_then(|link| link.peer());
        let own = self.own();
        let theirs = own.iter().filter(|((upstream, owner), _)| *upstream == index && is_theirs(owner));
        shared.into_iter().chain(theirs.filter_map(|(_, own)| own.link.peer())).collect()
    }

    fn peers(&self) -> Vec<Arc<Peer>> {
        let mut peers: Vec<Arc<Peer>> = self.links().iter().filter_map(|link| link.peer()).collect();
        peers.extend(self.retiring().iter().filter_map(|link| link.peer()));
        peers.extend(self.own().values().filter_map(|own| own.link.peer()));
        peers
    }

    /// Waits until no relayed call is open, at most `most`.
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    pub async fn drained(&self, most: Duration) {
        wait_while(|| self.peers().iter().any(|peer| peer.n_open() > 0), most).await;
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
