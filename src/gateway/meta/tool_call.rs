//! `tool_call_read` and `tool_call_write`: calling an opened tool by key, on clients that never list again and in the
//! modern era, where lists do not grow.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Value, json};

use super::serve::{KeyWorth, define, object_of, text, worth};
use crate::{
    config::Intent,
    gateway::{
        call::{Call, open_to},
        dispatch::{Gateway, Request},
        error::ToolError,
        params::{Params, without_intent},
    },
    model::tool::Effect,
    wire::{
        envelope::as_text,
        splice::{Edits, member, members},
    },
};

pub(super) fn definition(name: &str, intent: Intent) -> Value {
    let is_read = name == "tool_call_read";
    let mut properties = json!({
        "key": {"type": "string", "description": "From skill_load."},
        "name": {"type": "string"},
        "arguments": {"type": "object", "description": "The tool's own arguments."},
    });
    let mut required = vec!["name"];
    if intent != Intent::Off {
        let description = "One sentence for the user: what this call is for.";
        properties["intent"] = json!({"type": "string", "description": description});
    }
    if intent == Intent::Required {
        required.push("intent");
    }
    let schema = json!({"type": "object", "properties": properties, "required": required});
    if is_read {
        let text = "Calls an opened tool that only reads (marked r by skill_load).";
        define(name, text, schema, json!({"readOnlyHint": true}))
    } else {
        let text = "Calls an opened tool that may change something (marked w by skill_load).";
        define(name, text, schema, json!({"readOnlyHint": false, "destructiveHint": true}))
    }
}

pub(super) fn call(gateway: &Arc<Gateway>, request: &Request<'_>, arguments: &Params<'_>, effect: Option<Effect>) {
    if let Err(error) = try_call(gateway, request, arguments, effect) {
        gateway.record_refusal(request, &error);
        request.answer(error.to_result());
    }
}

fn try_call(
    gateway: &Arc<Gateway>,
    request: &Request<'_>,
    arguments: &Params<'_>,
    effect: Option<Effect>,
) -> Result<(), ToolError> {
    let own_name = if effect.is_some() { "tool_call_read" } else { "tool_call_write" };
    let tool = text(arguments, own_name, &["name", "tool"])?;
    // Whether the tool has an `intent` of its own says nothing about whether it may be called.
    let snapshot = &request.snapshot;
    let position = snapshot.registry.position(&tool);
    let is_own = position.is_some_and(|position| snapshot.registry.tools()[position].has_own_intent());
    let is_ours = snapshot.config.intent != Intent::Off && !is_own;
    let inner = inner_arguments(arguments, is_ours).ok_or_else(|| {
        let hint = "Call it again with `arguments`: an object.";
        ToolError::new("invalid_arguments", &tool, format!("The arguments of `{tool}` are not an object."), hint)
    })?;
    // Models put it beside the tool's arguments or among them.
    let intent = said(arguments.text_of("intent")).or_else(|| intent_of(&inner));
    let inner = if is_ours { without_intent(&inner) } else { inner.as_ref().into() };
    let key = arguments.text_of("key");
    let worth = worth(gateway, request, key.as_deref());
    let open = match &worth {
        // An invented key opens nothing, not even what was loaded: the model is to use what it was given.
        KeyWorth::Stale => Arc::default(),
        KeyWorth::Opens(skill) => open_to(request, Some(skill)),
        KeyWorth::Absent => open_to(request, None),
    };
    // A key that is good for another skill does not help either.
    let has_stale_key = worth != KeyWorth::Absent;
    let call =
        Call { tool: &tool, open: &open, arguments: Some(&inner), has_stale_key, effect, intent: intent.as_deref() };
    gateway.try_call(request, call)
}

fn intent_of(object: &str) -> Option<String> {
    let own = members(object)?;
    said(member(&own, "intent").and_then(|found| as_text(found.value)))
}

/// A text that says something.
fn said(text: Option<Cow<'_, str>>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty()).map(Cow::into_owned)
}

/// The tool's arguments, as JSON: an object, a text that holds one, or, where there is no `arguments`, what stands beside.
fn inner_arguments<'a>(arguments: &Params<'a>, has_intent: bool) -> Option<Cow<'a, str>> {
    if let Some(raw) = arguments.raw("arguments").filter(|raw| *raw != "null") {
        return object_of(Some(raw));
    }
    let beside = members(arguments.text)?;
    let mut edits = Edits::new(arguments.text);
    let has_alias = member(&beside, "name").is_none();
    edits.remove(&beside, |key| match key {
        "key" | "name" | "arguments" => true,
        "tool" => has_alias,
        "intent" => has_intent,
        _ => false,
    });
    Some(edits.apply().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inner(text: &str) -> Option<String> {
        let params = Params::read(Some(text)).unwrap();
        inner_arguments(&params, true).map(Cow::into_owned)
    }

    #[test]
    fn arguments_are_taken_however_a_model_wrote_them() {
        for (text, expected) in [
            (r#"{"name":"t","arguments":{"a":1e400}}"#, Some(r#"{"a":1e400}"#)),
            (r#"{"name":"t","arguments":"{\"a\":1}"}"#, Some(r#"{"a":1}"#)),
            (r#"{"name":"t","arguments":""}"#, Some("{}")),
            (r#"{"name":"t","key":"k","a":1,"b":2}"#, Some(r#"{"a":1,"b":2}"#)),
            (r#"{"tool":"t","key":"k","a":1,"intent":"i"}"#, Some(r#"{"a":1}"#)),
            (r#"{"name":"t","tool":"hammer"}"#, Some(r#"{"tool":"hammer"}"#)),
            (r#"{"name":"t","Name":"Bob"}"#, Some(r#"{"Name":"Bob"}"#)),
            (r#"{"name":"t","arguments":null}"#, Some("{}")),
            (r#"{"name":"t","arguments":{},"a":1}"#, Some("{}")),
            (r#"{"name":"t","arguments":"text"}"#, None),
            (r#"{"name":"t","arguments":[1]}"#, None),
        ] {
            assert_eq!(inner(text).as_deref(), expected, "{text}");
        }
    }
}
