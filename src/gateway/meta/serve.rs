//! Names, definitions and calls of the meta-tools, and what they have in common.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Value, json};

use super::{skill_load, skill_read_reference, skill_search, skill_unload, tool_call, tool_describe};
use crate::{
    catalog::{CatalogSkill, SkillFor, Snapshot},
    gate::key::claimed_skill,
    gateway::{
        catalogue,
        dispatch::{Gateway, Request},
        error::{ToolError, forbidden_skill},
        params::Params,
    },
    model::{
        name::{SkillName, did_you_mean},
        principal::Principal,
        sent::SentAs,
        tool::Effect,
    },
    wire::{envelope::as_text, era::Era, splice::members},
};

/// Names that no upstream tool may have.
pub const NAMES: &[&str] = &[
    "skill_load",
    "skill_read_reference",
    "tool_describe",
    "tool_call_read",
    "tool_call_write",
    "skill_unload",
    "skill_search",
];

/// The definitions for `tools/list`, in their fixed order, each as JSON.
pub(in crate::gateway) fn definitions(snapshot: &Snapshot, principal: &Principal, era: Era) -> Vec<String> {
    let texts = catalogue::texts(snapshot, principal);
    let intent = snapshot.config.intent;
    let search = texts.is_cut.then(skill_search::definition);
    let mut tools = vec![skill_load::definition(snapshot, principal, texts)];
    tools.extend(search);
    tools.extend([
        skill_read_reference::definition(),
        tool_describe::definition(),
        tool_call::definition("tool_call_read", intent),
        tool_call::definition("tool_call_write", intent),
    ]);
    if era == Era::Legacy {
        tools.push(skill_unload::definition());
    }
    tools.iter().map(Value::to_string).collect()
}

/// What an answer of our own to a call of this tool counts as.
pub(in crate::gateway) fn sent_as(name: &str) -> SentAs {
    match name {
        "skill_load" => SentAs::Load,
        // What an upstream answers is counted on its way.
        "tool_call_read" | "tool_call_write" => SentAs::Refusal,
        _ if NAMES.contains(&name) => SentAs::Discovery,
        _ => SentAs::Refusal,
    }
}

/// Serves a call of a meta-tool.
pub(in crate::gateway) fn call(gateway: &Arc<Gateway>, request: &Request<'_>, name: &str) {
    let object = object_of(request.params.raw("arguments"));
    let Some(arguments) = object.as_deref().and_then(|object| Params::read(Some(object))) else {
        let hint = "Call it again with an object.";
        let error = ToolError::new("invalid_arguments", name, "The arguments are not an object.", hint);
        return request.answer(error.to_result());
    };
    let outcome = match (name, request.era) {
        ("skill_load", _) => return skill_load::call(gateway, request, &arguments),
        ("skill_read_reference", _) => match skill_read_reference::call(gateway, request, &arguments) {
            Some(outcome) => outcome,
            None => return,
        },
        ("skill_search", _) => match skill_search::call(gateway, request, &arguments) {
            Some(outcome) => outcome,
            None => return,
        },
        ("tool_describe", _) => match tool_describe::call(gateway, request, &arguments) {
            Some(Ok(result)) => return request.answer_raw(result),
            Some(Err(error)) => Err(error),
            None => return,
        },
        ("tool_call_read", _) => return tool_call::call(gateway, request, &arguments, Some(Effect::Read)),
        ("tool_call_write", _) => return tool_call::call(gateway, request, &arguments, None),
        ("skill_unload", Era::Legacy) => skill_unload::call(gateway, request, &arguments),
        _ => {
            let hint = "Use only the names that you were given.";
            Err(ToolError::new("not_found", name, format!("There is no tool `{name}`."), hint))
        }
    };
    if let Err(error) = &outcome {
        gateway.record_refusal(request, error);
    }
    request.answer(outcome.unwrap_or_else(|error| error.to_result()));
}

