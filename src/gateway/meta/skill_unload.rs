//! `skill_unload`: closes a skill's tools again in a legacy session.

use serde_json::{Value, json};

use super::serve::{define, skill, text};
use crate::gateway::{
    dispatch::{Gateway, Request},
    error::ToolError,
    params::Params,
};

pub(super) fn definition() -> Value {
    let name = json!({"type": "string"});
    let schema = json!({"type": "object", "properties": {"name": name}, "required": ["name"]});
    define("skill_unload", "Closes the tools of a loaded skill again.", schema, super::serve::read_only())
}

pub(super) fn call(gateway: &Gateway, request: &Request<'_>, arguments: &Params<'_>) -> Result<Value, ToolError> {
    let name = text(arguments, "skill_unload", &["name", "skill"])?;
    let skill = skill(request, "skill_unload", &name)?;
    let mut was_loaded = false;
    gateway.change_own_list(request, |state| was_loaded = state.lock(&skill.name));
    let text = if was_loaded { "is unloaded; its tools are closed" } else { "was not loaded" };
    let content = json!([{"type": "text", "text": format!("`{}` {text}.", skill.name)}]);
    Ok(json!({"content": content, "structuredContent": {"skill": skill.name.as_str(), "was_loaded": was_loaded}}))
}
