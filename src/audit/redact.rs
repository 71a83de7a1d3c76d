//! Arguments as they are written down: without secrets.

use serde_json::Value;

/// What stands in the place of a secret.
const INSTEAD: &str = "[redacted]";
/// Parts of names of members that hold secrets.
const TELLING: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "token",
    "authorization",
    "apikey",
    "api_key",
    "api-key",
    "credential",
    "cookie",
    "private_key",
];

/// Which members are secrets.
#[derive(Debug, Clone)]
pub struct Redaction {
    /// In lower case.
    names: Vec<String>,
}

impl Redaction {
    /// With these names besides those that tell by themselves.
    pub fn new(names: &[String]) -> Self {
        Self { names: names.iter().map(|name| name.to_lowercase()).collect() }
    }

    /// The arguments, with the values of secret members replaced at any depth, and whether there were any. What is no JSON
    /// is not written at all.
    pub fn apply(&self, arguments: &str) -> (Value, bool) {
        let mut value = serde_json::from_str(arguments).unwrap_or(Value::Null);
        let has_secrets = self.redact(&mut value);
        (value, has_secrets)
    }

    fn redact(&self, value: &mut Value) -> bool {
        let mut has_secrets = false;
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    if self.is_secret(name) {
                        (*value, has_secrets) = (INSTEAD.into(), true);
                    } else {
                        has_secrets |= self.redact(value);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| has_secrets |= self.redact(item)),
            _ => {}
        }
        has_secrets
    }

    fn is_secret(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.names.contains(&name) || TELLING.iter().any(|part| name.contains(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_written_at_any_depth() {
        let redaction = Redaction::new(&["PIN".to_owned()]);
        let (written, has_secrets) =
            redaction.apply(r#"{"a":1,"pin":2,"b":[{"apiKey":"x","c":{"Password":["y"]}}],"user_token":{"z":1}}"#);
        assert_eq!(
            written.to_string(),
            r#"{"a":1,"pin":"[redacted]","b":[{"apiKey":"[redacted]","c":{"Password":"[redacted]"}}],"user_token":"[redacted]"}"#
        );
        assert!(has_secrets);
        assert_eq!(redaction.apply("{"), (Value::Null, false));
        assert!(!redaction.apply(r#"{"a":[{"b":1}]}"#).1);
    }
}
