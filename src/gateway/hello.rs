//! What a client is told when it arrives: `initialize` of the older era, `server/discover` of the newer one.

use serde_json::{Map, Value, json};

use super::{
    dispatch::{Gateway, Request},
    skills,
};
use crate::{
    model::{limits::CACHE_MS, sent::SentAs},
    session::LogLevel,
    upstream::Offering,
    wire::{
        envelope::{json_text, result_line},
        era::{Era, INVALID_PARAMS, LEGACY, LEGACY_VERSIONS, META_SERVER, MODERN},
    },
};

/// The extension of long calls in the modern era.
pub(super) const TASKS: &str = "io.modelcontextprotocol/tasks";

impl Gateway {
    pub(super) fn initialize(&self, request: &Request<'_>) {
        let asked = request.params.text_of("protocolVersion").unwrap_or_default();
        let version = LEGACY_VERSIONS.iter().find(|known| **known == asked).unwrap_or(&LEGACY);
        let instructions = self.lists.instructions(&request.snapshot, &request.session.principal);
        request.session.sent.add(SentAs::Instructions, instructions.len());
        let capabilities = request.params.raw("capabilities").map_or("{}", |raw| raw);
        request.session.state().initialize(Some(capabilities));
        self.pool.introduce(Era::Legacy, capabilities);
        // Put together by hand: it is the price of every session.
        let (ours, info) = (self.capabilities(Era::Legacy), server_info());
        let version = json_text(version);
        let result = format!(
            r#"{{"protocolVersion":{version},"capabilities":{ours},"serverInfo":{info},"instructions":{instructions}}}"#
        );
        request.to.answer(result_line(&request.id, &result));
    }

    pub(super) fn discover(&self, request: &Request<'_>) {
        let instructions = self.lists.instructions(&request.snapshot, &request.session.principal);
        request.session.sent.add(SentAs::Instructions, instructions.len());
        let instructions: Value = serde_json::from_str(&instructions).unwrap_or_default();
        self.pool.introduce(Era::Modern, "{}");
        request.answer(json!({
            "supportedVersions": [MODERN],
            "capabilities": self.capabilities(Era::Modern),
            "instructions": instructions,
            "ttlMs": if self.is_settled() { CACHE_MS } else { 0 },
            "cacheScope": "private",
            "_meta": {META_SERVER: server_info()},
        }));
    }

    /// What we can do is what upstreams can do. It is told before they are up, so it is not made to depend on them where
    /// an empty answer does no harm.
    fn capabilities(&self, era: Era) -> Value {
        let links = self.pool.links();
        let mut extensions = Map::new();
        extensions.insert(skills::EXTENSION.into(), json!({"directoryRead": true}));
        let mut all = json!({
            "tools": {"listChanged": true},
            "resources": {"subscribe": true, "listChanged": true},
            "prompts": {"listChanged": true},
            "completions": {},
        });
        match era {
            Era::Legacy => {
                all["logging"] = json!({});
                let tasks = links.iter().find_map(|link| link.capabilities().said.get("tasks").cloned());
                if let Some(tasks) = tasks {
                    all["tasks"] = tasks;
                }
            }
            Era::Modern => {
                let extension = format!("/extensions/{}", TASKS.replace('/', "~1"));
                if links.iter().any(|link| link.capabilities().said.pointer(&extension).is_some()) {
                    extensions.insert(TASKS.into(), json!({}));
                }
            }
        }
        let experimental: Map<String, Value> = links
            .iter()
            .rev()
            .filter_map(|link| link.capabilities().said.get("experimental").and_then(Value::as_object).cloned())
            .flatten()
            .collect();
        if !experimental.is_empty() {
            all["experimental"] = json!(experimental);
        }
        all["extensions"] = json!(extensions);
        all
    }

    /// Each upstream is told the least severe level that any client wants; each client gets what it wants.
    pub(super) fn set_log_level(&self, request: &Request<'_>) {
        let level = request.params.text_of("level");
        let Some(wanted) = level.as_deref().and_then(LogLevel::parse) else {
            return request.refuse(INVALID_PARAMS, "unknown level");
        };
        request.session.state().log_level = Some(wanted);
        self.tell_log_level();
        self.pool.tell_own(request.session.id, "logging/setLevel", &json!({"level": wanted.as_str()}).to_string());
        request.answer(json!({}));
    }

    /// Tells the upstreams of the older era which log messages clients want.
    pub(super) fn tell_log_level(&self) {
        let levels = self.sessions().into_iter().filter_map(|session| session.state().log_level);
        let Some(least) = levels.min() else { return };
        let params = json!({"level": least.as_str()}).to_string();
        for link in self.pool.links().iter() {
            if link.era() == Era::Legacy
                && link.capabilities().said.get("logging").is_some()
                && let Some(peer) = link.peer()
            {
                peer.tell("logging/setLevel", &params);
            }
        }
    }

    /// Whether any upstream that is known has such things.
    pub(super) fn has(&self, offering: Offering) -> bool {
        self.pool.links().iter().any(|link| link.offers(offering))
    }
}

fn server_info() -> Value {
    json!({"name": "gatekey", "title": "gatekey", "version": env!("CARGO_PKG_VERSION")})
}
