//! The outside of a JSON-RPC message: id, method, and where its bodies lie. Bodies are never decoded here.

use std::borrow::Cow;

pub use super::json::as_text;
use super::{
    era::{INVALID_REQUEST, PARSE_ERROR},
    json::each_member,
};

/// One message, borrowed from its line. All members are JSON as written.
#[derive(Debug)]
pub struct Envelope<'a> {
    /// `null` counts as absent.
    pub id: Option<&'a str>,
    /// Of requests and notifications, unescaped.
    pub method: Option<Cow<'a, str>>,
    /// Of requests and notifications; `null` counts as absent.
    pub params: Option<&'a str>,
    /// Of answers; may be `null`.
    pub result: Option<&'a str>,
    /// Of answers.
    pub error: Option<&'a str>,
}

/// Why a line is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is no JSON, or not in UTF-8; with the reason.
    #[error("the message cannot be read: {0}")]
    NoJson(String),
    /// It is JSON of another shape.
    #[error("the message cannot be read: {0}")]
    OtherShape(&'static str),
}

/// What a message is, by the members it has.
#[derive(Debug)]
pub enum Kind<'a> {
    /// Wants an answer under this id.
    Request {
        /// As written.
        id: &'a str,
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
        id: &'a str,
    },
    /// JSON, but no message.
    Noise,
}

impl<'a> Envelope<'a> {
    /// Parses one line.
    ///
    /// # Errors
    /// The line is not one JSON object in UTF-8, or a member of the envelope stands twice, is spelled otherwise
    /// than it should be, or has the wrong type.
    pub fn parse(line: &'a [u8]) -> Result<Self, Unreadable> {
        let text = std::str::from_utf8(line).map_err(|error| Unreadable::NoJson(error.to_string()))?;
        const NAMES: [&str; 5] = ["id", "method", "params", "result", "error"];
        let mut found = [None; 5];
        let (mut is_repeated, mut is_odd) = (false, false);
        let read = each_member(text, |key, _, value| match NAMES.iter().position(|name| *name == key) {
            Some(position) => is_repeated |= found[position].replace(value).is_some(),
            None => is_odd |= key != "jsonrpc" && is_spelled_like(&key, &NAMES),
        });
        if read.is_none() {
            return Err(Unreadable::of(text));
        }
        if is_odd {
            return Err(Unreadable::OtherShape("a member is spelled nearly as one of the message"));
        }
        if is_repeated {
            return Err(Unreadable::OtherShape("a member of the message stands twice"));
        }
        let [id, method, params, result, error] = found;
        let is_present = |value: &&str| *value != "null";
        let method = match method.map(as_text) {
            Some(None) => return Err(Unreadable::OtherShape("the method is no text")),
            method => method.flatten(),
        };
        Ok(Self { id: id.filter(is_present), method, params: params.filter(is_present), result, error })
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

impl Unreadable {
    /// The JSON-RPC code that says so.
    pub fn code(&self) -> i64 {
        match self {
            Self::NoJson(_) => PARSE_ERROR,
            Self::OtherShape(_) => INVALID_REQUEST,
        }
    }

    /// Why `text` is no object.
    fn of(text: &str) -> Self {
        match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Err(error) => Self::NoJson(error.to_string()),
            Ok(_) if text.trim_start().starts_with('[') => Self::OtherShape("batches are not served"),
            Ok(_) => Self::OtherShape("it is no object whose members all have names"),
        }
    }
}

/// Whether readers who fold case, or end texts at NUL, take `key` for one of `names`: what we decide on must be what they
/// act on.
pub fn is_spelled_like(key: &str, names: &[&str]) -> bool {
    // Upper, then lower, also folds the few letters beyond ASCII that are the same as ASCII ones but for case.
    let folded = |text: &str| text.to_uppercase().to_lowercase();
    key.chars().any(char::is_control) || names.iter().any(|name| folded(name) == folded(key))
}

/// The same id in the same bytes: texts without needless escapes, numbers as written.
pub fn id_key(id: &str) -> Box<str> {
    match as_text(id) {
        Some(text @ Cow::Owned(_)) => json_text(&text).into(),
        _ => id.into(),
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
            Ok(Kind::Request { id, method }) => format!("request {id} {method}"),
            Ok(Kind::Notification { method }) => format!("notification {method}"),
            Ok(Kind::Response { id }) => format!("response {id}"),
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
            (r#"{"id":1,"ID":2,"method":"x"}"#, "unreadable"),
            (r#"{"method":"x","Method":"y"}"#, "unreadable"),
            (r#"{"method":"x","param\u017f":{}}"#, "unreadable"),
            (r#"{"method":"x","id\u0000":1}"#, "unreadable"),
            (r#"{"method":"x","own":1}"#, "notification x"),
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
            assert_eq!(envelope.result.unwrap(), body);
        }
    }

    #[test]
    fn ids_that_mean_the_same_have_one_key() {
        assert_eq!(id_key(r#""\u0061""#), id_key(r#""a""#));
        assert_ne!(id_key("1"), id_key(r#""1""#));
    }
}
