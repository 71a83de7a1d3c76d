//! The params of a request: their members, and the few members of `_meta` that we read.

use std::borrow::Cow;

use crate::wire::{
    envelope::{as_text, is_spelled_like, json_text},
    era::{META_CAPABILITIES, META_CLIENT, META_LOG_LEVEL, META_VERSION, MODERN},
    splice::{Edits, Member, member, members},
};

/// Params, borrowed from their line.
#[derive(Debug)]
pub(super) struct Params<'a> {
    /// As written; `{}` where there are none.
    pub(super) text: &'a str,
    members: Vec<Member<'a>>,
    meta: Vec<Member<'a>>,
}

/// How a request's params change on their way to an upstream.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rewrite<'a> {
    /// The member that names what is meant, and what the upstream calls it, as JSON.
    pub(super) names: Option<(&'a str, &'a str)>,
    /// Other arguments than those that stand there, as JSON.
    pub(super) arguments: Option<&'a str>,
    /// Whether `intent` is taken off the arguments.
    pub(super) strips_intent: bool,
    /// Whether the request is modern.
    pub(super) from_modern: bool,
    /// Whether the upstream is.
    pub(super) to_modern: bool,
    /// What a legacy client said that it can do, for a modern upstream, as JSON.
    pub(super) capabilities: Option<&'a str>,
    /// The log messages that a legacy client wants, for a modern upstream.
    pub(super) log_level: Option<&'a str>,
    /// The state of an unfinished request as its upstream wrote it, as JSON, where the client has it in another form.
    pub(super) state: Option<&'a str>,
}

impl<'a> Params<'a> {
    /// Reads params, or any object; `None` where they are none.
    pub(super) fn read(raw: Option<&'a str>) -> Option<Self> {
        let text = raw.unwrap_or("{}");
        let members = members(text)?;
        let meta = member(&members, "_meta").and_then(|meta| self::members(meta.value)).unwrap_or_default();
        Some(Self { text, members, meta })
    }

    /// Whether two readers could understand these params differently: the gate must not decide on one name while the
    /// upstream calls another, nor map one token while the upstream uses another.
    pub(super) fn is_ambiguous(&self) -> bool {
        is_ambiguous(&self.members, &["name", "arguments", "_meta", "uri", "ref", "taskId", "requestState"])
            || is_ambiguous(&self.meta, &["progressToken"])
    }