/// An object, also where it comes as a text or not at all; some models write arguments so.
pub(super) fn object_of(raw: Option<&str>) -> Option<Cow<'_, str>> {
    let Some(raw) = raw.filter(|raw| *raw != "null") else { return Some("{}".into()) };
    if raw.starts_with('{') {
        return Some(raw.into());
    }
    let text = as_text(raw)?;
    if text.trim().is_empty() {
        return Some("{}".into());
    }
    members(&text).is_some().then_some(text)
}

/// The skill called `name`, or the error that says which there are.
pub(super) fn skill<'a>(request: &'a Request<'_>, tool: &str, name: &str) -> Result<&'a CatalogSkill, ToolError> {
    let snapshot = &request.snapshot;
    let principal = &request.session.principal;
    match snapshot.skill_for(name.trim(), principal) {
        SkillFor::Known(skill) => Ok(skill),
        SkillFor::Forbidden => Err(forbidden_skill(tool, name)),
        SkillFor::Unknown => {
            let decided = if snapshot.skills.contains_key(name.trim()) { "forbidden" } else { "unknown_skill" };
            Err(ToolError { decided, ..unknown_skill(snapshot, principal, tool, name) })
        }
    }
}

fn unknown_skill(snapshot: &Snapshot, principal: &Principal, tool: &str, name: &str) -> ToolError {
    let names = || catalogue::listed(snapshot, principal).into_iter().map(|skill| skill.name.as_str());
    let close = did_you_mean(name, names());
    let hint = match close.as_slice() {
        [] => {
            let some: Vec<&str> = names().take(20).collect();
            format!("There are: {}.", some.join(", "))
        }
        close => format!("Did you mean `{}`?", close.join("`, `")),
    };
    let message = format!("There is no skill `{}`.", crate::model::tool::cut(name, 100));
    ToolError::new("unknown_skill", tool, message, hint)
}

/// A required text, under the first of these names that is there.
pub(super) fn text(arguments: &Params<'_>, tool: &str, names: &[&str]) -> Result<String, ToolError> {
    let found = names.iter().find_map(|name| arguments.text_of(name)).filter(|text| !text.trim().is_empty());
    found.map(std::borrow::Cow::into_owned).ok_or_else(|| {
        let name = names.first().copied().unwrap_or_default();
        let hint = format!("Call it again with `{name}`, a text.");
        ToolError::new("invalid_arguments", tool, format!("`{name}` is missing."), hint)
    })
}

/// What a key is worth.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeyWorth {
    /// None came.
    Absent,
    /// It opens this skill.
    Opens(SkillName),
    /// It opens nothing, or nothing any more.
    Stale,
}

pub(super) fn worth(gateway: &Gateway, request: &Request<'_>, key: Option<&str>) -> KeyWorth {
    let Some(key) = key.map(str::trim).filter(|key| !key.is_empty()) else { return KeyWorth::Absent };
    let (snapshot, principal) = (&request.snapshot, &request.session.principal);
    let skill = claimed_skill(key).and_then(|name| snapshot.skills.get(name));
    // A rule may have come since the key was given.
    match skill.filter(|skill| snapshot.policy.is_skill_visible(principal, skill.name.as_str())) {
        Some(skill) if gateway.secret.key(principal, &skill.name, &skill.patterns) == key => {
            KeyWorth::Opens(skill.name.clone())
        }
        _ => KeyWorth::Stale,
    }
}

/// The part of a definition that all meta-tools share.
pub(super) fn define(name: &str, description: &str, schema: Value, annotations: Value) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": schema,
        "annotations": annotations,
        // Hosts that search tools instead of listing them must not hide the way in.
        "_meta": {"anthropic/alwaysLoad": true},
    })
}

pub(super) fn read_only() -> Value {
    // Every client pays for each word: that it may be repeated goes without saying where nothing is changed.
    json!({"readOnlyHint": true, "openWorldHint": false})
}

/// A result whose text is for the model, and which hosts should keep.
pub(super) fn lasting(text: &str, structured: Value) -> Value {
    json!({"content": lasting_text(text), "structuredContent": structured})
}

/// Content whose text is for the model, and which hosts should keep.
pub(super) fn lasting_text(text: &str) -> Value {
    json!([{"type": "text", "text": text, "annotations": {"audience": ["assistant"], "priority": 1}}])
}
