//! The headers of Streamable HTTP that repeat parts of a request's body, so that what stands between can route by them.
//! Written towards servers, checked from clients. **Source:** the specification's transport page, 2026-07-28 (SEP-2243).

use std::borrow::Cow;

use data_encoding::BASE64;
use serde_json::Value;

/// Of a request: its method.
pub const METHOD: &str = "mcp-method";
/// Of a request: what it is about, see [`name_member`].
pub const NAME: &str = "mcp-name";
/// Before the name that a tool gives to a header of one of its arguments.
pub const PARAM_PREFIX: &str = "mcp-param-";
/// The revision that the request is in.
pub const VERSION: &str = "mcp-protocol-version";
/// The session, up to 2025-11-25.
pub const SESSION: &str = "mcp-session-id";
/// The last event that a client saw of a stream.
pub const LAST_EVENT: &str = "last-event-id";

const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// The member of the params whose value `Mcp-Name` repeats.
pub fn name_member(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// An argument of a tool that a header repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamHeader {
    /// The header's whole name, in lower case.
    pub name: String,
    /// Where the argument stands.
    path: Vec<String>,
}

impl ParamHeader {
    /// The argument's value as a header has it; `None` where it is absent, `null` or no plain value.
    pub fn value(&self, arguments: &Value) -> Option<String> {
        match self.path.iter().try_fold(arguments, |value, key| value.get(key))? {
            Value::String(text) => Some(text.clone()),
            Value::Bool(is_true) => Some(is_true.to_string()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }
}

/// The `x-mcp-header` annotations of an input schema. Those that break the rules are not among them.
pub fn param_headers(schema: &Value) -> Vec<ParamHeader> {
    fn walk(schema: &Value, path: &mut Vec<String>, found: &mut Vec<ParamHeader>) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        for (key, property) in properties {
            path.push(key.clone());
            let is_plain = matches!(property["type"].as_str(), Some("string" | "integer" | "boolean"));
            let header = property.get("x-mcp-header").and_then(Value::as_str);
            if let Some(header) = header.filter(|header| is_plain && is_token(header)) {
                let name = format!("{PARAM_PREFIX}{}", header.to_ascii_lowercase());
                if found.iter().all(|known| known.name != name) {
                    found.push(ParamHeader { name, path: path.clone() });
                }
            }
            walk(property, path, found);
            path.pop();
        }
    }
    let mut found = Vec::new();
    walk(schema, &mut Vec::new(), &mut found);
    found
}

fn is_token(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !text.is_empty() && text.chars().all(is_allowed)
}

/// A value as a header can carry it.
pub fn encode(value: &str) -> Cow<'_, str> {
    let is_edged = value.starts_with([' ', '\t']) || value.ends_with([' ', '\t']);
    let is_plain = value.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    if is_plain && !is_edged && inside(value).is_none() {
        return value.into();
    }
    [ENCODED.0, &BASE64.encode(value.as_bytes()), ENCODED.1].concat().into()
}

/// The value that a header carries; `None` where it says that it is encoded and is not.
pub fn decode(header: &str) -> Option<Cow<'_, str>> {
    let header = header.trim_matches([' ', '\t']);
    match inside(header) {
        None => Some(header.into()),
        Some(encoded) => String::from_utf8(BASE64.decode(encoded.as_bytes()).ok()?).ok().map(Cow::Owned),
    }
}

fn inside(header: &str) -> Option<&str> {
    header.strip_prefix(ENCODED.0)?.strip_suffix(ENCODED.1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_come_back_as_they_went() {
        for (value, header) in [
            ("plain text", "plain text"),
            ("", ""),
            (" edged", "=?base64?IGVkZ2Vk?="),
            ("žluť", "=?base64?xb5sdcWl?="),
            ("a\r\nX: b", "=?base64?YQ0KWDogYg==?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ] {
            assert_eq!(encode(value), header);
            assert_eq!(decode(header).as_deref(), Some(value));
        }
        assert_eq!(decode(" a ").as_deref(), Some("a"));
        for broken in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?/w==?="] {
            assert_eq!(decode(broken), None, "{broken}");
        }
        assert_eq!(decode("=?base64?SGVsbG8=").as_deref(), Some("=?base64?SGVsbG8="));
    }

    #[test]
    fn annotations_count_where_the_rules_allow_them() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "again": {"type": "string", "x-mcp-header": "region"},
            "odd": {"type": "string", "x-mcp-header": "not a token"},
            "list": {"type": "array", "x-mcp-header": "List"}}});
        let found = param_headers(&schema);
        let names: Vec<&str> = found.iter().map(|header| header.name.as_str()).collect();
        assert_eq!(names, ["mcp-param-region", "mcp-param-n"]);
        let arguments = json!({"region": "eu", "deep": {"n": 7}});
        assert_eq!(found[0].value(&arguments).as_deref(), Some("eu"));
        assert_eq!(found[1].value(&arguments).as_deref(), Some("7"));
        assert_eq!(found[1].value(&json!({"deep": {"n": null}})), None);
    }
}
