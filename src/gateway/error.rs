//! Every text that tells a client what went wrong, and the only mapping from our errors to the protocol's.

use serde_json::{Value, json};

use crate::{
    catalog::{Doubt, Registered},
    gate::policy::Decision,
    model::{name::UpstreamName, tool::cut},
    upstream::Failure,
    wire::{
        envelope::{error_line, result_line},
        era::{Era, INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND},
        peer::{Form, Relay},
    },
};

/// Characters of an upstream's own words in a text of ours.
const REASON_CHARS: usize = 400;

/// An error that the model should read: a tool result with `isError`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolError {
    /// Stable; one of the six outcomes of the gate, or `invalid_arguments`, `unknown_skill`, `unknown_reference`, `untrusted`,
    /// `credential_missing`.
    pub(super) code: &'static str,
    /// The same without concealment, for the audit.
    pub(super) decided: &'static str,
    /// The tool that was asked for.
    pub(super) tool: String,
    /// The skill to load.
    pub(super) skill: Option<String>,
    /// What happened, one sentence.
    pub(super) message: String,
    /// What to do next, one sentence.
    pub(super) hint: String,
    /// Further members of `structuredContent`.
    pub(super) more: Vec<(&'static str, Value)>,
}

impl ToolError {
    /// An error without a skill.
    pub(super) fn new(code: &'static str, tool: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let (message, hint) = (message.into(), hint.into());
        Self { code, decided: code, tool: tool.to_owned(), skill: None, message, hint, more: Vec::new() }
    }

    /// The tool result, as JSON.
    pub(super) fn to_result(&self) -> Value {
        let mut structured = json!({"code": self.code, "tool": self.tool, "message": self.message, "hint": self.hint});
        if let Some(skill) = &self.skill {
            structured["skill"] = json!(skill);
        }
        for (name, value) in &self.more {
            structured[name] = value.clone();
        }
        let text = format!("{} {}", self.message, self.hint);
        json!({"content": [{"type": "text", "text": text.trim()}], "structuredContent": structured, "isError": true})
    }
}

/// What the answer to a refused call needs to know.
#[derive(Debug, Default)]
pub(super) struct Refused<'a> {
    /// As the client wrote it.
    pub(super) tool: &'a str,
    /// The most specific skill that opens it.
    pub(super) skill: Option<&'a str>,
    /// Names that the client may have meant.
    pub(super) close: Vec<&'a str>,
    /// Whether forbidden tools are answered as unknown ones.
    pub(super) is_concealing: bool,
    /// Why its upstream is down.
    pub(super) reason: Option<String>,
    /// Why it is withheld.
    pub(super) doubt: Option<Doubted>,
    /// Why the tools of some servers are not known.
    pub(super) unknown_servers: Vec<String>,
    /// Whether a key came with the call that opens nothing any more.
    pub(super) has_stale_key: bool,
}

/// Why a tool is withheld, and what the user can do.
#[derive(Debug, Clone, Default)]
pub(super) struct Doubted {
    pub(super) reason: String,
    pub(super) remedy: String,
}

impl Doubted {
    pub(super) fn of(tool: &Registered) -> Option<Self> {
        let (upstream, name) = (&tool.upstream, tool.tool.name.as_str());
        let accept = || format!("`gatekey diff` shows it, `gatekey lock --accept {upstream}:{name}` accepts it");
        let (reason, remedy) = match tool.doubt.as_ref()? {
            Doubt::Changed => ("its definition has changed since it was accepted".to_owned(), accept()),
            Doubt::New => ("it is new and was not accepted".to_owned(), accept()),
            Doubt::Imitates(other) => (
                format!("its name could be taken for `{other}`"),
                format!("a `prefix` for `{upstream}` in the config gives its tools other names"),
            ),
        };
        Some(Self { reason, remedy })
    }
}

/// The answer to a call that the gate refused.
pub(super) fn refusal(decision: Decision, refused: &Refused<'_>) -> ToolError {
    let tool = refused.tool;
    match decision {
        Decision::Forbidden if !refused.is_concealing => {
            let message = format!("You have no right to use `{tool}`.");
            ToolError::new("forbidden", tool, message, "Do without it, and tell the user that a right is missing.")
        }
        Decision::NotFound | Decision::Forbidden | Decision::Allow => {
            let hint = match refused.close.as_slice() {
                [] => "Use only the names that you were given.".to_owned(),
                close => format!("Did you mean `{}`?", close.join("`, `")),
            };
            let mut message = format!("There is no tool `{}`.", cut(tool, 100));
            if !refused.unknown_servers.is_empty() {
                let servers = cut(&refused.unknown_servers.join("; "), REASON_CHARS);
                message.push_str(&format!(" Not all servers have said what they offer: {servers}."));
            }
            let decided = if decision == Decision::Forbidden { "forbidden" } else { "not_found" };
            ToolError { decided, ..ToolError::new("not_found", tool, message, hint) }
        }
        Decision::Quarantined => {
            let doubt = refused.doubt.clone().unwrap_or_default();
            let hint = format!("Do without it, and tell the user: {}.", doubt.remedy);
            ToolError::new("quarantined", tool, format!("`{tool}` is withheld: {}.", doubt.reason), hint)
        }
        Decision::Inactive => inactive(refused),
        Decision::Unavailable => {
            let reason = refused.reason.as_deref().unwrap_or("its server is not running");
            let message = format!("`{tool}` cannot be called now: {}.", cut(reason, REASON_CHARS));
            ToolError::new("unavailable", tool, message, "Try again later, or go on without it.")
        }
    }
}

