//! `skill_read_reference`: one listed file of a skill. Opens nothing.

use std::sync::Arc;

use serde_json::{Value, json};

use super::serve::{define, lasting_text, skill, text};
use crate::{
    catalog::CatalogSkill,
    gateway::{
        dispatch::{Gateway, Request},
        error::ToolError,
        params::Params,
    },
    model::trust::Trust,
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

/// `None` where the user is being asked, and the request is taken up again.
pub(super) fn call(
    gateway: &Arc<Gateway>,
    request: &Request<'_>,
    arguments: &Params<'_>,
) -> Option<Result<Value, ToolError>> {
    let named = text(arguments, "skill_read_reference", &["skill", "name"]).and_then(|name| {
        Ok((
            skill(request, "skill_read_reference", &name)?,
            text(arguments, "skill_read_reference", &["path", "file"])?,
        ))
    });
    let (skill, path) = match named {
        Ok(named) => named,
        Err(error) => return Some(Err(error)),
    };
    Some(gateway.admit(request, skill, "skill_read_reference")?.and_then(|()| {
        let read = read(skill, &path)?;
        gateway.record_reading(request, skill, Some(&path));
        Ok(read)
    }))
}

fn read(skill: &CatalogSkill, path: &str) -> Result<Value, ToolError> {
    let disk = skill.on_disk.as_ref();
    let listed = || {
        let list = disk.map(|disk| disk.for_models().collect::<Vec<_>>().join(", "));
        list.filter(|list| !list.is_empty())
    };
    let read = disk.ok_or_else(|| ReferenceError::NotListed(path.to_owned())).and_then(|disk| {
        let bytes = read_reference(disk, path)?;
        // What is trusted for its digest is trusted as long as it has that.
        if skill.trust != Trust::Trusted && !disk.is_as_listed(path, &bytes) {
            return Err(ReferenceError::Changed(path.to_owned()));
        }
        Ok(bytes)
    });
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
