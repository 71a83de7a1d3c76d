//! JSON-RPC as far as the parts need it: requests made once and sent under many ids, and a cheap look at what comes back.

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

/// The protocol version of the sessions measured.
pub(crate) const PROTOCOL: &str = "2025-06-18";
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
/// Longer answers are judged by their ends, so that reading them does not become what is measured.
const LONG_BYTES: usize = 16 << 10;
const END_BYTES: usize = 200;

/// The outside of a message.
#[derive(Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

/// The line with another id; `id` lies in it, and every other byte stays.
pub(crate) fn with_id(line: &[u8], id: &RawValue, new: &str) -> Vec<u8> {
    let start = id.get().as_ptr() as usize - line.as_ptr() as usize;
    [&line[..start], new.as_bytes(), &line[start + id.get().len()..]].concat()
}

/// As much of a message as a person wants to see.
pub(crate) fn start_of(message: &[u8]) -> String {
    String::from_utf8_lossy(&message[..message.len().min(END_BYTES)]).trim().to_owned()
}

/// A request without its id.
#[derive(Clone)]
pub(crate) struct Template(String);

impl Template {
    pub(crate) fn new(method: &str, params: &Value) -> Self {
        Self(format!(r#","method":"{method}","params":{params}}}"#))
    }

    pub(crate) fn initialize() -> Self {
        let client = json!({"name": "load", "version": "1"});
        Self::new("initialize", &json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}))
    }

    pub(crate) fn list(cursor: Option<&str>) -> Self {
        Self::new("tools/list", &cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor})))
    }

    pub(crate) fn call(tool: &str, arguments: &Value) -> Self {
        Self::new("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    pub(crate) fn with(&self, id: u64) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id}{}"#, self.0)
    }
}

/// What is known of an answer after a look at it.
pub(crate) struct Answer {
    pub(crate) id: u64,
    pub(crate) is_error: bool,
}

impl Answer {
    /// `None` for what is no answer.
    pub(crate) fn peek(line: &[u8]) -> Option<Self> {
        if line.len() > LONG_BYTES {
            return Self::peek_at_ends(line);
        }
        let message = Message::parse(line)?;
        let id = message.id?.get().parse().ok()?;
        if message.method.is_some() {
            return None;
        }
        let is_refused =
            message.result.is_none_or(|result| memmem::find(result.get().as_bytes(), br#""isError":true"#).is_some());
        Some(Self { id, is_error: message.error.is_some() || is_refused })
    }

    fn peek_at_ends(line: &[u8]) -> Option<Self> {
        let ends = [&line[..END_BYTES], &line[line.len() - END_BYTES..]];
        let has = |text: &[u8]| ends.iter().any(|end| memmem::find(end, text).is_some());
        let id = ends.iter().find_map(|end| {
            let digits = &end[memmem::find(end, br#""id":"#)? + 5..];
            let n_digits = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
            std::str::from_utf8(&digits[..n_digits]).ok()?.parse().ok()
        })?;
        Some(Self { id, is_error: has(br#""error":{"#) || has(br#""isError":true"#) })
    }
}
