//! What the gateway really says to fresh clients of a snapshot: its list, its instructions, and what loading each skill
//! returns. The gateway is the one that serves clients; only its upstreams are missing, so this works without any.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json, value::RawValue};
use tokio::sync::watch;

use crate::{
    catalog::{Snapshot, SnapshotStore},
    gate::key::Secret,
    gateway::{Gateway, META_TOOLS},
    model::{limits::CLIENT_QUEUE_BYTES, name::SkillName, principal::Principal},
    session::Session,
    upstream::Pool,
    wire::{
        envelope::{Envelope, request_line},
        era::{Era, LEGACY, META_CAPABILITIES, META_CLIENT, META_VERSION, MODERN},
        guard::Guard,
        outbox::Outbox,
    },
};

/// What clients of a snapshot are told.
#[derive(Debug)]
pub struct Said {
    /// At the start, in each era.
    pub starts: [Start; 2],
    /// By each skill that can be loaded; the core skill is not among them.
    pub loads: BTreeMap<SkillName, Load>,
}

/// What a fresh client is told.
#[derive(Debug)]
pub struct Start {
    /// How the client speaks.
    pub era: Era,
    /// The server's instructions, as the model gets them.
    pub instructions: String,
    /// Our own tools, each the JSON that stands in the list.
    pub own: Vec<String>,
    /// The upstreams' tools that are always open, each the JSON that stands in the list.
    pub always: Vec<String>,
}

/// What loading a skill returns.
#[derive(Debug)]
pub struct Load {
    /// The text of the result, as the model gets it.
    pub text: String,
    /// Of the whole result as it is sent, which has the same once more for programs.
    pub bytes: usize,
    /// By which its tools are called.
    pub key: String,
}

/// Asks the gateway as fresh clients of both eras do, on behalf of `principal`. `Err` says what it answered instead.
///
/// # Errors
/// The gateway refused something that every client may ask: our fault.
///
/// # Cancel safety
/// Can be dropped at any time.
pub async fn said(snapshot: &Arc<Snapshot>, principal: &Principal) -> Result<Said, String> {
    let store = Arc::new(SnapshotStore::new(Arc::clone(snapshot)));
    let pool = Arc::new(Pool::new(&[], snapshot.config.line_limit_bytes, Arc::new(Guard::default())));
    // The sender is not needed: it is settled from the beginning.
    let (_settled, is_settled) = watch::channel(true);
    let secret = Secret::new(snapshot.config.key_secret.clone().unwrap_or_default());
    let gateway = Arc::new(Gateway::new(store, pool, secret, is_settled));
    let mut legacy = Talk::new(&gateway, principal, Era::Legacy);
    let mut modern = Talk::new(&gateway, principal, Era::Modern);
    let starts = [modern.start().await?, legacy.start().await?];
    let mut loads = BTreeMap::new();
    for skill in snapshot.skills.values() {
        if snapshot.core.as_ref() != Some(&skill.name) && snapshot.knows_skill(skill, principal) {
            loads.insert(skill.name.clone(), modern.load(skill.name.as_str()).await?);
        }
    }
    Ok(Said { starts, loads })
}

/// One client.
struct Talk {
    gateway: Arc<Gateway>,
    session: Arc<Session>,
    era: Era,
}

impl Talk {
    fn new(gateway: &Arc<Gateway>, principal: &Principal, era: Era) -> Self {
        let session = Arc::new(Session::new(Arc::new(Outbox::new(CLIENT_QUEUE_BYTES)), principal.clone()));
        Self { gateway: Arc::clone(gateway), session, era }
    }

    async fn start(&mut self) -> Result<Start, String> {
        let greeting = match self.era {
            Era::Legacy => {
                let client = json!({"name": "gatekey", "version": env!("CARGO_PKG_VERSION")});
                json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client})
            }
            Era::Modern => json!({}),
        };
        let method = if self.era == Era::Legacy { "initialize" } else { "server/discover" };
        let greeted: Value = parsed(method, &self.ask(method, greeting).await?)?;
        #[derive(serde::Deserialize)]
        struct List<'a> {
            #[serde(borrow)]
            tools: Vec<&'a RawValue>,
        }
        #[derive(serde::Deserialize)]
        struct Named {
            name: String,
        }
        let listed = self.ask("tools/list", json!({})).await?;
        let list: List<'_> = parsed("tools/list", &listed)?;
        let instructions = greeted["instructions"].as_str().unwrap_or_default().to_owned();
        let (mut own, mut always) = (Vec::new(), Vec::new());
        for tool in list.tools {
            let named: Named = parsed("tools/list", tool.get())?;
            let is_own = META_TOOLS.contains(&named.name.as_str());
            if is_own { &mut own } else { &mut always }.push(tool.get().to_owned());
        }
        Ok(Start { era: self.era, instructions, own, always })
    }

    async fn load(&mut self, skill: &str) -> Result<Load, String> {
        let loaded = self.ask("tools/call", json!({"name": "skill_load", "arguments": {"name": skill}})).await?;
        let bytes = loaded.len();
        let loaded: Value = parsed("skill_load", &loaded)?;
        let text = loaded["content"][0]["text"].as_str();
        match (text, loaded["structuredContent"]["key"].as_str()) {
            (Some(text), Some(key)) => Ok(Load { text: text.to_owned(), bytes, key: key.to_owned() }),
            _ => Err(format!("loading `{skill}` is answered with {loaded}")),
        }
    }

    /// The result of a request, as JSON.
    async fn ask(&mut self, method: &str, mut params: Value) -> Result<String, String> {
        if self.era == Era::Modern {
            let client = json!({"name": "gatekey", "version": env!("CARGO_PKG_VERSION")});
            params["_meta"] = json!({META_VERSION: MODERN, META_CLIENT: client, META_CAPABILITIES: {}});
        }
        let line = request_line("1", method, &params.to_string());
        self.gateway.take(&self.session, self.session.outbox(), &line);
        loop {
            let answer = self.session.outbox().next().await;
            let answer = answer.ok_or_else(|| format!("`{method}` is not answered"))?;
            let envelope = Envelope::parse(&answer).map_err(|error| format!("`{method}`: {error}"))?;
            match (envelope.result, envelope.error) {
                (Some(result), _) => return Ok(result.to_owned()),
                (None, Some(error)) => return Err(format!("`{method}` is answered with {error}")),
                // A notice.
                (None, None) => {}
            }
        }
    }
}

fn parsed<'a, T: serde::Deserialize<'a>>(method: &str, text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("the answer to `{method}`: {error}"))
}
