//! A tool definition as it came → one that clients and model APIs take. One malformed tool costs itself and no other;
//! everything that is right passes byte by byte.

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::{
    model::{
        name::ToolName,
        tool::{Effect, Tool},
    },
    wire::{
        envelope::as_text,
        splice::{Edits, Member, member, members},
    },
};

/// What became of one definition.
#[derive(Debug)]
pub(super) enum Salvaged {
    /// Used; the text says what was mended, if anything was.
    Used(Tool, Option<String>),
    /// Left out; its name, if it has one, and why.
    Dropped(Option<String>, &'static str),
}

/// What members must be for typed readers to take the list that they stand in.
const TYPES: &[(&str, char)] =
    &[("title", '"'), ("description", '"'), ("annotations", '{'), ("_meta", '{'), ("execution", '{'), ("icons", '[')];

/// Reads one entry of `tools/list`.
pub(super) fn salvage(raw: &RawValue) -> Salvaged {
    let text = raw.get();
    let Some(all) = members(text) else { return Salvaged::Dropped(None, "it is not an object") };
    let Some(name) = member(&all, "name").and_then(|name| as_text(name.value)).filter(|name| !name.is_empty()) else {
        return Salvaged::Dropped(None, "it has no name");
    };
    let mut mended = Vec::new();
    let mut edits = Edits::new(text);
    let is_wrong = |key: &str| {
        let wanted = TYPES.iter().find(|(known, _)| *known == key);
        wanted.is_some_and(|(_, first)| member(&all, key).is_some_and(|found| !found.value.get().starts_with(*first)))
            || (key == "outputSchema" && has_other_root(&all))
    };
    let wrong: Vec<&str> = all.iter().map(|found| &*found.key).filter(|key| is_wrong(key)).collect();
    if !wrong.is_empty() {
        mended.push(format!("{} left out", wrong.join(", ")));
        edits.remove(&all, is_wrong);
    }
    match mend_schema(member(&all, "inputSchema"), &mut edits, text) {
        Ok(note) => mended.extend(note),
        Err(reason) => return Salvaged::Dropped(Some(name.into_owned()), reason),
    }
    if let Some(output) = member(&all, "outputSchema").filter(|_| !wrong.contains(&"outputSchema"))
        && let Some(fields) = members(output.value.get())
        && member(&fields, "type").is_none()
    {
        edits.insert(output.value.get(), "type", r#""object""#);
        mended.push("outputSchema got the type object".into());
    }
    let definition = if edits.is_empty() { text.to_owned() } else { edits.apply() };
    match tool(&name, definition) {
        Some(tool) => Salvaged::Used(tool, (!mended.is_empty()).then(|| mended.join("; "))),
        None => Salvaged::Dropped(Some(name.into_owned()), "it cannot be mended"),
    }
}

/// Whether the output schema is no schema of an object.
fn has_other_root(all: &[Member<'_>]) -> bool {
    let Some(output) = member(all, "outputSchema") else { return false };
    let Some(fields) = members(output.value.get()) else { return true };
    member(&fields, "type").is_some_and(|kind| as_text(kind.value).as_deref() != Some("object"))
}

fn mend_schema<'a>(
    schema: Option<&Member<'a>>,
    edits: &mut Edits<'a>,
    text: &'a str,
) -> Result<Option<String>, &'static str> {
    let Some(schema) = schema else {
        edits.insert(text, "inputSchema", r#"{"type":"object"}"#);
        return Ok(Some("inputSchema was missing".into()));
    };
    let Some(fields) = members(schema.value.get()) else { return Err("its inputSchema is not an object") };
    match member(&fields, "type") {
        None => {
            edits.insert(schema.value.get(), "type", r#""object""#);
            Ok(Some("inputSchema got the type object".into()))
        }
        Some(kind) if as_text(kind.value).as_deref() == Some("object") => Ok(None),
        Some(kind) if kind.value.get().starts_with('[') && kind.value.get().contains(r#""object""#) => {
            edits.replace(kind.value.get(), r#""object""#);
            Ok(Some("inputSchema got the type object".into()))
        }
        Some(_) => Err("its inputSchema describes no object"),
    }
}

fn tool(name: &str, definition: String) -> Option<Tool> {
    let definition = RawValue::from_string(definition).ok()?;
    let all = members(definition.get())?;
    let input_schema = member(&all, "inputSchema")?.value.to_owned();
    let description =
        member(&all, "description").and_then(|found| as_text(found.value)).unwrap_or_default().into_owned();
    let annotations = member(&all, "annotations").and_then(|found| members(found.value.get())).unwrap_or_default();
    let hint = |key: &str| member(&annotations, key).is_some_and(|found| found.value.get() == "true");
    let effect = if hint("readOnlyHint") { Effect::Read } else { Effect::Write };
    let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(definition.get()));
    let repeatable = effect == Effect::Read || hint("idempotentHint");
    Some(Tool { name: ToolName::new(name), input_schema, description, effect, repeatable, digest, definition })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(text: &str) -> String {
        match salvage(&RawValue::from_string(text.into()).unwrap()) {
            Salvaged::Used(tool, note) => format!("{} | {}", tool.definition.get(), note.unwrap_or_default()),
            Salvaged::Dropped(name, reason) => format!("{} dropped: {reason}", name.unwrap_or_default()),
        }
    }

    #[test]
    fn a_right_definition_passes_byte_by_byte() {
        let text = r#"{ "name":"a", "x-own": 1e400, "inputSchema": {"type":"object","$defs":{"x":{"type":"list"}}} }"#;
        assert_eq!(outcome(text), format!("{text} | "));
    }

    #[test]
    fn what_can_be_mended_is_and_the_rest_is_dropped_with_a_reason() {
        for (text, expected) in [
            (r#"{"name":"a"}"#, r#"{"inputSchema":{"type":"object"},"name":"a"} | inputSchema was missing"#),
            (
                r#"{"name":"a","inputSchema":{"anyOf":[{},{}]}}"#,
                r#"{"name":"a","inputSchema":{"type":"object","anyOf":[{},{}]}} | inputSchema got the type object"#,
            ),
            (
                r#"{"name":"a","inputSchema":{"type":["object","null"]}}"#,
                r#"{"name":"a","inputSchema":{"type":"object"}} | inputSchema got the type object"#,
            ),
            (
                r#"{"name":"a","inputSchema":{"type":"object"},"outputSchema":{}}"#,
                r#"{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}} | outputSchema got the type object"#,
            ),
            (
                r#"{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"type":"array"},"description":null}"#,
                r#"{"name":"a","inputSchema":{"type":"object"}} | outputSchema, description left out"#,
            ),
            (r#"{"name":"a","inputSchema":{"type":"string"}}"#, "a dropped: its inputSchema describes no object"),
            (r#"{"name":"a","inputSchema":null}"#, "a dropped: its inputSchema is not an object"),
            (r#"{"inputSchema":{"type":"object"}}"#, " dropped: it has no name"),
            (r#"{"name":7}"#, " dropped: it has no name"),
            ("[]", " dropped: it is not an object"),
        ] {
            assert_eq!(outcome(text), expected, "{text}");
        }
    }

    #[test]
    fn only_an_explicit_hint_makes_a_tool_read_only() {
        for (annotations, effect, repeatable) in [
            (r#"{"readOnlyHint":true}"#, Effect::Read, true),
            (r#"{"readOnlyHint":"true"}"#, Effect::Write, false),
            (r#"{"idempotentHint":true}"#, Effect::Write, true),
            ("{}", Effect::Write, false),
        ] {
            let text = format!(r#"{{"name":"a","inputSchema":{{"type":"object"}},"annotations":{annotations}}}"#);
            let Salvaged::Used(tool, None) = salvage(&RawValue::from_string(text).unwrap()) else { panic!("used") };
            assert_eq!((tool.effect, tool.repeatable), (effect, repeatable), "{annotations}");
        }
    }
}
