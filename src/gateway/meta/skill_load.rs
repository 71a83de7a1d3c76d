//! `skill_load`: the playbook, the key, and the tools that open. In a legacy session it also unlocks them by name.

use std::{
    fmt::Write as _,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::serve::{define, lasting, skill, text};
use crate::{
    catalog::{CatalogSkill, Origin, Snapshot},
    gateway::{
        call::down_reason,
        catalogue::{self, Texts},
        dispatch::{Gateway, Request},
        error::{Doubted, ToolError},
        params::Params,
        signature::signature,
    },
    model::{
        diagnostic::Severity,
        limits::{ENUM_ENTRIES, LOAD_WAIT},
        principal::Principal,
    },
    scan::Found,
    skill::Skill,
    upstream::{Link, Phase},
    wire::era::Era,
};

pub(super) fn definition(snapshot: &Snapshot, principal: &Principal, texts: Texts) -> Value {
    let mut name = json!({"type": "string", "description": texts.name_description});
    let names: Vec<&str> =
        catalogue::listed(snapshot, principal).into_iter().map(|skill| skill.name.as_str()).collect();
    // A hidden skill is loaded by name when the user names it, so it must not be shut out.
    let has_hidden = snapshot.skills.values().any(|skill| skill.is_hidden && snapshot.knows_skill(skill, principal));
    if !names.is_empty() && names.len() <= ENUM_ENTRIES && !has_hidden {
        name["enum"] = json!(names);
    }
    let again = json!({"type": "boolean", "description": "Return the playbook again."});
    let schema = json!({"type": "object", "properties": {"name": name, "again": again}, "required": ["name"]});
    define("skill_load", &texts.load_description, schema, super::serve::read_only())
}

/// Answers at once, or once the upstream whose tools the skill opens has had its time to start.
pub(super) fn call(gateway: &Arc<Gateway>, request: &Request<'_>, arguments: &Params<'_>) {
    let named = text(arguments, "skill_load", &["name", "skill"]);
    let known = named.as_ref().ok().and_then(|name| skill(request, "skill_load", name).ok());
    if let Some(known) = known {
        match gateway.admit(request, known, "skill_load") {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                gateway.record_refusal(request, &error);
                return request.answer(error.to_result());
            }
            None => return,
        }
    }
    let Some(skill) = known.filter(|skill| !request.has_waited() && is_starting(gateway, skill)) else {
        let outcome = load(gateway, request, arguments);
        if let Err(error) = &outcome {
            gateway.record_refusal(request, error);
        }
        return request.answer(outcome.unwrap_or_else(|error| error.to_result()));
    };
    let links = gateway.pool.links();
    let own_link = links.iter().find(|link| skill.origin == Origin::Upstream(link.name().clone())).cloned();
    let waiting = Arc::clone(gateway);
    gateway.later(request, async move {
        match own_link {
            Some(link) => drop(link.wait_ready(LOAD_WAIT).await),
            None => drop(waiting.pool.settled(Instant::now() + LOAD_WAIT).await),
        }
        waiting.published().await;
    });
}

/// Whether the tools of a skill may come with an upstream that is starting, or that has just started.
fn is_starting(gateway: &Gateway, skill: &CatalogSkill) -> bool {
    let is_its = |link: &Link| match &skill.origin {
        Origin::Upstream(upstream) => link.name() == upstream,
        Origin::Folder => skill.tools.is_empty() && !skill.patterns.is_empty(),
    };
    gateway.pool.links().iter().any(|link| is_its(link) && (link.phase() == Phase::Starting || !gateway.is_published()))
}

fn load(gateway: &Gateway, request: &Request<'_>, arguments: &Params<'_>) -> Result<Value, ToolError> {
    let name = text(arguments, "skill_load", &["name", "skill"])?;
    let skill = skill(request, "skill_load", &name)?;
    let key = gateway.secret.key(&request.session.principal, &skill.name, &skill.patterns);
    gateway.record_reading(request, skill, None);
    gateway.experience.loaded(&request.session.principal, &skill.name);
    let mut is_new = true;
    if request.era == Era::Legacy {
        let digest = digest(skill);
        gateway.change_own_list(request, |state| {
            // The playbook may have changed since it was given.
            is_new = state.give(&skill.name, digest);
            is_new |= state.unlock(&skill.name);
        });
    }
    let is_wanted_again = arguments.raw("again").is_some_and(|raw| raw == "true");
    let opened = opened(gateway, request, skill);
    if !is_new && !is_wanted_again {
        let text = format!(
            "`{}` is already loaded; its playbook and tools are as before. Key: {key}\nCall it with `again`: true to read it anew.",
            skill.name
        );
        return Ok(lasting(&text, structured(skill, &key, None, &opened)));
    }
    // Some hosts show the model the structured content only (Claude Code 2.1.332), others the text only.
    let structured = structured(skill, &key, Some(&skill.body), &opened);
    Ok(lasting(&playbook(skill, &key, &opened), structured))
}

/// Of what a client reads of a skill.
fn digest(skill: &CatalogSkill) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&skill.body, references(skill)).hash(&mut hasher);
    hasher.finish()
}

