//! `skill_search`: skills by what they are for. Listed where the catalogue has no room for all.

use serde_json::{Value, json};

use super::serve::{define, read_only, text};
use crate::{
    gateway::{catalogue, dispatch::Request, error::ToolError, params::Params},
    model::{
        limits::{DESCRIPTION_CHARS, SEARCH_HITS, SEARCH_HITS_MOST},
        tool::cut,
    },
};

pub(super) fn definition() -> Value {
    let schema = json!({"type": "object", "properties": {
        "query": {"type": "string", "description": "What the task is, in a few words."},
        "top_k": {"type": "integer", "minimum": 1, "maximum": SEARCH_HITS_MOST, "description": "At most so many skills."},
        "tags": {"type": "array", "items": {"type": "string"}, "description": "Only skills with one of these tags."},
    }, "required": ["query"]});
    let description = "Finds skills by what they are for, best first. Load the one that fits with skill_load.";
    define("skill_search", description, schema, read_only())
}

pub(super) fn call(request: &Request<'_>, arguments: &Params<'_>) -> Result<Value, ToolError> {
    let query = text(arguments, "skill_search", &["query"])?;
    let parsed = |name: &str| arguments.raw(name).and_then(|raw| raw.trim_matches('"').parse().ok());
    let most: usize = parsed("top_k").unwrap_or(SEARCH_HITS).clamp(1, SEARCH_HITS_MOST);
    let tags: Vec<String> = arguments.raw("tags").and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
    let (snapshot, principal) = (&request.snapshot, &request.session.principal);
    let has_tag = |own: &[String]| tags.is_empty() || own.iter().any(|tag| tags.contains(tag));
    let found: Vec<Value> = snapshot
        .find_skills(&query)
        .into_iter()
        .filter(|(skill, _)| catalogue::is_listed(snapshot, skill, principal) && has_tag(&skill.tags))
        .take(most)
        .map(|(skill, score)| {
            let n_visible = skill.tools.iter().filter(|position| snapshot.is_visible(**position, principal)).count();
            json!({
                "name": skill.name.as_str(),
                "description": cut(&snapshot.describe(skill, principal), DESCRIPTION_CHARS),
                "origin": skill.origin.to_string(),
                "score": (f64::from(score) * 100.0).round() / 100.0,
                "opens": n_visible,
            })
        })
        .collect();
    let lines = found.iter().map(|skill| {
        format!(
            "- {}: {}",
            skill["name"].as_str().unwrap_or_default(),
            skill["description"].as_str().unwrap_or_default()
        )
    });
    let text = match found.is_empty() {
        true => "No skill has words of it. Say it in other words, or go on without a skill.".to_owned(),
        false => format!("Load the one that fits with skill_load:\n{}", lines.collect::<Vec<_>>().join("\n")),
    };
    Ok(json!({"content": [{"type": "text", "text": text}], "structuredContent": {"skills": found}}))
}
