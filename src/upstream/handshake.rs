//! Finding out which era an upstream speaks, and greeting it in that era.
//!
//! **Source:** the specification's versioning page (2026-07-28): probe with `server/discover`, fall back to `initialize`
//! on any error that is not a modern one, and on silence.

use std::{sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::Value;
use tokio::{sync::watch, time::timeout};

use super::offers::Capabilities;
use crate::{
    model::limits::{CLIENT_SILENCE, PROBE_SILENCE},
    wire::{
        envelope::notification_line,
        era::{Era, LEGACY, LEGACY_VERSIONS, META_CAPABILITIES, META_CLIENT, META_VERSION, MODERN, MODERN_CODES},
        peer::{CallError, Peer, Reply},
    },
};

/// What is known of an upstream's era before it is greeted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Memory {
    /// Nothing.
    Unknown,
    /// It answered so before, or it exits on the probe.
    Known(Era),
}

/// How an upstream introduced itself.
#[derive(Debug, Clone)]
pub(super) struct Hello {
    /// How it speaks.
    pub(super) era: Era,
    /// Its title or name, and its version.
    pub(super) title: Option<String>,
    /// For models.
    pub(super) instructions: Option<String>,
    /// What it can do.
    pub(super) capabilities: Arc<Capabilities>,
}

impl Hello {
    /// Whether it has tools at all.
    pub(super) fn has_tools(&self) -> bool {
        self.capabilities.said.get("tools").is_some()
    }
}

