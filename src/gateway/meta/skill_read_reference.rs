//! `skill_read_reference`: one listed file of a skill. Opens nothing.

use serde_json::{Value, json};

use super::serve::{define, lasting_text, skill, text};
use crate::{
    gateway::{dispatch::Request, error::ToolError, params::Params},
    skill::{ReferenceError, read_reference},
};

pub(super) fn definition() -> Value {
    let schema = json!({"type": "object", "required": ["skill", "path"], "properties": {
        "skill": {"type": "string"},
        "path": {"type": "string", "description": "As skill_load listed it."},
    }});
    define(
        "skill_read_reference",
        "Reads one reference file of a skill. Opens no tools.",
        schema,
        super::serve::read_only(),
    )
}

pub(super) fn call(request: &Request<'_>, arguments: &Params<'_>) -> Result<Value, ToolError> {
    let name = text(arguments, "skill_read_reference", &["skill", "name"])?;
    let path = text(arguments, "skill_read_reference", &["path", "file"])?;
    let skill = skill(request, "skill_read_reference", &name)?;
    let disk = skill.on_disk.as_ref();
    let listed = || disk.map(|disk| disk.references.join(", ")).filter(|list| !list.is_empty());
    let read = disk.ok_or_else(|| ReferenceError::NotListed(path.clone())).and_then(|disk| read_reference(disk, &path));
    let bytes = read.map_err(|error| {
        // The system's own words may hold a path of ours.
        if let ReferenceError::Unreadable { source, .. } = &error {
            tracing::warn!(skill = %skill.name, path, %source, "reference cannot be read");
        }
        let hint =
            listed().map_or_else(|| "The skill has no references.".to_owned(), |list| format!("It has: {list}."));
        ToolError::new("unknown_reference", "skill_read_reference", format!("Skill `{}`: {error}.", skill.name), hint)
    })?;
    // Without structured content, which some hosts would show in place of the text.
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|error| format!("`{path}` is no text; it has {} bytes.", error.as_bytes().len()));
    Ok(json!({"content": lasting_text(&text)}))
}
