//! What the audit is told: every refusal, every call with its end, every skill that was read, every session. Nothing where
//! there is no audit.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    call::Call,
    dispatch::{Gateway, Request},
    error::ToolError,
    relay::Outgoing,
};
use crate::{
    audit::Audit,
    catalog::{CatalogSkill, Registered},
    model::{principal::Principal, tool::cut},
    session::Session,
    upstream::Failure,
    wire::{
        envelope::{Envelope, as_text},
        peer::Watcher,
        splice::{member, members},
    },
};

/// Characters of what a client wrote, other than arguments.
const SAID: usize = 400;

/// A call on its way; its end is recorded when it is known, or when it is given up.
#[derive(Debug)]
struct Recorded {
    audit: Arc<Audit>,
    call: u64,
    principal: String,
    session: u64,
    has_ended: AtomicBool,
}

impl Recorded {
    fn end(&self, outcome: &str, answer: Option<&[u8]>) {
        if self.has_ended.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut record = json!({"event": "ended", "call": self.call, "principal": self.principal,
            "session": self.session, "outcome": outcome});
        if let Some(answer) = answer {
            record["answer_bytes"] = json!(answer.len());
            record["answer_sha256"] = json!(digest(answer));
        }
        self.audit.record(record);
    }
}

impl Watcher for Recorded {
    fn failed(&self, outcome: &'static str) {
        self.end(outcome, None);
    }

    fn answered(&self, line: &[u8]) {
        let envelope = Envelope::parse(line).ok();
        let result = envelope.as_ref().and_then(|envelope| envelope.result);
        let outcome = match result.and_then(|result| members(result)) {
            None => "error",
            Some(all) if member(&all, "isError").is_some_and(|found| found.value == "true") => "tool_error",
            Some(all)
                if member(&all, "resultType")
                    .and_then(|found| as_text(found.value))
                    .is_some_and(|kind| kind == "input_required") =>
            {
                "input_required"
            }
            Some(_) => "ok",
        };
        // What the upstream said, without the id of this one call.
        let said = result.or(envelope.as_ref().and_then(|envelope| envelope.error)).unwrap_or_default();
        self.end(outcome, Some(said.as_bytes()));
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.end("given_up", None);
    }
}

impl Gateway {
    /// From now on every decision and call is recorded.
    pub fn begin_audit(&self, audit: Audit) {
        // A second one would be a mistake of ours; the first one counts.
        self.audit.set(Arc::new(audit)).ok();
    }

    /// A tool was refused, or a meta-tool said no.
    pub(super) fn record_refusal(&self, request: &Request<'_>, error: &ToolError) {
        let Some(audit) = self.audit.get() else { return };
        let mut record = of_request(request, "refused");
        record["tool"] = json!(cut(&error.tool, SAID));
        record["code"] = json!(error.decided);
        if let Some(skill) = &error.skill {
            record["skill"] = json!(skill);
        }
        audit.record(record);
    }

    /// Something that is no tool was refused.
    pub(super) fn record_denial(&self, request: &Request<'_>, what: &str, code: &str) {
        let Some(audit) = self.audit.get() else { return };
        let mut record = of_request(request, "refused");
        record["what"] = json!(cut(what, SAID));
        record["code"] = json!(code);
        audit.record(record);
    }

    /// A request of a known caller was turned away before anybody looked at what it asks for.
    pub fn record_turned_away(&self, principal: &Principal, code: &str) {
        let Some(audit) = self.audit.get() else { return };
        audit.record(json!({"event": "refused", "principal": principal.name, "code": code}));
    }

    /// A skill, or a file of it, was given to a client.
    pub(super) fn record_reading(&self, request: &Request<'_>, skill: &CatalogSkill, path: Option<&str>) {
        let Some(audit) = self.audit.get() else { return };
        let mut record = of_request(request, if path.is_some() { "reference" } else { "skill" });
        record["skill"] = json!(skill.name.as_str());
        record["trust"] = json!(skill.trust.as_str());
        record["digest"] = json!(skill.on_disk.as_ref().map(|disk| disk.digest.clone()));
        if let Some(path) = path {
            record["path"] = json!(cut(path, SAID));
        }
        audit.record(record);
    }

    /// A session began or ended.
    pub(super) fn record_session(&self, session: &Session, event: &str) {
        let Some(audit) = self.audit.get() else { return };
        audit.record(json!({"event": event, "principal": session.principal.name, "session": session.id}));
    }

    /// A tool's call is about to be made; `false` where it must not be, as that cannot be recorded.
    pub(super) fn record_call(
        &self,
        request: &Request<'_>,
        call: Call<'_>,
        tool: &Registered,
        outgoing: &mut Outgoing<'_>,
    ) -> bool {
        let Some(audit) = self.audit.get() else { return true };
        let mut record = of_request(request, "call");
        record["upstream"] = json!(tool.upstream.as_str());
        record["tool"] = json!(tool.exposed.as_str());
        record["original"] = json!(tool.tool.name.as_str());
        record["definition_sha256"] = json!(tool.tool.digest);
        let position = request.snapshot.registry.position(tool.exposed.as_str());
        let openers = position.map(|position| request.snapshot.openers(position)).unwrap_or_default();
        record["skill"] = json!(openers.iter().find(|skill| call.open.contains(skill)).map(|skill| skill.as_str()));
        let arguments = call.arguments.or_else(|| request.params.raw("arguments")).unwrap_or("{}");
        record["arguments_bytes"] = json!(arguments.len());
        let (redacted, has_secrets) = audit.redaction.apply(arguments);
        // By the digest of a short secret it could be guessed.
        let shown = if has_secrets { redacted.to_string() } else { arguments.to_owned() };
        record["arguments_sha256"] = json!(digest(shown.as_bytes()));
        if audit.has_arguments {
            record["arguments"] = redacted;
        }
        if let Some(intent) = call.intent {
            record["intent"] = json!(cut(intent, SAID));
        }
        self.begin(audit, request, record, outgoing)
    }

    /// Another request is about to be passed on; `false` where it must not be.
    pub(super) fn record_request(&self, request: &Request<'_>, upstream: &str, outgoing: &mut Outgoing<'_>) -> bool {
        let Some(audit) = self.audit.get() else { return true };
        let mut record = of_request(request, "request");
        record["upstream"] = json!(upstream);
        record["method"] = json!(cut(outgoing.method, SAID));
        record["what"] = json!(cut(&outgoing.label, SAID));
        self.begin(audit, request, record, outgoing)
    }

    fn begin(&self, audit: &Arc<Audit>, request: &Request<'_>, mut record: Value, outgoing: &mut Outgoing<'_>) -> bool {
        let call = audit.next_call();
        record["call"] = json!(call);
        if !audit.record(record) {
            return false;
        }
        let Principal { name, .. } = &request.session.principal;
        outgoing.watcher = Some(Box::new(Recorded {
            audit: Arc::clone(audit),
            call,
            principal: name.clone(),
            session: request.session.id,
            has_ended: AtomicBool::new(false),
        }));
        true
    }
}

/// The end of a call that its upstream did not answer.
pub(super) fn outcome_of(failure: &Failure) -> &'static str {
    match failure {
        Failure::TimedOut => "timed_out",
        Failure::Ended(_) | Failure::Unreadable | Failure::TooLong { .. } | Failure::Http(_) => "failed",
        Failure::NoRight(_) => "credential_missing",
    }
}

fn of_request(request: &Request<'_>, event: &str) -> Value {
    json!({"event": event, "principal": request.session.principal.name, "session": request.session.id,
        "request": cut(&request.id, SAID)})
}

fn digest(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}
