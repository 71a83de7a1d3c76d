//! Floor 1, JSON-RPC and MCP transports, raw: bodies are carried as the bytes they came in. Knows nothing of skills,
//! gates or upstream names. Read `envelope` first, then `peer`.

pub mod child;
pub mod confine;
pub mod envelope;
pub mod era;
pub mod group;
pub mod guard;
pub mod headers;
pub mod http_client;
mod http_stream;
pub mod json;
pub mod line;
pub mod outbox;
pub mod peer;
pub mod sandbox;
pub mod splice;
pub mod sse;
pub mod stdio;
#[cfg(target_os = "linux")]
mod syscalls;
pub mod timer;
