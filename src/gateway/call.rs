//! `tools/call`: the decision, and the call to one upstream. Every path to an upstream goes through [`Gateway::try_call`].

use std::sync::Arc;

use super::{
    dispatch::{Gateway, Request},
    error::{Doubted, Refused, ToolError, no_credential, refusal},
    meta,
    params::{Params, Rewrite},
    relay::{NoConnection, Outgoing},
};
use crate::{
    catalog::{OpenSkills, Registered, Snapshot},
    config::Intent,
    gate::policy::Decision,
    model::{
        limits::{CONNECT_WAIT, RESTART_WAIT, SCHEMA_HINT_BYTES},
        name::SkillName,
        tool::Effect,
    },
    session::Session,
    upstream::{Link, Phase},
    wire::{
        envelope::json_text,
        era::{Era, INVALID_PARAMS},
        outbox::PushError,
        peer::{Form, Peer},
    },
};

/// A call on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    /// The exposed name that the client gave.
    pub(super) tool: &'a str,
    /// Skills whose tools are open to it.
    pub(super) open: &'a OpenSkills,
    /// The arguments, where they are not those of the request itself.
    pub(super) arguments: Option<&'a str>,
    /// Whether a key came with it that opens nothing.
    pub(super) has_stale_key: bool,
    /// The only effect that the tool may have.
    pub(super) effect: Option<Effect>,
    /// The sentence that says what it is for, where one came with it and anybody wants it.
    pub(super) intent: Option<&'a str>,
}

impl Gateway {
    /// Serves `tools/call`.
    pub(super) fn call(self: &Arc<Self>, request: &Request<'_>) {
        let Some(name) = request.params.text_of("name") else {
            return request.refuse(INVALID_PARAMS, "`name` must be a text");
        };
        request.sent_as.set(Some(meta::sent_as(&name)));
        if meta::NAMES.contains(&&*name) {
            return meta::call(self, request, &name);
        }
        let open = open_to(request, None);
        // Arguments are looked into only where something in them is wanted.
        let is_wanted = request.snapshot.config.intent == Intent::Required || self.audit.get().is_some();
        let own = is_wanted.then(|| Params::read(request.params.raw("arguments"))).flatten();
        let intent = own.and_then(|own| own.text_of("intent")).filter(|text| !text.trim().is_empty());
        let call = Call {
            tool: &name,
            open: &open,
            arguments: None,
            has_stale_key: false,
            effect: None,
            intent: intent.as_deref(),
        };
        if let Err(error) = self.try_call(request, call) {
            self.record_refusal(request, &error);
            request.answer(error.to_result());
        }
    }

    /// Asks the gate and, where it allows, sends the call to its upstream.
    ///
    /// # Errors
    /// What the gate refused, for the model to read; the client is not answered yet.
    pub(super) fn try_call(self: &Arc<Self>, request: &Request<'_>, call: Call<'_>) -> Result<(), ToolError> {
        let tool = self.decide(request, call)?;
        let link = match self.connection(request, tool.upstream_index) {
            Ok(link) => link,
            Err(NoConnection::Gone) => return Err(self.refused(request, call, Decision::Unavailable, None)),
            Err(NoConnection::NoRight(reason)) => return Err(no_credential(call.tool, &tool.upstream, &reason)),
        };
        match link.peer() {
            Some(peer) => self.forward(request, call, tool, &link, &peer),
            None if request.is_last_try() || (link.owner().is_none() && request.has_waited()) => {
                Err(self.refused(request, call, Decision::Unavailable, Some(&link)))
            }
            None => {
                // It is just starting again. When it is there the gate is asked anew: much may have changed.
                let most = if link.owner().is_some() { CONNECT_WAIT } else { RESTART_WAIT };
                self.later(request, async move { drop(link.wait_ready(most).await) });
                Ok(())
            }
        }
    }

