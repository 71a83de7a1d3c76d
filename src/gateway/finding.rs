//! Searching for clients: beside the calls, as a search takes some milliseconds, and remembered for who asks the same again.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{Semaphore, watch};

use super::{
    catalogue,
    dispatch::{Gateway, Request},
};
use crate::{
    catalog::{Snapshot, semantic},
    config,
    model::{
        limits::{SEARCHES, SEARCHES_KEPT},
        principal::Principal,
    },
    search::{Found, Semantic},
};

/// What is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Skills,
    Tools,
}

impl What {
    fn find(self, snapshot: &Snapshot, query: &str, semantic: &Semantic) -> Found {
        match self {
            Self::Skills => snapshot.find_skills(query, semantic),
            Self::Tools => snapshot.find_tools(query, semantic),
        }
    }
}

/// What all searches share.
#[derive(Debug)]
pub(super) struct Finding {
    semantic: Arc<Semantic>,
    running: Arc<Semaphore>,
    /// What was searched for at all: skills, tools.
    asked: watch::Sender<[bool; 2]>,
    /// The last results, the newest last.
    recent: Mutex<VecDeque<Recent>>,
}

#[derive(Debug)]
struct Recent {
    generation: u64,
    what: What,
    query: String,
    found: Arc<Found>,
}

impl Finding {
    pub(super) fn new(search: &config::Search) -> Self {
        Self {
            semantic: Arc::new(semantic(search)),
            running: Arc::new(Semaphore::new(SEARCHES)),
            asked: watch::Sender::new([false; 2]),
            recent: Mutex::default(),
        }
    }

    fn known(&self, generation: u64, what: What, query: &str) -> Option<Arc<Found>> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |recent: &&Recent| recent.generation == generation && recent.what == what && recent.query == query;
        recent.iter().rev().find(is_it).map(|recent| Arc::clone(&recent.found))
    }

    fn find(&self, snapshot: &Snapshot, what: What, query: &str) -> Arc<Found> {
        let found = Arc::new(what.find(snapshot, query, &self.semantic));
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        // What is still being learnt is found better the next time.
        if !found.is_passing {
            let (generation, query) = (snapshot.generation, query.to_owned());
            recent.push_back(Recent { generation, what, query, found: Arc::clone(&found) });
        }
        if recent.len() > SEARCHES_KEPT {
            recent.pop_front();
        }
        found
    }
}

impl Gateway {
    /// What fits `query`; `None` where the request is taken up again once that is known.
    pub(super) fn find(self: &Arc<Self>, request: &Request<'_>, what: What, query: &str) -> Option<Arc<Found>> {
        let finding = &self.finding;
        finding.asked.send_if_modified(|asked| !std::mem::replace(&mut asked[what as usize], true));
        let known = finding.known(request.snapshot.generation, what, query);
        if known.is_some() || request.is_last_try() {
            return known.or_else(|| Some(finding.find(&request.snapshot, what, query)));
        }
        let (gateway, snapshot, query) = (Arc::clone(self), Arc::clone(&request.snapshot), query.to_owned());
        self.later(request, async move {
            // Never closed.
            let running = Arc::clone(&gateway.finding.running).acquire_owned().await.ok();
            let search = tokio::task::spawn_blocking(move || gateway.finding.find(&snapshot, what, &query));
            drop((search.await, running));
        });
        None
    }

    /// Lets the encoder know skills and tools before they are searched for: skills where the catalogue has no room for all
    /// of them, and whatever was searched for once.
    ///
    /// # Cancel safety
    /// Can be dropped at any time; what is being encoded ends a moment later.
    pub async fn learn(self: Arc<Self>) {
        let (mut generations, mut asked) = (self.store.watch(), self.finding.asked.subscribe());
        loop {
            let snapshot = self.store.load();
            let [of_skills, of_tools] = *asked.borrow_and_update();
            let of_skills = of_skills || catalogue::texts(&snapshot, &Principal::local()).is_cut;
            if of_skills || of_tools {
                let (store, semantic) = (Arc::clone(&self.store), Arc::clone(&self.finding.semantic));
                let generation = snapshot.generation;
                let learning = tokio::task::spawn_blocking(move || {
                    let is_wanted = || store.load().generation == generation;
                    if of_skills {
                        snapshot.learn_skills(&semantic, is_wanted);
                    }
                    if of_tools {
                        snapshot.learn_tools(&semantic, is_wanted);
                    }
                    snapshot.forget_others(&semantic);
                });
                if let Err(error) = learning.await {
                    tracing::error!(%error, "learning for the search ended early");
                }
            }
            tokio::select! {
                changed = generations.changed() => if changed.is_err() { return },
                changed = asked.changed() => if changed.is_err() { return },
            }
        }
    }
}
