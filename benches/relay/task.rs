//! What the driver tells `load` to measure, and what one phase of it asks for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    Result,
    message::{Template, start_of},
};

/// How long a slow call takes.
const SLOW_MS: u64 = 200;

/// What to measure.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) command: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) front: Front,
    /// Loaded before the first call, in every session.
    pub(crate) skills: Vec<String>,
    /// How the names of the tools to call end, one of each upstream.
    pub(crate) tools: Vec<String>,
    pub(crate) work: Work,
    /// Calls in flight: in one session over stdio, in one session each over HTTP.
    pub(crate) lanes: usize,
    /// How long results are at least.
    pub(crate) bytes: usize,
    pub(crate) seconds: f64,
}

/// How the client reaches what it measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Front {
    Stdio,
    /// At the URL that the program says on stderr.
    Http,
    HttpAt(String),
}

/// What is done over and over.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Work {
    Call,
    List,
    /// Calls of the first upstream while the last one holds up others.
    CallBesideSlow,
    /// A session: opened, listed, one call, closed.
    Session,
    /// Once: from the start of the program to the answer to a call of every upstream.
    Start,
}

/// What one phase asks for.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) request: Template,
    pub(crate) lanes: usize,
    pub(crate) slow: Option<Template>,
    pub(crate) least_bytes: usize,
    /// Each time in a session of its own, which loads these.
    pub(crate) session: Option<Vec<String>>,
}

impl Plan {
    pub(crate) fn new(task: &Task, tools: &[String]) -> Self {
        let (first, last) = (tools.first().map_or("", String::as_str), tools.last().map_or("", String::as_str));
        let request = match task.work {
            Work::List => Template::list(None),
            _ => Template::call(first, &json!({"text": "hello from the client", "bytes": task.bytes})),
        };
        let slow = Template::call(last, &json!({"text": "hello", "wait_ms": SLOW_MS}));
        Self {
            request,
            lanes: task.lanes,
            slow: (task.work == Work::CallBesideSlow).then_some(slow),
            least_bytes: task.bytes,
            session: (task.work == Work::Session).then(|| task.skills.clone()),
        }
    }

    /// Whether an answer is what was asked for.
    pub(crate) fn judge(&self, answer: &[u8], is_error: bool) -> Result<()> {
        if is_error || answer.len() < self.least_bytes {
            return Err(format!("{} bytes: {}", answer.len(), start_of(answer)).into());
        }
        Ok(())
    }
}