    /// Asks the gate; then looks at what the caller must give besides a right.
    fn decide<'a>(&'a self, request: &'a Request<'_>, call: Call<'_>) -> Result<&'a Registered, ToolError> {
        let snapshot = &request.snapshot;
        let position = snapshot.registry.position(call.tool);
        let link = position.and_then(|position| self.link_of(snapshot, position));
        let is_available = link.as_ref().is_some_and(|link| link.is_available());
        let standing = position.and_then(|position| snapshot.standing(position, call.open, is_available));
        let decision = snapshot.policy.decide(&request.session.principal, standing.as_ref());
        let (Decision::Allow, Some(position)) = (decision, position) else {
            return Err(self.refused(request, call, decision, link.as_ref()));
        };
        let tool = &snapshot.registry.tools()[position];
        check_effect(call, tool)?;
        check_intent(call, tool, snapshot.config.intent)?;
        check_arguments(call, tool)?;
        if request.era == Era::Legacy && !snapshot.is_always_open(position) {
            // In a session whose skill is too large for the list, a tool that is called joins it.
            let is_new = request.session.state().ask(&tool.exposed);
            if is_new {
                self.tell(request.session, request.to);
            }
        }
        Ok(tool)
    }

    fn link_of(&self, snapshot: &Snapshot, position: usize) -> Option<Arc<Link>> {
        self.pool.link(snapshot.registry.tools().get(position)?.upstream_index)
    }

    /// Why the tools of those upstreams are not known that never listed any.
    pub(super) fn unknown_servers(&self) -> Vec<String> {
        let is_unknown = |link: &&Arc<Link>| link.offer().0.tools.is_empty();
        self.pool.links().iter().filter(is_unknown).filter_map(|link| down_reason(link)).collect()
    }

    /// The answer to what the gate refused.
    pub(super) fn refused(
        &self,
        request: &Request<'_>,
        call: Call<'_>,
        decision: Decision,
        link: Option<&Arc<Link>>,
    ) -> ToolError {
        let snapshot = &request.snapshot;
        let principal = &request.session.principal;
        let position = snapshot.registry.position(call.tool);
        let openers = position.map(|position| snapshot.openers(position)).unwrap_or_default();
        // A hidden skill is for the user to name, and one that a rule keeps from the caller for nobody.
        let is_shown = |name: &&SkillName| {
            let skill = snapshot.skills.get(*name).filter(|skill| !skill.is_hidden);
            skill.is_some_and(|skill| snapshot.policy.is_skill_visible(principal, skill.name.as_str()))
        };
        let opener = openers.iter().find(is_shown);
        let is_unknown = matches!(decision, Decision::NotFound | Decision::Forbidden);
        let close = if is_unknown {
            snapshot.registry.close_to(call.tool, |position, _| snapshot.is_shown(position, principal))
        } else {
            Vec::new()
        };
        let refused = Refused {
            tool: call.tool,
            skill: opener.map(SkillName::as_str),
            close,
            is_concealing: snapshot.config.is_concealing,
            reason: link.and_then(|link| down_reason(link)),
            doubt: position.and_then(|position| Doubted::of(&snapshot.registry.tools()[position])),
            unknown_servers: if is_unknown { self.unknown_servers() } else { Vec::new() },
            has_stale_key: call.has_stale_key,
        };
        refusal(decision, &refused)
    }

