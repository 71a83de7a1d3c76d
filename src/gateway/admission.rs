//! Whether the text of a skill may be given to a client: at once, after a question to the user, or not. The question goes
//! through the client, where it can ask; the request is taken up again with the answer.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Value, json};

use super::{
    dispatch::{Gateway, Request},
    error::ToolError,
    inputs::Unfinished,
    params::Params,
    upward::can,
};
use crate::{
    catalog::CatalogSkill,
    model::{hidden::visible, name::SkillName, tool::cut, trust::LoadRule},
    wire::{
        envelope::result_line,
        era::{Era, META_CAPABILITIES},
        splice::{member, members},
    },
};

/// What the answer is called among the inputs.
const QUESTION: &str = "approve";
/// What the scan found, at most so much of it in the question.
const REASONS: usize = 3;
/// Characters of a skill's own words in the question.
const WORDS: usize = 200;

/// What users allowed while this process runs: principal, skill, and the digest of its files. At most as many as there are
/// skills that must be asked for, for each principal that was asked.
#[derive(Debug, Default)]
pub(super) struct Allowed(Mutex<HashSet<(String, SkillName, String)>>);

impl Allowed {
    fn has(&self, key: &(String, SkillName, String)) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(key)
    }

    /// Another version of the same skill is no more allowed then.
    fn add(&self, key: (String, SkillName, String)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(principal, skill, _)| (principal, skill) != (&key.0, &key.1));
        all.insert(key);
    }
}

impl Gateway {
    /// Whether `tool` may give the text of `skill`; `None` where the user is being asked, and the request is taken up again.
    pub(super) fn admit(
        self: &Arc<Self>,
        request: &Request<'_>,
        skill: &CatalogSkill,
        tool: &str,
    ) -> Option<Result<(), ToolError>> {
        let refused = |why: &str| Some(Err(untrusted(skill, tool, why)));
        if let Some(why) = request.snapshot.withheld_skills.get(&skill.name) {
            return refused(&format!("the scan found something in it: {why}"));
        }
        match skill.rule.load {
            LoadRule::Allow => return Some(Ok(())),
            LoadRule::Refuse => return refused("the config lets nobody load such skills"),
            LoadRule::Ask => {}
        }
        // Of what is not on disk nobody could say later whether it is the same.
        let Some(digest) = skill.on_disk.as_ref().and_then(|disk| disk.set_digest()) else {
            return refused("its files cannot all be read");
        };
        let key = (request.session.principal.name.clone(), skill.name.clone(), digest);
        if self.allowed.has(&key) {
            return Some(Ok(()));
        }
        let state = self.secret.tag(&["load", &key.0, key.1.as_str(), &key.2]);
        match answer(request, &state) {
            Some(true) => {
                self.allowed.add(key);
                Some(Ok(()))
            }
            Some(false) => refused("the user was asked and did not allow it"),
            None if request.n_rounds == 0 && can_ask(request) => {
                self.ask_user(request, skill, &state);
                None
            }
            None => refused("the user has not approved it"),
        }
    }

    fn ask_user(self: &Arc<Self>, request: &Request<'_>, skill: &CatalogSkill, state: &str) {
        let found = request.snapshot.suspicions(skill);
        let reasons: Vec<String> = found.iter().take(REASONS).map(|found| visible(&found.reason)).collect();
        let warning = match found.len() {
            0 => String::new(),
            n => format!(" The scan of its text found {n}: {}.", reasons.join("; ")),
        };
        let message = format!(
            "The agent wants to load the skill `{}`, for which nobody vouches. It says of itself: \"{}\".{warning} Its text will instruct the agent; allow this only if you know where it comes from.",
            visible(skill.name.as_str()),
            visible(&cut(&skill.description, WORDS)),
        );
        let schema = json!({"type": "object", "required": [QUESTION], "properties": {
            QUESTION: {"type": "boolean", "title": "Allow it, as it is now", "default": false}}});
        let result = json!({"resultType": "input_required", "requestState": state, "inputRequests": {
            QUESTION: {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}}});
        let line = result_line(&request.id, &result.to_string());
        match request.era {
            Era::Modern => request.to.answer(line),
            Era::Legacy => {
                let (session, to) = (Arc::clone(request.session), Arc::clone(request.to));
                let unfinished = Unfinished { session, to, line: request.line.to_vec(), n_rounds: request.n_rounds };
                unfinished.ask(Arc::clone(self), line);
            }
        }
    }
}

/// What the user said, where this request brings an answer to the question that has this state.
fn answer(request: &Request<'_>, state: &str) -> Option<bool> {
    if request.params.text_of("requestState")? != state {
        return None;
    }
    let responses = members(request.params.raw("inputResponses")?)?;
    let response: Value = serde_json::from_str(member(&responses, QUESTION)?.value).ok()?;
    Some(response["action"] == "accept" && response["content"][QUESTION] == true)
}

/// Whether the client shows forms to its user.
fn can_ask(request: &Request<'_>) -> bool {
    if request.era == Era::Legacy {
        return can(request.session, "elicitation/create");
    }
    let said = request.params.meta_raw(META_CAPABILITIES).and_then(|said| Params::read(Some(said)));
    let Some(elicitation) = said.and_then(|said| said.raw("elicitation")) else { return false };
    // Without a word it means forms.
    let modes = members(elicitation).unwrap_or_default();
    modes.is_empty() || member(&modes, "form").is_some()
}

fn untrusted(skill: &CatalogSkill, tool: &str, why: &str) -> ToolError {
    let name = &skill.name;
    let message = format!("The skill `{name}` is {} and not loaded: {why}.", skill.trust);
    let hint = format!(
        "Go on without it, and tell the user: `gatekey skills show {name}` shows it, `gatekey skills trust {name}` approves it as it is."
    );
    let more = vec![("trust", json!(skill.trust.as_str()))];
    ToolError { skill: Some(name.to_string()), more, ..ToolError::new("untrusted", tool, message, hint) }
}
