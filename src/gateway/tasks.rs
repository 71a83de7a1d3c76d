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
    /// Position of the upstream, and whose task it is.
    owners: HashMap<String, (usize, Principal)>,
}

impl Tasks {
    /// Notes whose task it is. A name that is known stays whose it was, or one upstream could take another one's tasks.
    pub(super) fn add(&self, id: &str, upstream: usize, principal: &Principal) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.owners.contains_key(id) {
            return;
        }
        known.owners.insert(id.to_owned(), (upstream, principal.clone()));
        known.order.push_back(id.to_owned());
        while known.order.len() > TASKS
            && let Some(oldest) = known.order.pop_front()
        {
            known.owners.remove(&oldest);
        }
    }

    /// The upstream of a task, where `principal` may know it.
    pub(super) fn upstream(&self, id: &str, principal: &Principal) -> Option<usize> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.owners.get(id).filter(|(_, owner)| owner == principal).map(|(upstream, _)| *upstream)
    }

    /// Whether the client of `session` may hear of what `upstream` calls so: its own task, and one of which we know nothing
    /// where all clients are one principal.
    pub(super) fn is_for(&self, id: &str, upstream: usize, session: &Session) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .owners
            .get(id)
            .map_or(!session.is_one_of_many, |(its, owner)| (*its, owner) == (upstream, &session.principal))
    }
}