    fn forward(
        self: &Arc<Self>,
        request: &Request<'_>,
        call: Call<'_>,
        tool: &Registered,
        link: &Link,
        peer: &Peer,
    ) -> Result<(), ToolError> {
        let name = json_text(tool.tool.name.as_str());
        let mut shows_use_of = self.experience.waiting(&request.session.principal, call.open);
        if !shows_use_of.is_empty() {
            let position = request.snapshot.registry.position(call.tool);
            let openers = position.map(|position| request.snapshot.openers(position)).unwrap_or_default();
            shows_use_of.retain(|skill| openers.contains(skill));
        }
        let mut outgoing = Outgoing {
            upstream: tool.upstream_index,
            method: "tools/call",
            label: tool.exposed.to_shared(),
            form: if request.era == Era::Modern { Form::ModernToolResult } else { Form::ToolResult },
            rewrite: Rewrite {
                names: Some(("name", &name)),
                arguments: call.arguments,
                strips_intent: request.snapshot.config.intent != Intent::Off && !tool.has_own_intent(),
                ..Rewrite::default()
            },
            renamed: None,
            expected: None,
            shows_use_of,
            is_repeatable: tool.tool.repeatable,
            watcher: None,
        };
        if !self.record_call(request, call, tool, &mut outgoing) {
            let message = format!("`{}` cannot be called now: the call could not be recorded.", call.tool);
            return Err(ToolError::new(
                "unavailable",
                call.tool,
                message,
                "Tell the user that the audit cannot be written.",
            ));
        }
        self.send(request, link, peer, outgoing).map_err(|error| {
            let mut refused = self.refused(request, call, Decision::Unavailable, None);
            if error == PushError::Full {
                refused.message =
                    format!("`{}` cannot be called now: its server does not keep up with its calls.", call.tool);
            }
            refused
        })
    }
}

/// Why an upstream takes no calls; `None` while it does.
pub(super) fn down_reason(link: &Link) -> Option<String> {
    match link.phase() {
        Phase::Ready => None,
        Phase::Starting => Some(format!("its server `{}` is starting", link.name())),
        Phase::Waiting(reason) | Phase::Unusable(reason) => {
            Some(format!("its server `{}` is down: {reason}", link.name()))
        }
    }
}

/// What the endpoint, a legacy session and a key open. A modern list never depends on earlier calls, and neither does what
/// a plain name may do.
pub(super) fn open_to(request: &Request<'_>, of_key: Option<&SkillName>) -> Arc<OpenSkills> {
    open_in(request.session, &request.snapshot, request.era, of_key)
}

/// As [`open_to`], where there is no request.
pub(super) fn open_in(session: &Session, snapshot: &Snapshot, era: Era, of_key: Option<&SkillName>) -> Arc<OpenSkills> {
    let mut open = match era {
        Era::Legacy => session.state().open_skills(),
        Era::Modern => Arc::default(),
    };
    for skill in session.own_skill.iter().chain(of_key) {
        Arc::make_mut(&mut open).push(skill.clone());
    }
    snapshot.still_open(open, &session.principal)
}

/// `tool_call_read` calls nothing that may change something.
fn check_effect(call: Call<'_>, tool: &Registered) -> Result<(), ToolError> {
    if call.effect.is_none_or(|effect| effect == tool.tool.effect) {
        return Ok(());
    }
    let message = format!("`{}` is not marked as read-only by its server.", call.tool);
    Err(ToolError::new("not_read_only", call.tool, message, "Call it with tool_call_write."))
}

fn check_intent(call: Call<'_>, tool: &Registered, intent: Intent) -> Result<(), ToolError> {
    if intent != Intent::Required || tool.has_own_intent() || call.intent.is_some() {
        return Ok(());
    }
    let hint = "Call it again with `intent`: one sentence for the user that says what the call is for.";
    Err(ToolError::new("invalid_arguments", call.tool, "`intent` is missing.", hint))
}

/// The client of a dispatched call has not seen the tool's schema, so it is shown where the arguments do not fit.
fn check_arguments(call: Call<'_>, tool: &Registered) -> Result<(), ToolError> {
    let Some(arguments) = call.arguments else { return Ok(()) };
    let wrong = tool.wrong_arguments(arguments);
    if wrong.is_empty() {
        return Ok(());
    }
    let message = format!("The arguments of `{}` do not fit: {}.", call.tool, wrong.join("; "));
    let mut error = ToolError::new("invalid_arguments", call.tool, message, "");
    let schema = &*tool.tool.input_schema;
    error.hint = if schema.len() <= SCHEMA_HINT_BYTES {
        format!("Call it again with arguments that fit this schema: {schema}")
    } else {
        format!("Get its schema with tool_describe, then call it again: {{\"names\": [\"{}\"]}}", call.tool)
    };
    Err(error)
}
