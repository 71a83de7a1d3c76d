//! `tool_describe`: full definitions of open tools, by name or by words. Closed tools are not described; where the caller
//! may know them, the skill that opens them is named.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::serve::{KeyWorth, define, skill, worth};
use crate::{
    catalog::OpenSkills,
    gate::policy::Decision,
    gateway::{
        call::{Call, open_to},
        catalogue,
        dispatch::{Gateway, Request},
        error::ToolError,
        finding::What,
        params::Params,
    },
    model::{
        limits::{CLOSED_HITS, DESCRIBE_NAMES, DESCRIBE_TOOLS, MEANT_TOOLS, REGEX_BYTES},
        name::SkillName,
    },
    search::Hit,
    wire::era::Era,
};

pub(super) fn definition() -> Value {
    let schema = json!({"type": "object", "properties": {
        "names": {"type": "array", "items": {"type": "string"}},
        "query": {"type": "string", "description": "Words to find opened tools by, instead of names."},
        "regex": {"type": "string", "description": "A regular expression over names and descriptions, instead of words."},
        "key": {"type": "string", "description": "From skill_load."},
        "skill": {"type": "string", "description": "Only tools of this skill."},
        "limit": {"type": "integer", "minimum": 1, "maximum": DESCRIBE_TOOLS},
    }});
    define("tool_describe", "Returns the full definitions of opened tools.", schema, super::serve::read_only())
}

/// The result, as JSON; `None` where the request is taken up again.
pub(super) fn call(
    gateway: &Arc<Gateway>,
    request: &Request<'_>,
    arguments: &Params<'_>,
) -> Option<Result<String, ToolError>> {
    let key = arguments.text_of("key");
    let worth = worth(gateway, request, key.as_deref());
    let of_key = if let KeyWorth::Opens(name) = &worth { Some(name) } else { None };
    let open = open_to(request, of_key);
    let limit =
        arguments.raw("limit").and_then(|raw| raw.parse().ok()).unwrap_or(DESCRIBE_TOOLS).clamp(1, DESCRIBE_TOOLS);
    let within = match arguments.text_of("skill") {
        Some(name) => match skill(request, "tool_describe", &name) {
            Ok(skill) => Some(skill.tools.clone()),
            Err(error) => return Some(Err(error)),
        },
        None => None,
    };
    let is_within = |position: usize| within.as_ref().is_none_or(|tools| tools.binary_search(&position).is_ok());
    let names: Vec<String> = arguments.raw("names").and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
    if names.len() > DESCRIBE_NAMES {
        let hint = format!("Call it again with at most {DESCRIBE_NAMES} names.");
        return Some(Err(ToolError::new("invalid_arguments", "tool_describe", "There are too many `names`.", hint)));
    }
    let regex =
        match arguments.text_of("regex").filter(|regex| !regex.is_empty()).map(|regex| parse(&regex)).transpose() {
            Ok(regex) => regex,
            Err(error) => return Some(Err(error)),
        };
    let (found, closed) = if let Some(regex) = regex.filter(|_| names.is_empty()) {
        let (found, closed) = matching(request, &open, &regex, is_within);
        (found, by_name(gateway, request, &open, &closed, worth == KeyWorth::Stale).1)
    } else if names.is_empty() {
        let query = arguments.text_of("query").unwrap_or_default();
        let (found, closed) = best(gateway, request, &open, &query, is_within)?;
        (found, by_name(gateway, request, &open, &closed, worth == KeyWorth::Stale).1)
    } else {
        by_name(gateway, request, &open, &names, worth == KeyWorth::Stale)
    };
    let found: Vec<usize> = found.into_iter().take(limit).collect();
    if request.era == Era::Legacy {
        let tools = request.snapshot.registry.tools();
        gateway.change_own_list(request, |state| {
            for position in &found {
                state.ask(&tools[*position].exposed);
            }
        });
    }
    Some(Ok(result(request, &found, &closed)))
}

/// Positions of the open ones of `names`, and why the others are not described.
fn by_name(
    gateway: &Gateway,
    request: &Request<'_>,
    open: &OpenSkills,
    names: &[String],
    has_stale_key: bool,
) -> (Vec<usize>, Vec<ToolError>) {
    let snapshot = &request.snapshot;
    let (mut found, mut closed) = (Vec::new(), Vec::new());
    for name in names {
        let position = snapshot.registry.position(name);
        // A definition can be read while its upstream is down.
        let standing = position.and_then(|position| snapshot.standing(position, open, true));
        match (snapshot.policy.decide(&request.session.principal, standing.as_ref()), position) {
            (Decision::Allow, Some(position)) => found.push(position),
            (decision, _) => {
                let call = Call { tool: name, open, arguments: None, has_stale_key, effect: None, intent: None };
                closed.push(gateway.refused(request, call, decision, None));
            }
        }
    }
    (found, closed)
}

