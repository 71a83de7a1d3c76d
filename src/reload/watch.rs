//! When to look: the system's news of changed folders, coalesced into one wake-up, or a look at intervals. What changed is
//! not taken from the news; everything is read and compared, so none of them can be lost.

use std::{path::Path, sync::Arc, time::SystemTime};

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use super::places::Places;
use crate::config::Watch;

/// Watches folders. Everything here asks the file system and may take a while.
#[derive(Debug)]
pub(super) struct Watcher {
    mode: Watch,
    /// Told of every change that matters; a word that nobody took yet stands for all.
    wake: Arc<Notify>,
    places: Arc<Places>,
    native: Option<RecommendedWatcher>,
    /// Whether files must be looked at at intervals.
    pub(super) is_polling: bool,
    /// What they looked like last.
    stamp: Option<u64>,
}

impl Watcher {
    pub(super) fn new(mode: Watch, wake: Arc<Notify>) -> Self {
        Self { mode, wake, places: Arc::default(), native: None, is_polling: false, stamp: None }
    }

    /// Watches `places` from now on; says whether they are others than before.
    pub(super) fn watch(&mut self, places: Places) -> bool {
        let is_other = *self.places != places;
        if is_other {
            self.places = Arc::new(places);
            self.renew();
        }
        is_other
    }

    /// Begins to watch anew: a folder that was deleted and made again is another one, which nobody watches.
    pub(super) fn renew(&mut self) {
        let is_native = self.mode == Watch::Auto && !(self.is_polling && self.native.is_none());
        if is_native {
            // The watcher before ends only then, so that no change comes between them.
            self.native = match watcher(&self.places, &self.wake) {
                Ok(native) => Some(native),
                Err(error) => {
                    tracing::warn!(%error, "the system does not tell of changed files, they are looked at at intervals");
                    None
                }
            };
        }
        self.is_polling = self.native.is_none() || self.places.is_remote();
        // Before anything is read, so that what changes meanwhile looks other at the next look.
        self.stamp = if self.is_polling { self.places.stamp(SystemTime::now()) } else { None };
    }

    /// Whether anything seems to have changed since [`Watcher::renew`].
    pub(super) fn has_news(&self) -> bool {
        let stamp = self.places.stamp(SystemTime::now());
        stamp.is_none() || stamp != self.stamp
    }
}

fn watcher(places: &Arc<Places>, wake: &Arc<Notify>) -> notify::Result<RecommendedWatcher> {
    let (concerned, wake) = (Arc::clone(places), Arc::clone(wake));
    let mut watcher = notify::recommended_watcher(move |news: notify::Result<Event>| {
        // An error may have cost news.
        if news.map_or(true, |event| concerned.is_concerned(&event)) {
            wake.notify_one();
        }
    })?;
    let mut paths = watcher.paths_mut();
    for folder in places.folders() {
        match paths.add(folder, RecursiveMode::NonRecursive) {
            Err(error) if !is_gone(&error, folder) => return Err(error),
            _ => {}
        }
    }
    paths.commit()?;
    Ok(watcher)
}

/// Whether a folder cannot be watched because it is not there any more, of which the folder above tells, or because it
/// may not be read, in which case there is nothing to be told of.
fn is_gone(error: &notify::Error, folder: &Path) -> bool {
    matches!(error.kind, notify::ErrorKind::PathNotFound) || std::fs::read_dir(folder).is_err()
}