/// The answer to whoever names a skill that a rule keeps from them.
pub(super) fn forbidden_skill(tool: &str, skill: &str) -> ToolError {
    let message = format!("You have no right to use the skill `{}`.", cut(skill, 100));
    ToolError::new("forbidden", tool, message, "Do without it, and tell the user that a right is missing.")
}

/// Code of an answer to whom an upstream would not know.
pub(super) const NO_CREDENTIAL: &str = "credential_missing";

/// The answer to a call for which the caller has nothing by which its upstream would know them.
pub(super) fn no_credential(tool: &str, upstream: &UpstreamName, reason: &str) -> ToolError {
    let message = format!("The server `{upstream}` wants to know who is asking: {}.", cut(reason, REASON_CHARS));
    ToolError::new(NO_CREDENTIAL, tool, message, "Do without it, and tell the user what is missing.")
}

fn inactive(refused: &Refused<'_>) -> ToolError {
    let tool = refused.tool;
    let message = if refused.has_stale_key {
        format!("The key does not open `{tool}`: it is for another skill, or the skill has changed since.")
    } else {
        format!("`{tool}` is closed.")
    };
    let hint = match refused.skill {
        Some(skill) => {
            format!("Call skill_load with name \"{skill}\" first, then call the tool with the key it returns.")
        }
        None => "No skill opens it; go on without it.".to_owned(),
    };
    ToolError { skill: refused.skill.map(str::to_owned), ..ToolError::new("inactive", tool, message, hint) }
}

/// What the answer to a refused request about something that is no tool needs to know.
#[derive(Debug)]
pub(super) struct Denied<'a> {
    /// Name, URI or method, as the client wrote it.
    pub(super) what: &'a str,
    /// Skills that open tools of its upstream.
    pub(super) skills: Vec<&'a str>,
    /// Why its upstream is down.
    pub(super) reason: Option<String>,
}

impl Denied<'_> {
    /// Code, message and data of the error. What must look as if it were not there is answered as if it were not.
    pub(super) fn error(&self, decision: Decision, era: Era) -> (i64, String, Value) {
        let what = cut(self.what, 200);
        match decision {
            Decision::Forbidden => {
                (INVALID_PARAMS, format!("you have no right to use `{what}`"), json!({"code": "forbidden"}))
            }
            Decision::Inactive => {
                let skills = self.skills.join("`, `");
                let hint = if skills.is_empty() { String::new() } else { format!("; skill_load opens it: `{skills}`") };
                let data = json!({"code": "inactive", "skills": self.skills});
                (INVALID_PARAMS, format!("`{what}` is closed{hint}"), data)
            }
            Decision::Unavailable => {
                let reason = self.reason.as_deref().unwrap_or("its server is not running");
                let reason = cut(reason, REASON_CHARS);
                (INTERNAL_ERROR, format!("`{what}` cannot be had now: {reason}"), json!({"code": "unavailable"}))
            }
            Decision::NotFound | Decision::Quarantined | Decision::Allow => {
                let code = if era == Era::Modern { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
                (code, "resource not found".into(), json!({"uri": what}))
            }
        }
    }
}

/// Answers a relayed call that its upstream did not answer.
pub(super) fn answer_failure(upstream: &UpstreamName, relay: &Relay, failure: &Failure) {
    let (message, hint) = match failure {
        Failure::Ended(reason) => (
            format!("The server `{upstream}` ended during the call: {}.", cut(reason, REASON_CHARS)),
            "It is started again. The call may have had an effect: check before you repeat it.",
        ),
        Failure::TimedOut => (
            format!("The server `{upstream}` did not answer in time; the call was given up."),
            "The call may have had an effect: check before you repeat it.",
        ),
        Failure::Unreadable => (
            format!("The server `{upstream}` sent an answer that is no valid message."),
            "The call may have had an effect: check before you repeat it.",
        ),
        Failure::TooLong { size_bytes } => (
            format!("The server `{upstream}` sent an answer of {size_bytes} bytes, more than a message may have."),
            "Ask for less at once.",
        ),
        Failure::Http(reason) => (
            format!("The call to the server `{upstream}` failed: {}.", cut(reason, REASON_CHARS)),
            "The call may have had an effect: check before you repeat it.",
        ),
        Failure::NoRight(reason) => {
            let error = no_credential(&relay.label, upstream, reason);
            return answer_with(relay, upstream, error);
        }
    };
    answer_with(relay, upstream, ToolError::new("unavailable", &relay.label, message, hint));
}

fn answer_with(relay: &Relay, upstream: &UpstreamName, error: ToolError) {
    let error = ToolError { more: vec![("upstream", json!(upstream.as_str()))], ..error };
    let mut result = error.to_result();
    match relay.form {
        Form::Error => {
            let data = result["structuredContent"].to_string();
            relay.to.answer(error_line(&relay.client_id, INTERNAL_ERROR, &error.message, Some(&data)));
            return;
        }
        Form::ToolResult => {}
        Form::ModernToolResult => result["resultType"] = json!("complete"),
    }
    relay.to.answer(result_line(&relay.client_id, &result.to_string()));
}
