//! The few changes that an answer needs on its way from an upstream to a client. Everything else passes as it came.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::{dispatch::Gateway, inputs::Unfinished};
use crate::{
    model::name::{SkillName, UpstreamName},
    session::Session,
    wire::{
        envelope::{Envelope, as_text, error_line, json_text},
        era::{Era, INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND},
        json::items,
        peer::Finish,
        splice::{Edits, Member, member, members},
    },
};

/// What an answer depends on.
#[derive(Debug)]
pub(super) struct Finishing {
    pub(super) gateway: Arc<Gateway>,
    /// Position of the upstream.
    pub(super) upstream: usize,
    /// How the upstream speaks.
    pub(super) from: Era,
    /// How the client speaks.
    pub(super) to: Era,
    /// Whether a modern answer says how long it may be kept.
    pub(super) is_cached: bool,
    /// Whether the answer may name a task.
    pub(super) may_be_task: bool,
    /// What the client asked for and what the upstream calls it, where that differs.
    pub(super) renamed: Option<(String, String)>,
    /// What the answer must have in it.
    pub(super) expected: Option<Expected>,
    /// Skills whose use a tool's success shows.
    pub(super) shows_use_of: Vec<SkillName>,
    /// Who asks.
    pub(super) session: Arc<Session>,
    /// Whose state an unfinished answer holds, where several principals come by the same way.
    pub(super) seals_for: Option<UpstreamName>,
    /// What is asked anew with a legacy client's input, where a modern upstream wants any.
    pub(super) unfinished: Option<Unfinished>,
}

/// A file of a skill, as its upstream listed it.
#[derive(Debug)]
pub(super) struct Expected {
    /// With its `sha256:`.
    pub(super) digest: String,
    pub(super) size_bytes: u64,
}

impl Expected {
    /// Whether a result holds just these bytes.
    fn fits(&self, all: &[Member<'_>]) -> bool {
        #[derive(serde::Deserialize)]
        struct Content {
            text: Option<String>,
            blob: Option<String>,
        }
        let contents = member(all, "contents").and_then(|found| serde_json::from_str::<Vec<Content>>(found.value).ok());
        let Some([content]) = contents.as_deref() else { return false };
        let bytes = match content {
            Content { text: Some(text), .. } => text.as_bytes().to_vec(),
            Content { blob: Some(blob), .. } => data_encoding::BASE64.decode(blob.as_bytes()).unwrap_or_default(),
            Content { text: None, blob: None } => return false,
        };
        let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(&bytes));
        u64::try_from(bytes.len()) == Ok(self.size_bytes) && self.digest == format!("sha256:{digest}")
    }
}

/// Whether an upstream asks for input instead of answering.
fn wants_input(line: &[u8]) -> bool {
    let is_so = || {
        let envelope = Envelope::parse(line).ok()?;
        let all = members(envelope.result?)?;
        Some(as_text(member(&all, "resultType")?.value)? == "input_required")
    };
    is_so().unwrap_or(false)
}

impl Finishing {
    /// What is to be done, if anything.
    pub(super) fn into_finish(self) -> Option<Finish> {
        let is_needed = self.expected.is_some()
            || self.from != self.to
            || self.may_be_task
            || !self.shows_use_of.is_empty()
            || self.seals_for.is_some()
            || self.renamed.is_some()
            || self.gateway.has_shared_uris();
        is_needed.then(|| Finish(Box::new(move |line| self.apply(line))))
    }

    fn apply(mut self, line: Vec<u8>) -> Option<Vec<u8>> {
        if let Some(unfinished) = self.unfinished.take_if(|_| wants_input(&line)) {
            unfinished.ask(self.gateway, line);
            return None;
        }
        Some(self.changed(&line).unwrap_or(line))
    }