    /// A member as written.
    pub(super) fn raw(&self, key: &str) -> Option<&'a str> {
        member(&self.members, key).map(|found| found.value)
    }

    /// A member that is a text.
    pub(super) fn text_of(&self, key: &str) -> Option<Cow<'a, str>> {
        self.raw(key).and_then(as_text)
    }

    /// The revision that a modern request names.
    pub(super) fn version(&self) -> Option<Cow<'a, str>> {
        member(&self.meta, META_VERSION).and_then(|found| as_text(found.value))
    }

    /// A member of `_meta` that is a text.
    pub(super) fn meta_text(&self, key: &str) -> Option<Cow<'a, str>> {
        member(&self.meta, key).and_then(|found| as_text(found.value))
    }

    /// A member of `_meta` as written.
    pub(super) fn meta_raw(&self, key: &str) -> Option<&'a str> {
        member(&self.meta, key).map(|found| found.value)
    }

    /// The caller's progress token.
    pub(super) fn token(&self) -> Option<&'a str> {
        member(&self.meta, "progressToken").map(|found| found.value)
    }

    /// The params for the upstream; `id` is the token under which its progress comes back. All bytes that need no change
    /// stay.
    pub(super) fn rewritten(&self, rewrite: Rewrite<'_>, id: &str) -> String {
        let mut edits = Edits::new(self.text);
        if let Some((member, name)) = rewrite.names
            && let Some(given) = self.raw(member).filter(|given| *given != name)
        {
            edits.replace(given, name.to_owned());
        }
        match (self.raw("arguments"), rewrite.arguments) {
            (Some(old), Some(new)) => edits.replace(old, new.to_owned()),
            (None, Some(new)) => edits.insert(self.text, "arguments", new),
            (Some(old), None) if rewrite.strips_intent => {
                if let Cow::Owned(new) = without_intent(old) {
                    edits.replace(old, new);
                }
            }
            _ => {}
        }
        if let Some(token) = self.token() {
            edits.replace(token, id.to_owned());
        }
        if let Some((given, own)) = self.raw("requestState").zip(rewrite.state) {
            edits.replace(given, own.to_owned());
        }
        match (rewrite.from_modern, rewrite.to_modern) {
            (true, false) => {
                edits.remove(&self.meta, |key| [META_VERSION, META_CLIENT, META_CAPABILITIES].contains(&key));
            }
            (false, true) => self.add_meta(&mut edits, rewrite),
            _ => {}
        }
        edits.apply()
    }

    fn add_meta(&self, edits: &mut Edits<'_>, rewrite: Rewrite<'_>) {
        let client = format!(r#"{{"name":"gatekey","version":"{}"}}"#, env!("CARGO_PKG_VERSION"));
        let capabilities = rewrite.capabilities.unwrap_or("{}").to_owned();
        let mut own =
            vec![(META_VERSION, format!("\"{MODERN}\"")), (META_CLIENT, client), (META_CAPABILITIES, capabilities)];
        own.extend(rewrite.log_level.map(|level| (META_LOG_LEVEL, json_text(level))));
        match self.raw("_meta").filter(|meta| meta.starts_with('{')) {
            Some(meta) => {
                for (key, value) in own {
                    edits.insert(meta, key, &value);
                }
            }
            None => {
                let members: Vec<String> = own.iter().map(|(key, value)| format!(r#""{key}":{value}"#)).collect();
                edits.insert(self.text, "_meta", &format!("{{{}}}", members.join(",")));
            }
        }
    }
}

/// Whether a member stands twice, or in a spelling that readers who fold case or end texts at NUL take for one of
/// `ours`.
pub(super) fn is_ambiguous(members: &[Member<'_>], ours: &[&str]) -> bool {
    members.iter().enumerate().any(|(index, member)| {
        let is_repeated = members.iter().take(index).any(|before| before.key == member.key);
        is_repeated || (!ours.contains(&&*member.key) && is_spelled_like(&member.key, ours))
    })
}

/// An object without its `intent`.
pub(super) fn without_intent(object: &str) -> Cow<'_, str> {
    let own = members(object).unwrap_or_default();
    let mut edits = Edits::new(object);
    edits.remove(&own, |key| key == "intent");
    if edits.is_empty() { object.into() } else { edits.apply().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str, rewrite: Rewrite<'_>) -> String {
        Params::read(Some(text)).unwrap().rewritten(rewrite, "7")
    }

    const PLAIN: Rewrite<'_> = Rewrite {
        names: Some(("name", "\"t\"")),
        arguments: None,
        strips_intent: false,
        from_modern: false,
        to_modern: false,
        capabilities: None,
        log_level: None,
        state: None,
    };

    #[test]
    fn what_needs_no_change_stays_byte_by_byte() {
        let text = r#"{ "name":"t", "x-own": 1e400, "arguments":{"intent":"i"} }"#;
        assert_eq!(rewritten(text, PLAIN), text);
    }

    #[test]
    fn params_that_two_readers_could_understand_differently_are_refused() {
        for text in [
            r#"{"name":"a","name":"b"}"#,
            r#"{"name":"a","n\u0061me":"b"}"#,
            r#"{"name":"a","Name":"b"}"#,
            r#"{"name":"a","argumentS":{}}"#,
            r#"{"name":"a","argument\u017f":{}}"#,
            r#"{"name":"a","_meta":{},"_meta":{}}"#,
            r#"{"name":"a","name\u0000":"b"}"#,
            r#"{"name":"a","_meta":{"progressToken":1,"progressToken":2}}"#,
            r#"{"name":"a","_meta":{"progressToken":1,"ProgressToken":2}}"#,
        ] {
            assert!(Params::read(Some(text)).unwrap().is_ambiguous(), "{text}");
        }
        for text in [r#"{"name":"a","arguments":{"Name":1,"name":2},"_meta":{"k":1}}"#, "{}"] {
            assert!(!Params::read(Some(text)).unwrap().is_ambiguous(), "{text}");
        }
    }

    #[test]
    fn name_token_and_intent_change_and_nothing_else() {
        let text = r#"{"name":"u_t","arguments":{"a":1.0,"intent":"i"},"_meta":{"progressToken":"p","k":1}}"#;
        let expected = r#"{"name":"t","arguments":{"a":1.0},"_meta":{"progressToken":7,"k":1}}"#;
        assert_eq!(rewritten(text, Rewrite { strips_intent: true, ..PLAIN }), expected);
    }

    #[test]
    fn a_dispatched_call_has_the_inner_name_and_arguments() {
        let text = r#"{"name":"tool_call_read","arguments":{"key":"k","name":"t"}}"#;
        let rewrite = Rewrite { arguments: Some(r#"{"a":1}"#), ..PLAIN };
        assert_eq!(rewritten(text, rewrite), r#"{"name":"t","arguments":{"a":1}}"#);
    }

    #[test]
    fn meta_is_added_and_taken_off_between_the_eras() {
        let modern = r#"{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"k":1}}"#;
        assert_eq!(rewritten(modern, Rewrite { from_modern: true, ..PLAIN }), r#"{"name":"t","_meta":{"k":1}}"#);
        assert_eq!(rewritten(modern, Rewrite { from_modern: true, to_modern: true, ..PLAIN }), modern);
        for legacy in [r#"{"name":"t"}"#, r#"{"name":"t","_meta":{}}"#, r#"{"name":"t","_meta":{"progressToken":3}}"#] {
            let text = rewritten(legacy, Rewrite { to_modern: true, ..PLAIN });
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value["_meta"][META_VERSION], MODERN);
            assert_eq!(value["_meta"]["progressToken"].is_null(), !legacy.contains("progressToken"));
        }
    }
}
