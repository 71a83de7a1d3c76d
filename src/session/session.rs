//! One connection of a client, and what changes during it.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::time::Instant;

use crate::{
    catalog::{OpenSkills, Snapshot},
    config::Exposure,
    model::{
        limits::RELIST,
        name::{ExposedName, SkillName},
        principal::Principal,
    },
    wire::outbox::Outbox,
};

/// One connection of a client.
#[derive(Debug)]
pub struct Session {
    /// Tells its calls from those of others.
    pub id: u64,
    /// Towards the client.
    pub outbox: Arc<Outbox>,
    /// Who is behind it.
    pub principal: Principal,
    state: Mutex<State>,
}

/// What changes during a session.
#[derive(Debug, Default)]
pub struct State {
    /// Whether `initialize` came, so that notifications of that era may be sent.
    pub is_legacy: bool,
    /// Skills loaded, in the order of loading. Legacy only.
    unlocked: Vec<SkillName>,
    /// Tools that were described or called, which a long list takes one by one. Legacy only.
    asked: BTreeSet<ExposedName>,
    /// When the client was first told that its list changed.
    noticed_at: Option<Instant>,
    /// Whether it listed again after that.
    has_relisted: bool,
    /// Digest of the list that the client has, or was told of.
    pub known_list: Option<u64>,
    /// Requests that wait for an upstream to start, by id as JSON; a cancelled one is no longer among them.
    waiting: BTreeSet<Box<str>>,
    /// Open `subscriptions/listen` requests for changes of the tool list, by id as JSON. Modern only.
    pub listeners: Vec<Listener>,
}

/// An open subscription.
#[derive(Debug, Clone)]
pub struct Listener {
    /// Id of the request, as JSON.
    pub id: Box<str>,
    /// Digest of the list that it was told of.
    pub known_list: u64,
}

impl Session {
    /// Opens a session.
    pub fn new(outbox: Arc<Outbox>, principal: Principal) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self { id: LAST.fetch_add(1, Ordering::Relaxed) + 1, outbox, principal, state: Mutex::default() }
    }

    /// What changes; held for moments only.
    pub fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A legacy session begins, perhaps not the first of this connection.
    pub fn initialize(&mut self) {
        let (listeners, waiting) = (std::mem::take(&mut self.listeners), std::mem::take(&mut self.waiting));
        *self = Self { is_legacy: true, listeners, waiting, ..Self::default() };
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
    pub fn open_skills(&self) -> OpenSkills {
        self.unlocked.iter().cloned().collect()
    }

    /// Whether the skill is unlocked.
    pub fn is_unlocked(&self, skill: &SkillName) -> bool {
        self.unlocked.contains(skill)
    }

    /// Unlocks a skill; says whether it was locked.
    pub fn unlock(&mut self, skill: &SkillName) -> bool {
        let is_new = !self.is_unlocked(skill);
        if is_new {
            self.unlocked.push(skill.clone());
        }
        is_new
    }

    /// Locks a skill; says whether it was unlocked.
    pub fn lock(&mut self, skill: &SkillName) -> bool {
        let n_before = self.unlocked.len();
        self.unlocked.retain(|known| known != skill);
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
    pub fn listed_tools(&self, snapshot: &Snapshot, principal: &Principal, now: Instant) -> Vec<usize> {
        let all = snapshot.registry.tools();
        let is_visible = |position: usize| snapshot.is_visible(position, principal);
        let mut listed: BTreeSet<usize> =
            (0..all.len()).filter(|position| snapshot.is_always_open(*position) && is_visible(*position)).collect();
        if !self.is_legacy || !self.grows(snapshot.config.exposure, now) {
            return listed.into_iter().collect();
        }
        let mut left = snapshot.config.list_budget_tokens;
        for skill in self.unlocked.iter().filter_map(|name| snapshot.skills.get(name)) {
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