/// Positions of the open tools that fit `query`, best first, or all of them where it is empty; and names of the best closed
/// ones that a skill of the catalogue opens. `None` where the request is taken up again.
fn best(
    gateway: &Arc<Gateway>,
    request: &Request<'_>,
    open: &OpenSkills,
    query: &str,
    is_within: impl Fn(usize) -> bool,
) -> Option<(Vec<usize>, Vec<String>)> {
    let (snapshot, principal) = (&request.snapshot, &request.session.principal);
    let is_known = |position: &usize| is_within(*position) && snapshot.is_shown(*position, principal);
    let is_open = |position: &usize| snapshot.is_open(*position, open);
    if query.trim().is_empty() {
        let all = 0..snapshot.registry.tools().len();
        return Some((all.filter(is_known).filter(is_open).collect(), Vec::new()));
    }
    let all = gateway.find(request, What::Tools, query)?;
    // Every tool means something; without a word of the query only the likest are of interest.
    let is_near = |(rank, hit): &(usize, &Hit)| hit.words > 0.0 || (*rank < MEANT_TOOLS && !all.is_doubtful);
    let hits = all.hits.iter().enumerate().filter(is_near).map(|(_, hit)| hit.position).filter(is_known);
    let (found, closed): (Vec<usize>, Vec<usize>) = hits.partition(is_open);
    Some((found, openable(request, closed)))
}

/// A regular expression that matches in any case. Expressions that take too much memory are refused; all take linear time.
fn parse(regex: &str) -> Result<Regex, ToolError> {
    let built = RegexBuilder::new(regex).case_insensitive(true).size_limit(REGEX_BYTES).build();
    built.map_err(|error| {
        let hint = "Call it again with a regular expression as of the Rust crate `regex`, or with `query`.";
        ToolError::new("invalid_arguments", "tool_describe", format!("`regex` is none: {error}."), hint)
    })
}

/// Positions of the open tools whose name or description matches, by name; and names of the first closed ones that a skill
/// of the catalogue opens.
fn matching(
    request: &Request<'_>,
    open: &OpenSkills,
    regex: &Regex,
    is_within: impl Fn(usize) -> bool,
) -> (Vec<usize>, Vec<String>) {
    let (snapshot, principal) = (&request.snapshot, &request.session.principal);
    let is_match = |position: &usize| {
        let tool = &snapshot.registry.tools()[*position];
        is_within(*position)
            && snapshot.is_shown(*position, principal)
            && (regex.is_match(tool.exposed.as_str()) || regex.is_match(&tool.tool.description))
    };
    let all = (0..snapshot.registry.tools().len()).filter(is_match);
    let (found, closed): (Vec<usize>, Vec<usize>) = all.partition(|position| snapshot.is_open(*position, open));
    (found, openable(request, closed))
}

/// Names of the first of these closed tools that a skill of the catalogue opens.
fn openable(request: &Request<'_>, closed: Vec<usize>) -> Vec<String> {
    let (snapshot, principal) = (&request.snapshot, &request.session.principal);
    let is_listed = |name: &SkillName| {
        snapshot.skills.get(name).is_some_and(|skill| catalogue::is_listed(snapshot, skill, principal))
    };
    let can_be_opened = |position: &usize| snapshot.openers(*position).iter().any(is_listed);
    let named = closed.into_iter().filter(can_be_opened).take(CLOSED_HITS);
    named.map(|position| snapshot.registry.tools()[position].exposed.to_string()).collect()
}

/// The result, as JSON. Definitions stand in it as their servers wrote them: a tree would round the numbers of some and
/// refuse others.
fn result(request: &Request<'_>, found: &[usize], closed: &[ToolError]) -> String {
    let snapshot = &request.snapshot;
    let tools: Vec<&str> =
        found.iter().map(|position| snapshot.registry.tools()[*position].listed(snapshot.config.intent)).collect();
    let mut text = tools.join("\n");
    for error in closed {
        text.push_str(&format!("\n{} {}", error.message, error.hint));
    }
    if text.is_empty() {
        "No opened tool matches. Load the skill that has it first.".clone_into(&mut text);
    }
    let closed_names: Vec<Value> = closed.iter().map(|error| error.to_result()["structuredContent"].clone()).collect();
    let content = json!([{"type": "text", "text": text.trim_start()}]);
    let structured = format!(r#"{{"tools":[{}],"not_described":{}}}"#, tools.join(","), json!(closed_names));
    let is_error = found.is_empty() && !closed.is_empty();
    format!(r#"{{"content":{content},"structuredContent":{structured},"isError":{is_error}}}"#)
}
