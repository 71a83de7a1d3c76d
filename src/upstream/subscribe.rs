//! Hearing of an upstream's changes: of its lists, and of the resources that clients asked about. Begins anew with each
//! connection, so that a restart loses nothing.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::json;
use tokio::time::sleep;
use tracing::debug;

use super::{
    handshake::{Hello, params},
    link::Link,
};
use crate::{
    model::limits::{BACKOFF_FIRST, LIST_PAGE, SUBSCRIPTION},
    wire::{
        envelope::json_text,
        era::Era,
        peer::{CallError, Peer, Reply},
    },
};

impl Link {
    /// Sets the resources whose changes clients want to hear of, by the upstream's own URIs.
    pub fn want(&self, uris: BTreeSet<String>) {
        self.wanted.send_if_modified(|known| {
            let is_other = *known != uris;
            *known = uris;
            is_other
        });
    }

    /// Keeps the subscriptions of one connection; never ends by itself.
    pub(super) async fn subscribe(&self, peer: &Arc<Peer>, hello: &Hello) {
        match hello.era {
            Era::Legacy => self.subscribe_each(peer).await,
            Era::Modern => self.listen(peer, hello).await,
        }
        std::future::pending().await
    }

    /// In the older era changes of lists come unasked, and each resource is subscribed to by itself.
    async fn subscribe_each(&self, peer: &Peer) {
        let mut wanted = self.wanted.subscribe();
        let mut known = BTreeSet::new();
        loop {
            let now = wanted.borrow_and_update().clone();
            let news = now.difference(&known).map(|uri| ("resources/subscribe", uri));
            let gone = known.difference(&now).map(|uri| ("resources/unsubscribe", uri));
            for (method, uri) in news.chain(gone) {
                let about = format!(r#""uri":{}"#, json_text(uri));
                let answer = peer.call(method, &params(Era::Legacy, Some(&about)), LIST_PAGE).await;
                debug!(upstream = %self.name(), method, ?answer, "subscribing");
            }
            known = now;
            if wanted.changed().await.is_err() {
                return;
            }
        }
    }

    /// Keeps one stream open for everything, until the upstream refuses it.
    async fn listen(&self, peer: &Peer, hello: &Hello) {
        let mut wanted = self.wanted.subscribe();
        let tells = |list: &str| hello.capabilities.said.pointer(&format!("/{list}/listChanged")) == Some(&json!(true));
        let lists =
            [("tools", "toolsListChanged"), ("prompts", "promptsListChanged"), ("resources", "resourcesListChanged")];
        let mut filter = serde_json::Map::new();
        filter.extend(lists.iter().filter(|(list, _)| tells(list)).map(|(_, name)| ((*name).to_owned(), json!(true))));
        loop {
            let uris = wanted.borrow_and_update().clone();
            filter.remove("resourceSubscriptions");
            if !uris.is_empty() {
                filter.insert("resourceSubscriptions".into(), json!(uris));
            }
            if filter.is_empty() {
                if wanted.changed().await.is_err() {
                    return;
                }
                continue;
            }
            let request = params(hello.era, Some(&format!(r#""notifications":{}"#, json!(filter))));
            // Answered when the subscription ends, which a server may do at any time.
            let ended = tokio::select! {
                ended = peer.call_to_cancel("subscriptions/listen", &request, SUBSCRIPTION) => ended,
                _changed = wanted.changed() => continue,
            };
            debug!(upstream = %self.name(), ?ended, "the subscription to changes ended");
            if !matches!(ended, Ok(Reply::Result(_)) | Err(CallError::TimedOut)) {
                return;
            }
            sleep(BACKOFF_FIRST).await;
            // What happened in between was not told.
            self.list_changed.notify_one();
        }
    }
}
