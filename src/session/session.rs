//! One connection of a client, and what changes during it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::http::HeaderMap;
use tokio::{task::JoinSet, time::Instant};

use crate::{
    catalog::{OpenSkills, Snapshot},
    config::Exposure,
    model::{
        limits::RELIST,
        name::{ExposedName, SkillName},
        principal::Principal,
        sent::Sent,
    },
    wire::{outbox::Outbox, peer::Peer},
};

/// One connection of a client.
#[derive(Debug)]
pub struct Session {
    /// Tells its calls from those of others.
    pub id: u64,
    /// What upstreams ask the client, and where what nobody asked for goes.
    pub client: Peer,
    /// Who is behind it.
    pub principal: Principal,
    /// Whether it is the only one there can be, so that it shares upstreams with nobody.
    pub is_alone: bool,
    /// Whether others than its principal come by the same way.
    pub is_one_of_many: bool,
    /// What it was sent so far; clients without sessions share one.
    pub sent: Arc<Sent>,
    /// The skill whose endpoint it came to; its tools are open and listed.
    pub own_skill: Option<SkillName>,
    /// Headers that its client brought last, of those that upstreams want of callers.
    brought: Mutex<Option<Arc<HeaderMap>>>,
    state: Mutex<State>,
    /// Requests that wait for something else than one answer of an upstream.
    tasks: Mutex<JoinSet<()>>,
}

/// What changes during a session.
#[derive(Debug, Default)]
pub struct State {
    /// Whether `initialize` came, so that notifications of that era may be sent.
    pub is_legacy: bool,
    /// What the client said at `initialize` that it can do, as JSON. Legacy only.
    pub capabilities: Option<Box<str>>,
    /// The least severe log messages that the client wants; all that come where it did not say. Legacy only.
    pub log_level: Option<LogLevel>,
    /// Skills loaded, in the order of loading. Legacy only.
    unlocked: Arc<OpenSkills>,
    /// Tools that were described or called, which a long list takes one by one. Legacy only.
    asked: BTreeSet<ExposedName>,
    /// When the client was first told that its list changed.
    noticed_at: Option<Instant>,
    /// Whether it listed again after that.
    has_relisted: bool,
    /// Digest of the list that the client has, or was told of.
    pub known_list: Option<u64>,
    /// Digest of our own resources that the client has, or was told of.
    pub known_resources: Option<u64>,
    /// Digests of the playbooks that the client was given, by skill. Legacy only.
    given: BTreeMap<SkillName, u64>,
    /// Requests that wait for an upstream to start, by id as JSON; a cancelled one is no longer among them.
    waiting: BTreeSet<Box<str>>,
    /// Open `subscriptions/listen` requests, by id as JSON. Modern only.
    pub listeners: Vec<Listener>,
    /// Resources whose changes a legacy client wants to hear of, by exposed URI.
    pub subscribed: BTreeSet<Box<str>>,
}

/// An open subscription.
#[derive(Debug, Clone)]
pub struct Listener {
    /// Id of the request, as JSON.
    pub id: Box<str>,
    /// Its stream.
    pub to: Arc<Outbox>,
    /// Digest of the tool list that it was told of, where it wants to hear of changes.
    pub known_list: Option<u64>,
    /// Digest of our own resources that it was told of, where it wants to hear of changes.
    pub known_resources: Option<u64>,
    /// Notifications that it wants besides.
    pub wants: Vec<&'static str>,
    /// Resources whose changes it wants to hear of, by exposed URI.
    pub resources: BTreeSet<Box<str>>,
}

/// Severity of a log message, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogLevel(usize);

impl LogLevel {
    const NAMES: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

    /// Reads one of the protocol's eight names.
    pub fn parse(text: &str) -> Option<Self> {
        Self::NAMES.iter().position(|name| *name == text).map(Self)
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        Self::NAMES.get(self.0).copied().unwrap_or("debug")
    }
}

impl Session {
    /// Opens a session.
    pub fn new(outbox: Arc<Outbox>, principal: Principal) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let id = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let (client, state, tasks) = (Peer::over(outbox), Mutex::default(), Mutex::default());
        Self {
            id,
            client,
            principal,
            is_alone: false,
            is_one_of_many: false,
            sent: Arc::default(),
            own_skill: None,
            brought: Mutex::default(),
            state,
            tasks,
        }
    }

    /// Where what nobody asked for goes.
    pub fn outbox(&self) -> &Arc<Outbox> {
        self.client.outbox()
    }

    /// Headers that upstreams want of callers, as they came last.
    pub fn brought(&self) -> Option<Arc<HeaderMap>> {
        self.brought.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps such headers.
    pub fn bring(&self, headers: HeaderMap) {
        *self.brought.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(headers));
    }

    /// Lets a request wait in a task that ends with the session.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(ended) = tasks.try_join_next() {
            log_panic(ended);
        }
        tasks.spawn(task);
    }

    /// Waits until no request waits.
    ///
    /// # Cancel safety
    /// Dropped, it ends the requests that wait.
    pub async fn waited(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        while let Some(ended) = tasks.join_next().await {
            log_panic(ended);
        }
    }

    /// What changes; held for moments only.
    pub fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "the task of a request panicked");
    }
}