    fn changed(&self, line: &[u8]) -> Option<Vec<u8>> {
        let envelope = Envelope::parse(line).ok()?;
        let text = std::str::from_utf8(line).ok()?;
        let mut edits = Edits::new(text);
        match (envelope.error, envelope.result) {
            (Some(error), _) => self.change_error(error, &mut edits)?,
            (None, Some(result)) => {
                let all = members(result)?;
                if self.expected.as_ref().is_some_and(|expected| !expected.fits(&all)) {
                    let message = "the file is not the one that its server listed: digest or size differ";
                    return Some(error_line(envelope.id?, INTERNAL_ERROR, message, None));
                }
                self.change_result(result, &all, &mut edits);
            }
            (None, None) => return None,
        }
        (!edits.is_empty()).then(|| edits.apply().into_bytes())
    }

    /// The codes for a resource that is not there differ between the eras.
    fn change_error<'a>(&self, error: &'a str, edits: &mut Edits<'a>) -> Option<()> {
        let all = members(error)?;
        let code = member(&all, "code")?.value;
        if self.to == Era::Modern && code == RESOURCE_NOT_FOUND.to_string() {
            edits.replace(code, INVALID_PARAMS.to_string());
        }
        Some(())
    }

    fn change_result<'a>(&self, result: &'a str, all: &[Member<'a>], edits: &mut Edits<'a>) {
        if self.to == Era::Modern && self.from == Era::Legacy {
            let mut add = |key: &str, value: &str| {
                if member(all, key).is_none() {
                    edits.insert(result, key, value);
                }
            };
            add("resultType", r#""complete""#);
            if self.is_cached {
                add("ttlMs", "0");
                add("cacheScope", r#""private""#);
            }
        }
        if self.may_be_task {
            self.note_task(all);
        }
        // Neither a task that has just begun nor a question has content.
        let has_succeeded = || {
            member(all, "content").is_some() && member(all, "isError").is_none_or(|is_error| is_error.value != "true")
        };
        if !self.shows_use_of.is_empty() && has_succeeded() {
            self.gateway.experience.succeeded(&self.session.principal, &self.shows_use_of);
        }
        if let Some(upstream) = &self.seals_for
            && let Some(given) = member(all, "requestState")
            && let Some(state) = as_text(given.value)
        {
            let sealed = self.gateway.secret.seal(&self.session.principal, upstream, &state);
            edits.replace(given.value, json_text(&sealed));
        }
        self.change_uris(all, edits);
    }

    fn note_task(&self, all: &[Member<'_>]) {
        let own = member(all, "taskId").map(|id| id.value);
        // In the older era the task stands in a member of its own.
        let inner = || {
            let task = members(member(all, "task")?.value)?;
            member(&task, "taskId").map(|id| id.value)
        };
        if let Some(id) = own.or_else(inner).and_then(as_text) {
            self.gateway.tasks.add(&id, self.upstream, &self.session.principal);
        }
    }

    /// URIs of what was read, and of resources that content links to or holds.
    fn change_uris<'a>(&self, all: &[Member<'a>], edits: &mut Edits<'a>) {
        if self.renamed.is_none() && !self.gateway.has_shared_uris() {
            return;
        }
        for list in ["contents", "content", "messages", "resources"] {
            for item in member(all, list).and_then(|list| items(list.value)).unwrap_or_default() {
                self.change_item(item, edits);
            }
        }
    }

    fn change_item<'a>(&self, item: &'a str, edits: &mut Edits<'a>) {
        let Some(fields) = members(item) else { return };
        if let Some(uri) = member(&fields, "uri") {
            self.change_uri(uri.value, edits);
        }
        for inner in ["resource", "content"] {
            if let Some(inner) = member(&fields, inner) {
                self.change_item(inner.value, edits);
            }
        }
    }

    fn change_uri<'a>(&self, raw: &'a str, edits: &mut Edits<'a>) {
        let Some(uri) = as_text(raw) else { return };
        let exposed = match &self.renamed {
            Some((exposed, original)) if *original == uri => exposed.clone(),
            _ => self.gateway.expose_uri(self.upstream, &uri),
        };
        if exposed != uri {
            edits.replace(raw, json_text(&exposed));
        }
    }
}