/// What became of the tools of a skill.
#[derive(Default)]
struct Opened {
    /// Name, signature, effect.
    tools: Vec<(String, String, &'static str)>,
    /// Name, code, reason.
    unavailable: Vec<(String, &'static str, String)>,
    /// About the load as a whole.
    warnings: Vec<String>,
    /// What the scan found in the playbook.
    suspicions: Vec<Found>,
}

fn opened(gateway: &Gateway, request: &Request<'_>, skill: &CatalogSkill) -> Opened {
    let snapshot = &request.snapshot;
    let mut opened = Opened { suspicions: snapshot.suspicions(skill), ..Opened::default() };
    for position in &skill.tools {
        let tool = &snapshot.registry.tools()[*position];
        let exposed = tool.exposed.as_str();
        if !snapshot.is_visible(*position, &request.session.principal) {
            if !snapshot.config.is_concealing {
                opened.unavailable.push((exposed.into(), "forbidden", "you have no right to use it".into()));
            }
            continue;
        }
        let doubted = Doubted::of(tool);
        if let Some(Doubted { reason, remedy }) = doubted {
            if snapshot.is_withheld(*position) {
                opened.unavailable.push((exposed.into(), "quarantined", format!("{reason}; {remedy}")));
                continue;
            }
            opened.warnings.push(format!("`{exposed}`: {reason}; {remedy}"));
        }
        let link = gateway.pool.link(tool.upstream_index);
        let down = link.filter(|link| !link.is_available()).and_then(|link| down_reason(&link));
        if let Some(reason) = down {
            opened.unavailable.push((exposed.into(), "unavailable", reason));
        }
        let signature = tool.signature.get_or_init(|| signature(exposed, &tool.tool)).clone();
        opened.tools.push((exposed.into(), signature, tool.tool.effect.as_str()));
    }
    if let Origin::Upstream(upstream) = &skill.origin
        && let Some(link) = gateway.pool.links().iter().find(|link| link.name() == upstream)
        && let Some(reason) = down_reason(link)
    {
        opened.warnings.push(reason);
    }
    if let Origin::Upstream(upstream) = &skill.origin
        && snapshot.unaccepted.instructions.contains(upstream)
    {
        let what = if snapshot.unaccepted.is_enforced { "are withheld: they are" } else { "are" };
        opened.warnings.push(format!(
            "the instructions of `{upstream}` {what} not as they were accepted; `gatekey lock --accept {upstream}` accepts them"
        ));
    }
    if opened.tools.is_empty() && !skill.patterns.is_empty() {
        if skill.origin == Origin::Folder {
            opened.warnings.extend(gateway.unknown_servers());
        }
        opened.warnings.push("no tool of this skill can be reached; do not act as if it had been done".into());
    }
    opened
}

/// The body comes early, since hosts cut long results in the middle or at the end.
fn structured(skill: &CatalogSkill, key: &str, body: Option<&str>, opened: &Opened) -> Value {
    let tool = |(name, signature, effect): &(String, String, &str)| json!({"name": name, "signature": signature, "effect": effect});
    let down = |(name, code, reason): &(String, &str, String)| json!({"name": name, "code": code, "reason": reason});
    let mut structured = json!({"skill": skill.name.as_str(), "key": key});
    if let Some(body) = body {
        structured["body"] = json!(body.trim_end());
    }
    structured["references"] = json!(references(skill));
    structured["tools"] = opened.tools.iter().map(tool).collect();
    if !opened.suspicions.is_empty() {
        structured["findings"] = opened.suspicions.iter().map(suspicion).collect();
    }
    structured["trust"] = json!(skill.trust.as_str());
    structured["origin"] = json!(skill.origin.to_string());
    structured["warnings"] = json!(opened.warnings);
    structured["unavailable"] = opened.unavailable.iter().map(down).collect();
    structured
}

fn suspicion(found: &Found) -> Value {
    let severity = if found.severity == Severity::Error { "error" } else { "warning" };
    json!({"id": found.id, "severity": severity, "reason": found.reason, "excerpt": found.excerpt})
}

fn references(skill: &CatalogSkill) -> Vec<&str> {
    skill.on_disk.as_ref().map(Skill::for_models).into_iter().flatten().collect()
}

fn playbook(skill: &CatalogSkill, key: &str, opened: &Opened) -> String {
    let mut out = format!("<skill name=\"{}\">\n{}\n</skill>\n", skill.name, skill.body.trim_end());
    // Writing to a text cannot fail.
    let mut line = |text: String| writeln!(out, "{text}").unwrap_or_default();
    let references = references(skill);
    if !references.is_empty() {
        line(format!("\nReferences (skill_read_reference): {}", references.join(", ")));
    }
    line(format!("\nKey: {key}"));
    if !opened.tools.is_empty() {
        line("Opened tools; call r with tool_call_read, w with tool_call_write, each with this key (full schemas: tool_describe):".into());
    }
    for (_, signature, effect) in &opened.tools {
        line(format!("{} {signature}", effect.get(..1).unwrap_or_default()));
    }
    for (name, code, reason) in &opened.unavailable {
        line(format!("Not available: {name} ({code}: {reason})"));
    }
    for found in &opened.suspicions {
        line(format!("Scan: {} (`{}`): {}", found.reason, found.id, found.excerpt));
    }
    for warning in &opened.warnings {
        line(format!("Warning: {warning}"));
    }
    out
}