impl State {
    /// A legacy session begins, perhaps not the first of this connection.
    pub fn initialize(&mut self, capabilities: Option<&str>) {
        let (listeners, waiting) = (std::mem::take(&mut self.listeners), std::mem::take(&mut self.waiting));
        let capabilities = capabilities.map(Into::into);
        *self = Self { is_legacy: true, capabilities, listeners, waiting, ..Self::default() };
    }

    /// A request begins to wait.
    pub fn begin_wait(&mut self, id: &str) {
        self.waiting.insert(id.into());
    }

    /// The wait is over, or the request is cancelled; says whether it was still waiting.
    pub fn end_wait(&mut self, id: &str) -> bool {
        self.waiting.remove(id)
    }

    /// The skills whose tools are open by name.
    pub fn open_skills(&self) -> Arc<OpenSkills> {
        Arc::clone(&self.unlocked)
    }

    /// Whether the skill is unlocked.
    pub fn is_unlocked(&self, skill: &SkillName) -> bool {
        self.unlocked.contains(skill)
    }

    /// Unlocks a skill; says whether it was locked.
    pub fn unlock(&mut self, skill: &SkillName) -> bool {
        let is_new = !self.is_unlocked(skill);
        if is_new {
            Arc::make_mut(&mut self.unlocked).push(skill.clone());
        }
        is_new
    }

    /// A playbook is about to be given; says whether the client has another one, or none.
    pub fn give(&mut self, skill: &SkillName, digest: u64) -> bool {
        self.given.insert(skill.clone(), digest) != Some(digest)
    }

    /// Locks a skill; says whether it was unlocked.
    pub fn lock(&mut self, skill: &SkillName) -> bool {
        let n_before = self.unlocked.len();
        Arc::make_mut(&mut self.unlocked).retain(|known| known != skill);
        self.unlocked.len() < n_before
    }

    /// Notes that a tool was described or called; says whether that is new.
    pub fn ask(&mut self, tool: &ExposedName) -> bool {
        !self.asked.contains(tool) && self.asked.insert(tool.clone())
    }

    /// The client was told that its list changed.
    pub fn notice(&mut self, now: Instant) {
        self.noticed_at.get_or_insert(now);
    }

    /// The client listed.
    pub fn listed(&mut self) {
        self.has_relisted |= self.noticed_at.is_some();
    }

    /// Whether opened tools join the list of this session at all.
    fn grows(&self, exposure: Exposure, now: Instant) -> bool {
        match exposure {
            Exposure::List => true,
            Exposure::Dispatch => false,
            Exposure::Auto => self.has_relisted || self.noticed_at.is_none_or(|at| now - at < RELIST),
        }
    }

    /// The tools of this session's list, ascending positions: those always open, and of the opened ones those that fit
    /// the budget, a skill as a whole where it fits, else the tools that were asked for.
    pub fn listed_tools(&self, snapshot: &Snapshot, session: &Session, now: Instant) -> Vec<usize> {
        let all = snapshot.registry.tools();
        let is_visible = |position: usize| snapshot.is_shown(position, &session.principal);
        let own = snapshot.still_open(Arc::new(session.own_skill.iter().cloned().collect()), &session.principal);
        let mut listed: BTreeSet<usize> =
            (0..all.len()).filter(|position| snapshot.is_open(*position, &own) && is_visible(*position)).collect();
        if !self.is_legacy || !self.grows(snapshot.config.exposure, now) {
            return listed.into_iter().collect();
        }
        let mut left = snapshot.config.list_budget_tokens;
        let unlocked = snapshot.still_open(self.open_skills(), &session.principal);
        for skill in unlocked.iter().filter_map(|name| snapshot.skills.get(name)) {
            let joining =
                skill.tools.iter().copied().filter(|position| !listed.contains(position) && is_visible(*position));
            let joining: Vec<usize> = joining.collect();
            let tokens =
                |positions: &[usize]| -> usize { positions.iter().map(|position| all[*position].tool.tokens()).sum() };
            if tokens(&joining) <= left {
                left -= tokens(&joining);
                listed.extend(joining);
                continue;
            }
            for position in joining.into_iter().filter(|position| self.asked.contains(&all[*position].exposed)) {
                if let Some(rest) = left.checked_sub(tokens(&[position])) {
                    left = rest;
                    listed.insert(position);
                }
            }
        }
        listed.into_iter().collect()
    }
}
