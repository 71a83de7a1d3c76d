//! The two eras of MCP: versions, `_meta` keys and error codes. **Source:** the specification, revisions 2024-11-05 to
//! 2026-07-28.

use serde::Serialize;

/// How a peer speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Up to 2025-11-25: `initialize` opens a session.
    Legacy,
    /// From 2026-07-28: each request stands for itself.
    Modern,
}

/// The revisions with a session, oldest first.
pub const LEGACY_VERSIONS: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The newest revision with a session.
pub const LEGACY: &str = "2025-11-25";
/// The stateless revision.
pub const MODERN: &str = "2026-07-28";

/// `_meta` key of a modern request: its revision.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// `_meta` key of a modern request: who asks.
pub const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
/// `_meta` key of a modern request: what the asker can do.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// `_meta` key of a modern result: who answers.
pub const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";
/// `_meta` key of a notification on a `subscriptions/listen` stream: the id of the request that opened it.
pub const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// `_meta` key of a modern request: which log messages it wants.
pub const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The line is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The message is not a request.
pub const INVALID_REQUEST: i64 = -32600;
/// Nobody serves the method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The params do not fit the method.
pub const INVALID_PARAMS: i64 = -32602;
/// We failed.
pub const INTERNAL_ERROR: i64 = -32603;
/// The resource is not there, up to 2025-11-25; later [`INVALID_PARAMS`] says so.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// A header does not repeat what the body says.
pub const HEADER_MISMATCH: i64 = -32020;
/// The client did not say that it can do what the request needs.
pub const MISSING_CAPABILITY: i64 = -32021;
/// The request names a revision that we do not speak.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// Codes by which a peer shows that it is modern although it refused the request.
pub const MODERN_CODES: &[i64] = &[HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION];
