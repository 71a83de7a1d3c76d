//! Which upstream a task is of. Learned from the answer that names it, before the client has that answer.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use crate::{
    model::{limits::TASKS, principal::Principal},
    session::Session,
};

/// Task ids, oldest first.
#[derive(Debug, Default)]
pub(super) struct Tasks(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    order: VecDeque<String>,
    /// Positions of upstreams by the names of those whose tasks they are: two may give the same id.
    owners: HashMap<String, HashMap<String, usize>>,
}

impl Tasks {
    /// Notes whose task it is. A name that is known stays whose it was, or one upstream could take another one's tasks.
    pub(super) fn add(&self, id: &str, upstream: usize, principal: &Principal) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.owners.contains_key(id) {
            known.order.push_back(id.to_owned());
        }
        known.owners.entry(id.to_owned()).or_default().entry(principal.name.clone()).or_insert(upstream);
        while known.order.len() > TASKS
            && let Some(oldest) = known.order.pop_front()
        {
            known.owners.remove(&oldest);
        }
    }

    /// The upstream of a task, where `principal` may know it.
    pub(super) fn upstream(&self, id: &str, principal: &Principal) -> Option<usize> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.owners.get(id)?.get(&principal.name).copied()
    }

    /// Whether the client of `session` may hear of what `upstream` calls so: its own task, and one of which we know nothing
    /// where all clients are one principal.
    pub(super) fn is_for(&self, id: &str, upstream: usize, session: &Session) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_theirs = |owners: &HashMap<String, usize>| owners.get(&session.principal.name) == Some(&upstream);
        known.owners.get(id).map_or(!session.is_one_of_many, is_theirs)
    }
}
