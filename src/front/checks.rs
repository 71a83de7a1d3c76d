//! What a request's headers must say of its body. **Source:** the specification's transport page, 2026-07-28 (SEP-2243).

use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::{
    catalog::Snapshot,
    wire::{
        envelope::{Envelope, as_text},
        era::{
            HEADER_MISMATCH, INVALID_PARAMS, META_CAPABILITIES, META_VERSION, METHOD_NOT_FOUND, MISSING_CAPABILITY,
            MODERN, UNSUPPORTED_VERSION,
        },
        headers::{METHOD, NAME, VERSION, decode, name_member, param_headers},
        splice::{Member, member, members},
    },
};

/// Why a request is refused.
#[derive(Debug, PartialEq)]
pub(super) struct Mismatch {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

fn mismatch(message: impl Into<String>) -> Mismatch {
    Mismatch { code: HEADER_MISMATCH, message: message.into(), data: None }
}

/// Whether a message is to be served in the newer era: its body says so, or its header alone.
pub(super) fn is_modern(headers: &HeaderMap, envelope: &Envelope<'_>) -> bool {
    let of_body = || {
        let all = members(envelope.params?)?;
        let meta = members(member(&all, "_meta")?.value)?;
        member(&meta, META_VERSION).map(|_| ())
    };
    headers.get(VERSION).is_some_and(|version| version == MODERN) || of_body().is_some()
}

/// Checks a request of the newer era.
///
/// # Errors
/// What does not fit, in the order in which it counts.
pub(super) fn check(headers: &HeaderMap, envelope: &Envelope<'_>, snapshot: &Snapshot) -> Result<(), Mismatch> {
    let all = envelope.params.and_then(|params| members(params)).unwrap_or_default();
    let meta = member(&all, "_meta").and_then(|meta| members(meta.value)).unwrap_or_default();
    let version = member(&meta, META_VERSION).and_then(|found| as_text(found.value));
    let Some(version) = version.filter(|_| member(&meta, META_CAPABILITIES).is_some()) else {
        let message = format!("`_meta` must have `{META_VERSION}` and `{META_CAPABILITIES}`");
        return Err(Mismatch { code: INVALID_PARAMS, message, data: None });
    };
    if sole(headers, VERSION)?.as_deref() != Some(&*version) {
        return Err(mismatch(format!("header {VERSION} must be the version that `_meta` names")));
    }
    if version != MODERN {
        let data = Some(json!({"supported": [MODERN], "requested": version}));
        return Err(Mismatch { code: UNSUPPORTED_VERSION, message: "unsupported protocol version".into(), data });
    }
    let method = envelope.method.as_deref().unwrap_or_default();
    if sole(headers, METHOD)?.as_deref() != Some(method) {
        return Err(mismatch(format!("header {METHOD} must be the method")));
    }
    if let Some(key) = name_member(method)
        && let Some(named) = member(&all, key).and_then(|found| as_text(found.value))
        && sole(headers, NAME)?.as_deref() != Some(&*named)
    {
        return Err(mismatch(format!("header {NAME} must be `{key}` of the params")));
    }
    if method == "tools/call" { check_params(headers, &all, snapshot) } else { Ok(()) }
}

/// Headers that repeat arguments, where the tool says that there are any.
fn check_params(headers: &HeaderMap, all: &[Member<'_>], snapshot: &Snapshot) -> Result<(), Mismatch> {
    let name = member(all, "name").and_then(|name| as_text(name.value)).unwrap_or_default();
    let Some(position) = snapshot.registry.position(&name) else { return Ok(()) };
    let schema = &*snapshot.registry.tools()[position].tool.input_schema;
    if !schema.contains("x-mcp-header") {
        return Ok(());
    }
    let schema = serde_json::from_str(schema).unwrap_or_default();
    let arguments = member(all, "arguments").map_or("{}", |arguments| arguments.value);
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    for header in param_headers(&schema) {
        if sole(headers, &header.name)? != header.value(&arguments) {
            return Err(mismatch(format!("header {} must be the argument that it repeats", header.name)));
        }
    }
    Ok(())
}

/// A header's value; one that stands twice could be read in two ways.
fn sole(headers: &HeaderMap, name: &str) -> Result<Option<String>, Mismatch> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let decoded = value.to_str().ok().and_then(decode).filter(|_| values.next().is_none());
    decoded.map(|value| Some(value.into_owned())).ok_or_else(|| mismatch(format!("header {name} cannot be read")))
}

/// The status of an answer of the newer era, which tells its error to what stands between.
pub(super) fn status(answer: &[u8]) -> StatusCode {
    /// An answer that is longer is a result, or an error whose status nobody needs.
    const MOST: usize = 4 << 10;
    if answer.len() > MOST {
        return StatusCode::OK;
    }
    let code = || {
        let envelope = Envelope::parse(answer.trim_ascii_end()).ok()?;
        let all = members(envelope.error?)?;
        member(&all, "code")?.value.parse::<i64>().ok()
    };
    match code() {
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