/// Why an upstream could not be greeted.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandshakeError {
    /// No answer.
    #[error("`{method}`: {source}")]
    Call {
        /// What was asked.
        method: &'static str,
        /// Why there is no answer.
        source: CallError,
    },
    /// It refused.
    #[error("`initialize` was refused: {0}")]
    Refused(String),
    /// The answer is no introduction.
    #[error("the answer to `{0}` cannot be read")]
    Shape(&'static str),
    /// It speaks neither era in a revision that we know.
    #[error("it speaks revision {0} only, which is not known here")]
    Version(String),
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Introduction {
    protocol_version: Option<String>,
    supported_versions: Vec<String>,
    capabilities: Value,
    server_info: ServerInfo,
    instructions: Option<String>,
    #[serde(rename = "_meta")]
    meta: Meta,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Meta {
    /// Where modern servers introduce themselves.
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: ServerInfo,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ServerInfo {
    name: Option<String>,
    title: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RpcError {
    code: i64,
    message: String,
}

/// Greets the server behind `peer` within `most`.
pub(super) async fn greet(
    peer: &Peer,
    memory: Memory,
    most: Duration,
    client: &watch::Sender<Option<Introduced>>,
) -> Result<Hello, HandshakeError> {
    match memory {
        Memory::Known(Era::Legacy) => initialize(peer, most, client).await,
        Memory::Known(Era::Modern) => probe(peer, most, client).await,
        Memory::Unknown => {
            // A server that speaks both eras best speaks the client's, so that nothing must be translated.
            let is_legacy = introduced(client).await.is_some_and(|client| client.era == Era::Legacy);
            match if is_legacy { initialize(peer, most, client).await } else { probe(peer, most, client).await } {
                Err(HandshakeError::Refused(_) | HandshakeError::Version(_) | HandshakeError::Shape(_))
                    if is_legacy =>
                {
                    probe(peer, most, client).await
                }
                greeted => greeted,
            }
        }
    }
}

async fn probe(
    peer: &Peer,
    most: Duration,
    client: &watch::Sender<Option<Introduced>>,
) -> Result<Hello, HandshakeError> {
    let request = params(Era::Modern, None);
    let discover = peer.call("server/discover", &request, most);
    tokio::pin!(discover);
    if let Ok(answer) = timeout(PROBE_SILENCE, &mut discover).await {
        return match discovered(answer)? {
            Some(hello) => Ok(hello),
            None => initialize(peer, most, client).await,
        };
    }
    // Silence: a legacy server that drops what it does not know, or one that is still starting. Whichever answers first
    // in its own era is believed.
    let legacy = initialize(peer, most, client);
    tokio::pin!(legacy);
    let mut is_probe_open = true;
    loop {
        tokio::select! {
            // A server that starts late answers the probe first; it must be heard first.
            biased;
            answer = &mut discover, if is_probe_open => {
                is_probe_open = false;
                if let Ok(Some(hello)) = discovered(answer) {
                    return Ok(hello);
                }
            }
            greeted = &mut legacy => {
                return match greeted {
                    Err(HandshakeError::Refused(_)) if is_probe_open => {
                        discovered(discover.await)?.ok_or(HandshakeError::Shape("server/discover"))
                    }
                    other => other,
                };
            }
        }
    }
}

/// Reads the answer to the probe; `None` means that the server is to be asked in the legacy way.
fn discovered(answer: Result<Reply, CallError>) -> Result<Option<Hello>, HandshakeError> {
    // Over HTTP a server of the older era may refuse the request as a whole; a missing right is no matter of eras.
    if matches!(answer, Err(CallError::Refused(status)) if (400..500).contains(&status) && ![401, 403, 407].contains(&status))
    {
        return Ok(None);
    }
    let answer = answer.map_err(|source| HandshakeError::Call { method: "server/discover", source })?;
    let Reply::Result(raw) = answer else { return Ok(None) };
    let Ok(said) = serde_json::from_str::<Introduction>(&raw) else { return Ok(None) };
    let is_modern = said.supported_versions.iter().any(|version| version == MODERN);
    Ok(is_modern.then(|| hello(Era::Modern, said)))
}

async fn initialize(
    peer: &Peer,
    most: Duration,
    client: &watch::Sender<Option<Introduced>>,
) -> Result<Hello, HandshakeError> {
    let client = introduced(client).await;
    let capabilities = client.as_ref().map_or("{}", |client| &*client.capabilities);
    let request = format!(
        r#"{{"protocolVersion":"{LEGACY}","capabilities":{capabilities},"clientInfo":{{"name":"gatekey","version":"{}"}}}}"#,
        env!("CARGO_PKG_VERSION")
    );
    let answer = peer.call("initialize", &request, most).await;
    let raw = match answer.map_err(|source| HandshakeError::Call { method: "initialize", source })? {
        Reply::Result(raw) => raw,
        Reply::Error(error) => return Err(HandshakeError::Refused(error_text(&error))),
    };
    let said: Introduction = serde_json::from_str(&raw).map_err(|_shape| HandshakeError::Shape("initialize"))?;
    match &said.protocol_version {
        Some(version) if LEGACY_VERSIONS.contains(&version.as_str()) => {}
        Some(version) => return Err(HandshakeError::Version(version.clone())),
        None => return Err(HandshakeError::Shape("initialize")),
    }
    let initialized = notification_line("notifications/initialized", None);
    let sent = peer.outbox().push(initialized);
    sent.map_err(|error| HandshakeError::Call { method: "notifications/initialized", source: error.into() })?;
    Ok(hello(Era::Legacy, said))
}

/// The client, as far as upstreams are told. One that says nothing for a while can do nothing.
#[derive(Debug, Clone)]
pub(super) struct Introduced {
    /// How it speaks.
    pub(super) era: Era,
    /// What it can do, as JSON.
    pub(super) capabilities: Arc<str>,
}

/// Waits for the client; upstreams must not wait for one that is in no hurry.
async fn introduced(client: &watch::Sender<Option<Introduced>>) -> Option<Introduced> {
    let mut client = client.subscribe();
    let known = timeout(CLIENT_SILENCE, client.wait_for(Option::is_some)).await;
    known.ok().and_then(Result::ok).and_then(|known| known.clone())
}

fn hello(era: Era, said: Introduction) -> Hello {
    let info = if era == Era::Modern { said.meta.server_info } else { said.server_info };
    Hello {
        era,
        title: info.title.or(info.name),
        instructions: said.instructions.filter(|text| !text.trim().is_empty()),
        capabilities: Arc::new(Capabilities::new(said.capabilities)),
    }
}

/// Params of a request of our own in the given era; `member` is JSON without braces.
pub(super) fn params(era: Era, member: Option<&str>) -> String {
    let meta = format!(
        r#""_meta":{{"{META_VERSION}":"{MODERN}","{META_CLIENT}":{{"name":"gatekey","version":"{}"}},"{META_CAPABILITIES}":{{}}}}"#,
        env!("CARGO_PKG_VERSION")
    );
    match (era, member) {
        (Era::Legacy, None) => "{}".into(),
        (Era::Legacy, Some(member)) => format!("{{{member}}}"),
        (Era::Modern, None) => format!("{{{meta}}}"),
        (Era::Modern, Some(member)) => format!("{{{member},{meta}}}"),
    }
}

/// An error object in one line.
pub(super) fn error_text(error: &str) -> String {
    let read: RpcError = serde_json::from_str(error).unwrap_or_default();
    let era = if MODERN_CODES.contains(&read.code) { ", as a modern server does" } else { "" };
    format!("{} ({}{era})", read.message, read.code)
}
