//! The outside of a JSON-RPC message: id, method, and where its bodies lie. Bodies are never decoded here.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// One message, borrowed from its line.
#[derive(Debug, Deserialize)]
pub struct Envelope<'a> {
    /// As written; `null` counts as absent.
    #[serde(borrow, default)]
    pub id: Option<&'a RawValue>,
    /// Of requests and notifications.
    #[serde(borrow, default, deserialize_with = "text")]
    pub method: Option<Cow<'a, str>>,
    /// Of requests and notifications; `null` counts as absent.
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
    /// Of answers; may be `null`.
    #[serde(borrow, default, deserialize_with = "present")]
    pub result: Option<&'a RawValue>,
    /// Of answers.
    #[serde(borrow, default, deserialize_with = "present")]
    pub error: Option<&'a RawValue>,
}

/// What a message is, by the members it has.
#[derive(Debug)]
pub enum Kind<'a> {
    /// Wants an answer under this id.
    Request {
        /// As written.
        id: &'a RawValue,
        /// What is asked.
        method: &'a str,
    },
    /// Wants none.
    Notification {
        /// What happened.
        method: &'a str,
    },
    /// Answers a request of ours.
    Response {
        /// As written.
        id: &'a RawValue,
    },
    /// JSON, but no message.
    Noise,
}

impl<'a> Envelope<'a> {
    /// Parses one line.
    ///
    /// # Errors
    /// The line is not one JSON object in UTF-8, or a member of the envelope stands twice or has the wrong type.
    pub fn parse(line: &'a [u8]) -> Result<Self, serde_json::Error> {
        // Serde would take a list as a structure's members in their order.
        if line.trim_ascii_start().first() == Some(&b'[') {
            return Err(serde::de::Error::custom("batches are not served"));
        }
        // Checked as a whole, bodies need no check of their own.
        let text = std::str::from_utf8(line).map_err(serde::de::Error::custom)?;
        serde_json::from_str(text)
    }

    /// Says what the message is.
    pub fn kind(&self) -> Kind<'_> {
        match (self.method.as_deref(), self.id) {
            (Some(method), Some(id)) => Kind::Request { id, method },
            (Some(method), None) => Kind::Notification { method },
            (None, Some(id)) if self.result.is_some() || self.error.is_some() => Kind::Response { id },
            _ => Kind::Noise,
        }
    }
}

/// Tells an absent member from one that is `null`.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Borrows a text where it holds no escapes.
fn text<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'a, str>>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    as_text(raw).map(Some).ok_or_else(|| serde::de::Error::custom("not a text"))
}

/// Reads a JSON string without copying where it holds no escapes; `None` where `raw` is no string.
pub fn as_text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(inner.into());
    }
    serde_json::from_str(raw.get()).ok().map(Cow::Owned)
}

/// The same id in the same bytes: texts without needless escapes, numbers as written.
pub fn id_key(id: &RawValue) -> Box<str> {
    match as_text(id) {
        Some(text @ Cow::Owned(_)) => json_text(&text).into(),
        _ => id.get().into(),
    }
}

/// Text of `value` as JSON, for splicing.
pub fn json_text(value: &str) -> String {
    // A text can always be written.
    serde_json::to_string(value).unwrap_or_default()
}

/// Joins a message from ready parts, with room for the line end.
fn line(parts: &[&str]) -> Vec<u8> {
    let mut line = Vec::with_capacity(parts.iter().map(|part| part.len()).sum::<usize>() + 1);
    for part in parts {
        line.extend_from_slice(part.as_bytes());
    }
    line
}

/// A result of ours; `id` and `result` are JSON.
pub fn result_line(id: &str, result: &str) -> Vec<u8> {
    line(&[r#"{"jsonrpc":"2.0","id":"#, id, r#","result":"#, result, "}"])
}

/// An error answer; `id` and `data` are JSON.
pub fn error_line(id: &str, code: i64, message: &str, data: Option<&str>) -> Vec<u8> {
    let (message, code) = (json_text(message), code.to_string());
    let (label, data) = data.map_or(("", ""), |data| (r#","data":"#, data));
    line(&[
        r#"{"jsonrpc":"2.0","id":"#,
        id,
        r#","error":{"code":"#,
        &code,
        r#","message":"#,
        &message,
        label,
        data,
        "}}",
    ])
}

/// A request of ours; `params` is JSON.
pub fn request_line(id: &str, method: &str, params: &str) -> Vec<u8> {
    line(&[r#"{"jsonrpc":"2.0","id":"#, id, r#","method":"#, &json_text(method), r#","params":"#, params, "}"])
}

/// A notification of ours; `params` is JSON.
pub fn notification_line(method: &str, params: Option<&str>) -> Vec<u8> {
    let (label, params) = params.map_or(("", ""), |params| (r#","params":"#, params));
    line(&[r#"{"jsonrpc":"2.0","method":"#, &json_text(method), label, params, "}"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(line: &str) -> String {
        match Envelope::parse(line.as_bytes()).as_ref().map(Envelope::kind) {
            Ok(Kind::Request { id, method }) => format!("request {} {method}", id.get()),
            Ok(Kind::Notification { method }) => format!("notification {method}"),
            Ok(Kind::Response { id }) => format!("response {}", id.get()),
            Ok(Kind::Noise) => "noise".into(),
            Err(_) => "unreadable".into(),
        }
    }

    #[test]
    fn messages_are_told_apart_by_their_members() {
        for (line, kind) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping"),
            (r#"{"id":"1","method":"p\u0069ng","params":null}"#, r#"request "1" ping"#),
            (r#"{"method":"notifications/initialized"}"#, "notification notifications/initialized"),
            (r#"{"id":null,"method":"x"}"#, "notification x"),
            (r#"{"id":7,"result":null}"#, "response 7"),
            (r#"{"id":7,"error":{}}"#, "response 7"),
            (r#"{"id":7}"#, "noise"),
            (r#"{"not":"rpc"}"#, "noise"),
            ("42", "unreadable"),
            ("[]", "unreadable"),
            (r#" [1,"ping"]"#, "unreadable"),
            (r#"{"id":1,"id":2,"method":"x"}"#, "unreadable"),
            (r#"{"jsonrpc":"2.0","id":1,"resu"#, "unreadable"),
        ] {
            assert_eq!(kind_of(line), kind, "{line}");
        }
    }

    #[test]
    fn bodies_that_a_typed_reader_refuses_pass() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for body in [r#""\ud800""#, "1e400", "18446744073709551616", &deep] {
            let line = format!(r#"{{"id":1,"result":{body}}}"#);
            let envelope = Envelope::parse(line.as_bytes()).unwrap();
            assert_eq!(envelope.result.unwrap().get(), body);
        }
    }

    #[test]
    fn ids_that_mean_the_same_have_one_key() {
        let raw = |text: &str| RawValue::from_string(text.into()).unwrap();
        assert_eq!(id_key(&raw(r#""\u0061""#)), id_key(&raw(r#""a""#)));
        assert_ne!(id_key(&raw("1")), id_key(&raw(r#""1""#)));
    }
}
