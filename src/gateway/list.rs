//! `tools/list`: prepared bytes per (generation, era, caller, visible set). The same snapshot and scope give the same bytes.

use std::{
    collections::{HashMap, hash_map::DefaultHasher},
    hash::{Hash as _, Hasher as _},
    sync::{Arc, Mutex, PoisonError},
};

use super::meta;
use crate::{
    catalog::Snapshot,
    model::{limits::CACHE_MS, principal::Principal},
    wire::{envelope::json_text, era::Era},
};

/// Lists kept at once; a new generation empties the store.
const KEPT: usize = 256;

/// A list, ready to be sent.
#[derive(Debug, Clone)]
pub(super) struct Prepared {
    /// The result object.
    pub(super) result: Arc<str>,
    /// Digest of its tools, to tell whether a list changed.
    pub(super) digest: u64,
}

/// What a list depends on.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    era: Era,
    principal: Principal,
    /// Positions in the registry.
    visible: Vec<usize>,
}

/// The lists of the current generation, and the instructions that go before them.
#[derive(Debug, Default)]
pub(super) struct Lists {
    lists: Mutex<(u64, HashMap<Key, Prepared>)>,
    /// As JSON.
    instructions: Mutex<(u64, HashMap<Principal, Arc<str>>)>,
    /// Digests of our own resources.
    resources: Mutex<(u64, HashMap<Principal, u64>)>,
}

impl Lists {
    /// The server's instructions for `principal`.
    pub(super) fn instructions(&self, snapshot: &Snapshot, principal: &Principal) -> Arc<str> {
        let mut store = self.instructions.lock().unwrap_or_else(PoisonError::into_inner);
        let (generation, texts) = &mut *store;
        if *generation != snapshot.generation || texts.len() >= KEPT {
            *generation = snapshot.generation;
            texts.clear();
        }
        let made = || json_text(&super::catalogue::texts(snapshot, principal).instructions).into();
        Arc::clone(texts.entry(principal.clone()).or_insert_with(made))
    }

    /// Digest of what `principal` sees of our own skills as resources.
    pub(super) fn resources(&self, snapshot: &Snapshot, principal: &Principal) -> u64 {
        let mut store = self.resources.lock().unwrap_or_else(PoisonError::into_inner);
        let (generation, digests) = &mut *store;
        if *generation != snapshot.generation || digests.len() >= KEPT {
            *generation = snapshot.generation;
            digests.clear();
        }
        *digests.entry(principal.clone()).or_insert_with(|| super::skills::digest(snapshot, principal))
    }

    /// The list of the tools at `visible` behind our own.
    pub(super) fn prepared(
        &self,
        snapshot: &Snapshot,
        era: Era,
        principal: &Principal,
        visible: Vec<usize>,
    ) -> Prepared {
        let key = Key { era, principal: principal.clone(), visible };
        let mut store = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let (generation, lists) = &mut *store;
        if *generation != snapshot.generation || lists.len() >= KEPT {
            *generation = snapshot.generation;
            lists.clear();
        }
        if let Some(known) = lists.get(&key) {
            return known.clone();
        }
        let made = prepare(snapshot, &key);
        lists.insert(key, made.clone());
        made
    }
}

fn prepare(snapshot: &Snapshot, key: &Key) -> Prepared {
    let mut tools = meta::definitions(snapshot, &key.principal, key.era);
    let intent = snapshot.config.intent;
    let all = snapshot.registry.tools();
    tools.extend(
        key.visible.iter().filter_map(|position| all.get(*position)).map(|tool| tool.listed(intent).to_owned()),
    );
    let tools = tools.join(",");
    let mut hasher = DefaultHasher::new();
    tools.hash(&mut hasher);
    let rest = match key.era {
        Era::Legacy => String::new(),
        Era::Modern => format!(r#","resultType":"complete","ttlMs":{CACHE_MS},"cacheScope":"private""#),
    };
    Prepared { result: format!(r#"{{"tools":[{tools}]{rest}}}"#).into(), digest: hasher.finish() }
}
