//! A tool definition as it came → one that clients and model APIs take. One malformed tool costs itself and no other;
//! everything that is right passes byte by byte.

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

/// Reads one definition; `None` where it cannot be used.
pub fn salvaged(definition: &str) -> Option<Tool> {
    match salvage(definition) {
        Salvaged::Used(tool, _) => Some(tool),
        Salvaged::Dropped(..) => None,
    }
}

/// Reads one entry of `tools/list`.
pub(super) fn salvage(raw: &str) -> Salvaged {
    let text = raw;
    let Some(all) = members(text) else { return Salvaged::Dropped(None, "it is not an object") };
    let Some(name) = member(&all, "name").and_then(|name| as_text(name.value)).filter(|name| !name.is_empty()) else {
        return Salvaged::Dropped(None, "it has no name");
    };
    if all.iter().filter(|member| member.key.eq_ignore_ascii_case("name")).count() > 1 {
        return Salvaged::Dropped(Some(name.into_owned()), "it has two names");
    }
    let mut notes = Vec::new();
    let mended = without_wrong_members(text, &all, &mut notes);
    let mended = match with_input_schema(&mended, &mut notes) {
        Ok(mended) => mended,
        Err(reason) => return Salvaged::Dropped(Some(name.into_owned()), reason),
    };
    let mended = with_output_type(&mended, &mut notes);
    match tool(&name, mended) {
        Some(tool) => Salvaged::Used(tool, (!notes.is_empty()).then(|| notes.join("; "))),
        None => Salvaged::Dropped(Some(name.into_owned()), "it cannot be mended"),
    }
}

/// Each of these steps edits the text that the one before left, so that no two edits meet.
fn without_wrong_members(text: &str, all: &[Member<'_>], notes: &mut Vec<String>) -> String {
    let is_wrong = |key: &str| {
        let wanted = TYPES.iter().find(|(known, _)| *known == key);
        wanted.is_some_and(|(_, first)| member(all, key).is_some_and(|found| !found.value.starts_with(*first)))
            || (key == "outputSchema" && has_other_root(all))
    };
    let wrong: Vec<&str> = all.iter().map(|found| &*found.key).filter(|key| is_wrong(key)).collect();
    if wrong.is_empty() {
        return text.to_owned();
    }
    notes.push(format!("{} left out", wrong.join(", ")));
    without(text, is_wrong)
}

fn without(object: &str, is_out: impl Fn(&str) -> bool) -> String {
    let all = members(object).unwrap_or_default();
    let mut edits = Edits::new(object);
    edits.remove(&all, is_out);
    edits.apply()
}

/// Whether the output schema is no schema of an object.
fn has_other_root(all: &[Member<'_>]) -> bool {
    let Some(output) = member(all, "outputSchema") else { return false };
    let Some(fields) = members(output.value) else { return true };
    member(&fields, "type").is_some_and(|kind| as_text(kind.value).as_deref() != Some("object"))
}

fn with_input_schema(text: &str, notes: &mut Vec<String>) -> Result<String, &'static str> {
    let all = members(text).unwrap_or_default();
    let mut edits = Edits::new(text);
    let Some(schema) = member(&all, "inputSchema") else {
        notes.push("inputSchema was missing".into());
        edits.insert(text, "inputSchema", r#"{"type":"object"}"#);
        return Ok(edits.apply());
    };
    let mended = mended_schema(schema.value, notes)?;
    if mended == schema.value {
        return Ok(text.to_owned());
    }
    edits.replace(schema.value, mended);
    Ok(edits.apply())
}

fn mended_schema(schema: &str, notes: &mut Vec<String>) -> Result<String, &'static str> {
    let Some(fields) = members(schema) else { return Err("its inputSchema is not an object") };
    let is_other = |key: &str, first: char| member(&fields, key).is_some_and(|found| !found.value.starts_with(first));
    // PHP writes an empty map as `[]`, Go an empty list as `null`.
    let is_wrong = |key: &str| (key == "properties" && is_other(key, '{')) || (key == "required" && is_other(key, '['));
    if let Some(wrong) = fields.iter().find(|found| is_wrong(&found.key)) {
        notes.push(format!("{} of inputSchema left out", wrong.key));
        return mended_schema(&without(schema, is_wrong), notes);
    }
    let mut edits = Edits::new(schema);
    match member(&fields, "type") {
        None => edits.insert(schema, "type", r#""object""#),
        Some(kind) if as_text(kind.value).as_deref() == Some("object") => return Ok(schema.to_owned()),
        Some(kind) if kind.value.starts_with('[') && kind.value.contains(r#""object""#) => {
            edits.replace(kind.value, r#""object""#);
        }
        Some(_) => return Err("its inputSchema describes no object"),
    }
    notes.push("inputSchema got the type object".into());
    Ok(edits.apply())
}

fn with_output_type(text: &str, notes: &mut Vec<String>) -> String {
    let all = members(text).unwrap_or_default();
    let output = member(&all, "outputSchema").map(|output| output.value);
    let lacks_type = |schema: &&str| members(schema).is_some_and(|fields| member(&fields, "type").is_none());
    let Some(output) = output.filter(lacks_type) else { return text.to_owned() };
    notes.push("outputSchema got the type object".into());
    let mut edits = Edits::new(text);
    edits.insert(output, "type", r#""object""#);
    edits.apply()
}

fn tool(name: &str, definition: String) -> Option<Tool> {
    let all = members(&definition)?;
    let input_schema = member(&all, "inputSchema")?.value.into();
    let description =
        member(&all, "description").and_then(|found| as_text(found.value)).unwrap_or_default().into_owned();
    let annotations = member(&all, "annotations").and_then(|found| members(found.value)).unwrap_or_default();
    let hint = |key: &str| member(&annotations, key).is_some_and(|found| found.value == "true");
    let effect = if hint("readOnlyHint") { Effect::Read } else { Effect::Write };
    let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(&definition));
    let repeatable = effect == Effect::Read || hint("idempotentHint");
    Some(Tool {
        name: ToolName::new(name),
        input_schema,
        description,
        effect,
        repeatable,
        digest,
        definition: definition.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(text: &str) -> String {
        match salvage(text) {
            Salvaged::Used(tool, note) => format!("{} | {}", tool.definition, note.unwrap_or_default()),
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
            (
                r#"{"description":null,"name":"a"}"#,
                r#"{"inputSchema":{"type":"object"},"name":"a"} | description left out; inputSchema was missing"#,
            ),
            (
                r#"{"name":"a","inputSchema":{"properties":[],"required":null}}"#,
                r#"{"name":"a","inputSchema":{"type":"object"}} | properties of inputSchema left out; inputSchema got the type object"#,
            ),
            (r#"{"name":"a","Name":"skill_load","inputSchema":{"type":"object"}}"#, "a dropped: it has two names"),
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
            let Salvaged::Used(tool, None) = salvage(&text) else { panic!("used") };
            assert_eq!((tool.effect, tool.repeatable), (effect, repeatable), "{annotations}");
        }
    }
}
