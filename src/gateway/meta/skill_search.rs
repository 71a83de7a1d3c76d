//! `skill_search`: skills by what they are for. Listed where the catalogue has no room for all.

use std::sync::Arc;

use serde_json::{Value, json};

use super::serve::{define, read_only, text};
use crate::{
    catalog::CatalogSkill,
    gateway::{
        catalogue,
        dispatch::{Gateway, Request},
        error::ToolError,
        finding::What,
        params::Params,
    },
    model::{
        limits::{DESCRIPTION_CHARS, SEARCH_HITS, SEARCH_HITS_MOST, SEARCH_NEAREST},
        tool::cut,
    },
    search::{Basis, Hit},
};

pub(super) fn definition() -> Value {
    let schema = json!({"type": "object", "properties": {
        "query": {"type": "string", "description": "What the task is, in a few words."},
        "top_k": {"type": "integer", "minimum": 1, "maximum": SEARCH_HITS_MOST, "description": "At most so many skills."},
        "tags": {"type": "array", "items": {"type": "string"}, "description": "Only skills with one of these tags."},
        "why": {"type": "boolean", "description": "Say what each skill was found by."},
    }, "required": ["query"]});
    let description = "Finds skills by what they are for, best first. Load the one that fits with skill_load.";
    define("skill_search", description, schema, read_only())
}

/// The result; `None` where the request is taken up again.
pub(super) fn call(
    gateway: &Arc<Gateway>,
    request: &Request<'_>,
    arguments: &Params<'_>,
) -> Option<Result<Value, ToolError>> {
    let query = match text(arguments, "skill_search", &["query"]) {
        Ok(query) => query,
        Err(error) => return Some(Err(error)),
    };
    let found = gateway.find(request, What::Skills, &query)?;
    let parsed = |name: &str| arguments.raw(name).and_then(|raw| raw.trim_matches('"').parse().ok());
    let most: usize = parsed("top_k").unwrap_or(SEARCH_HITS).clamp(1, SEARCH_HITS_MOST);
    let tags: Vec<String> = arguments.raw("tags").and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
    let has_why = arguments.raw("why").is_some_and(|raw| raw.trim_matches('"') == "true");

    let (snapshot, principal) = (&request.snapshot, &request.session.principal);
    let has_tag = |own: &[String]| tags.is_empty() || own.iter().any(|tag| tags.contains(tag));
    let is_for_them = |skill: &CatalogSkill| catalogue::is_listed(snapshot, skill, principal) && has_tag(&skill.tags);
    let skills: Vec<&CatalogSkill> = snapshot.skills.values().collect();
    let in_use = request.session.state().open_skills();
    let prior = |skill: &CatalogSkill| gateway.experience.prior(principal, &skill.name, in_use.contains(&skill.name));
    let hits = found.hits.iter().map(|hit| (hit, skills[hit.position])).filter(|(_, skill)| is_for_them(skill));
    let mut hits: Vec<(&Hit, &CatalogSkill, f32)> =
        hits.take(SEARCH_HITS_MOST).map(|(hit, skill)| (hit, skill, prior(skill))).collect();
    hits.sort_by(|a, b| (b.0.score + b.2).total_cmp(&(a.0.score + a.2)));
    let most = if found.is_doubtful { most.min(SEARCH_NEAREST) } else { most };
    let shown: Vec<Value> = hits.into_iter().take(most).map(|hit| shown(request, hit, has_why)).collect();
    let lines: Vec<String> = shown.iter().map(line).collect();
    let text = match (shown.is_empty(), found.is_doubtful) {
        (true, _) => "No skill has words of it. Say it in other words, or go on without a skill.".to_owned(),
        (_, true) => {
            format!("No skill fits well. Go on without one, unless it is one of the nearest:\n{}", lines.join("\n"))
        }
        (_, false) => format!("Load the one that fits with skill_load:\n{}", lines.join("\n")),
    };
    let (skills, nearest) = if found.is_doubtful { (Vec::new(), shown) } else { (shown, Vec::new()) };
    let mut structured = json!({"skills": skills});
    if found.is_doubtful {
        structured["nearest"] = nearest.into();
    }
    if found.basis == Basis::Partly || has_why {
        structured["found_by"] = found.by().into();
    }
    Some(Ok(json!({"content": [{"type": "text", "text": text}], "structuredContent": structured})))
}

fn shown(request: &Request<'_>, (hit, skill, prior): (&Hit, &CatalogSkill, f32), has_why: bool) -> Value {
    let (snapshot, principal) = (&request.snapshot, &request.session.principal);
    let n_visible = skill.tools.iter().filter(|position| snapshot.is_shown(**position, principal)).count();
    let mut shown = json!({
        "name": skill.name.as_str(),
        "description": cut(&snapshot.describe(skill, principal), DESCRIPTION_CHARS),
        "trust": skill.trust.as_str(),
        "origin": skill.origin.to_string(),
        "score": rounded(hit.score + prior),
        "opens": n_visible,
    });
    if has_why {
        shown["why"] = json!({
            "fields": hit.kinds(),
            "words": rounded(hit.words),
            "meaning": hit.meaning.map(rounded),
            "use": rounded(prior),
        });
    }
    shown
}

fn line(skill: &Value) -> String {
    let [name, description] = ["name", "description"].map(|member| skill[member].as_str().unwrap_or_default());
    format!("- {name}: {description}")
}

fn rounded(score: f32) -> f64 {
    (f64::from(score) * 100.0).round() / 100.0
}
