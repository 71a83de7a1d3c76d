//! What is open by right of a credential, so that it ends when the credential does.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

use crate::auth::{Caller, Credential};

/// The connections that wait for messages.
#[derive(Debug, Default)]
pub(super) struct Grants(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    last: u64,
    all: HashMap<u64, (Caller, CancellationToken)>,
}

/// One of them; dropped, it is none any more.
#[derive(Debug)]
pub(super) struct Grant {
    number: u64,
    grants: Arc<Grants>,
    ended: CancellationToken,
}

impl Grants {
    fn open(&self) -> MutexGuard<'_, Open> {
        // Nothing in here can panic half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection begins to wait; `None` where nothing ends its right.
    pub(super) fn begin(self: &Arc<Self>, caller: &Caller) -> Option<Grant> {
        if caller.credential == Credential::None {
            return None;
        }
        let ended = CancellationToken::new();
        let mut open = self.open();
        open.last += 1;
        let number = open.last;
        open.all.insert(number, (caller.clone(), ended.clone()));
        Some(Grant { number, grants: Arc::clone(self), ended })
    }

    /// Ends those that may not stay.
    pub(super) fn end_others(&self, may_stay: impl Fn(&Caller) -> bool) {
        let ended: Vec<CancellationToken> = {
            let open = self.open();
            open.all.values().filter(|(caller, _)| !may_stay(caller)).map(|(_, ended)| ended.clone()).collect()
        };
        // Not under the lock: who is told may end at once, and take it.
        for ended in ended {
            ended.cancel();
        }
    }
}

impl Grant {
    /// Ready once the right is over.
    pub(super) fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        self.ended.clone().cancelled_owned()
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.grants.open().all.remove(&self.number);
    }
}
