//! What clients want to hear of: `resources/subscribe` of the older era, `subscriptions/listen` of the newer one.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value, json};

use super::{
    dispatch::{Gateway, Request},
    relay::not_there,
};
use crate::{
    gate::policy::{Decision, Kind},
    session::Listener,
    upstream::Offering,
    wire::{
        envelope::{json_text, notification_line},
        era::{Era, INVALID_PARAMS, META_SUBSCRIPTION},
    },
};

/// Changes of lists that a client can ask to hear of, besides that of tools.
const LISTS: [&str; 2] = ["promptsListChanged", "resourcesListChanged"];

impl Gateway {
    /// Acknowledges at once, whatever upstreams do; the stream stays open until the client closes it.
    pub(super) fn listen(self: &Arc<Self>, request: &Request<'_>) {
        let wanted = request.params.raw("notifications").map_or("{}", |raw| raw);
        let wanted: Value = serde_json::from_str(wanted).unwrap_or_default();
        let wants = |name: &str| wanted[name].as_bool() == Some(true);
        let uris = wanted["resourceSubscriptions"].as_array();
        let resources: BTreeSet<Box<str>> =
            uris.into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect();
        let mut accepted = Map::new();
        for name in ["toolsListChanged"].iter().chain(&LISTS).filter(|name| wants(name)) {
            accepted.insert((*name).to_owned(), json!(true));
        }
        if !resources.is_empty() {
            accepted.insert("resourceSubscriptions".into(), json!(resources));
        }
        let known_list =
            wants("toolsListChanged").then(|| self.list_of(request.session, &request.snapshot, Era::Modern).digest);
        let listener = Listener {
            id: request.id.clone(),
            to: Arc::clone(request.to),
            known_list,
            known_resources: wants("resourcesListChanged")
                .then(|| self.lists.resources(&request.snapshot, &request.session.principal)),
            wants: LISTS.into_iter().filter(|name| wants(name)).collect(),
            resources,
        };
        let meta: Value = serde_json::from_str(&subscription_params(&listener)).unwrap_or_default();
        let params = json!({"notifications": accepted, "_meta": meta["_meta"]}).to_string();
        request.to.put(notification_line("notifications/subscriptions/acknowledged", Some(&params)));
        let has_resources = !listener.resources.is_empty();
        {
            let mut state = request.session.state();
            // A client may use an id again once the stream is over, which it need not tell.
            state.listeners.retain(|other| other.id != listener.id && !other.to.is_closed());
            state.listeners.push(listener);
        }
        if has_resources {
            let gateway = Arc::clone(self);
            request.session.spawn(async move {
                for offering in [Offering::Resources, Offering::Templates] {
                    if gateway.is_unasked(offering) {
                        gateway.ask_all(offering).await;
                    }
                }
                gateway.resubscribe();
            });
        }
    }

    /// Notes the wish, and asks the upstream, whose answer is the client's.
    pub(super) fn subscribe(self: &Arc<Self>, request: &Request<'_>, method: &str) {
        let Some(uri) = request.params.text_of("uri") else {
            return request.refuse(INVALID_PARAMS, "`uri` must be a text");
        };
        let is_unasked = |offering| self.is_unasked(offering);
        if !request.has_waited() && [Offering::Resources, Offering::Templates].into_iter().any(is_unasked) {
            let gateway = Arc::clone(self);
            return self.later(request, async move {
                gateway.ask_all(Offering::Resources).await;
                gateway.ask_all(Offering::Templates).await;
            });
        }
        let Some(found) = self.find_uri(&uri) else { return not_there(request, &uri) };
        let may_use = self.may_use(request, Kind::Resource, found.upstream, &uri, &found.original);
        if may_use == Decision::Forbidden {
            return self.about_uri(request, method, &[]);
        }
        if method == "resources/subscribe" {
            if may_use == Decision::Allow {
                request.session.state().subscribed.insert(uri.as_ref().into());
            }
        } else {
            request.session.state().subscribed.remove(uri.as_ref());
        }
        let is_wanted = self.wanted_of(found.upstream).contains(&found.original);
        let is_legacy = self.connection(request, found.upstream).is_ok_and(|link| link.era() == Era::Legacy);
        if is_legacy && (method == "resources/subscribe" || !is_wanted) {
            self.about_uri(request, method, &[]);
        } else {
            request.answer(json!({}));
        }
        self.resubscribe();
    }

    /// Tells each upstream which of its resources any client wants to hear of.
    pub(super) fn resubscribe(&self) {
        for link in self.pool.links().iter() {
            link.want(self.wanted_of(link.index()));
        }
    }

    /// By the upstream's own URIs.
    fn wanted_of(&self, upstream: usize) -> BTreeSet<String> {
        let mut wanted = BTreeSet::new();
        // Where each caller has a right of their own, that of all must not tell whether something changed.
        let Some(link) = self.pool.link(upstream).filter(|link| !link.is_per_caller()) else { return wanted };
        for session in self.sessions().into_iter().filter(|session| !self.pool.has_own(upstream, session.id)) {
            let uris: BTreeSet<Box<str>> = {
                let state = session.state();
                let of_listeners = state.listeners.iter().flat_map(|listener| &listener.resources);
                state.subscribed.iter().chain(of_listeners).cloned().collect()
            };
            for uri in uris {
                if let Some(found) = self.find_uri(&uri).filter(|found| found.upstream == upstream)
                    && self.may_hear(&session, &link, &uri, &found.original)
                {
                    wanted.insert(found.original);
                }
            }
        }
        wanted
    }
}

/// The subscription id of a notification, as JSON params.
pub(super) fn subscription_params(listener: &Listener) -> String {
    format!(r#"{{"_meta":{{{}:{}}}}}"#, json_text(META_SUBSCRIPTION), listener.id)
}
