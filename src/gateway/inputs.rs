//! A modern upstream answers that it needs input, and the client is of the older era, where servers ask: each request for
//! input becomes a question to the client, and the call is made anew with what it said.

use std::sync::Arc;

use super::{
    dispatch::{Gateway, Tries},
    upward::can,
};
use crate::{
    model::limits::{CALL_TOTAL, INPUT_ROUNDS},
    session::Session,
    wire::{
        envelope::{Envelope, as_text, error_line, id_key},
        era::INTERNAL_ERROR,
        outbox::Outbox,
        peer::Reply,
        splice::{Edits, member, members},
    },
};

/// A request that may have to be made anew.
#[derive(Debug)]
pub(super) struct Unfinished {
    pub(super) session: Arc<Session>,
    pub(super) to: Arc<Outbox>,
    /// As the client sent it, with what it was asked before.
    pub(super) line: Vec<u8>,
    /// How often input was asked for already.
    pub(super) n_rounds: usize,
}

impl Unfinished {
    /// Asks the client for what `answer` wants, and goes on in a task of the session.
    pub(super) fn ask(self, gateway: Arc<Gateway>, answer: Vec<u8>) {
        let Some(id) = Envelope::parse(&self.line).ok().and_then(|envelope| envelope.id.map(id_key)) else { return };
        let session = Arc::clone(&self.session);
        session.state().begin_wait(&id);
        session.spawn(async move {
            let asked = self.asked(&answer).await;
            if !self.session.state().end_wait(&id) {
                // The client has cancelled the request.
                return;
            }
            match asked {
                Ok(line) => {
                    if let Ok(envelope) = Envelope::parse(&line) {
                        gateway.requested(
                            &self.session,
                            &self.to,
                            &line,
                            &envelope,
                            Tries { n_waits: 0, n_rounds: self.n_rounds + 1 },
                        );
                    }
                }
                Err(message) => self.to.answer(error_line(&id, INTERNAL_ERROR, &message, None)),
            }
        });
    }

    /// The request with the client's input.
    async fn asked(&self, answer: &[u8]) -> Result<Vec<u8>, String> {
        if self.n_rounds >= INPUT_ROUNDS {
            return Err(format!("the server asked for input {INPUT_ROUNDS} times"));
        }
        let broken = || "the server asks for input in a way that cannot be understood".to_owned();
        let envelope = Envelope::parse(answer).map_err(|_error| broken())?;
        let result = envelope.result.and_then(|result| members(result)).ok_or_else(broken)?;
        let questions = member(&result, "inputRequests").map_or("{}", |found| found.value);
        let mut responses = Vec::new();
        for question in members(questions).ok_or_else(broken)? {
            let response = self.ask_client(question.value).await?;
            responses.push(format!("{}:{}", question.raw_key, response));
        }
        let state = member(&result, "requestState").map(|state| state.value);
        self.with_input(&format!("{{{}}}", responses.join(",")), state).ok_or_else(broken)
    }

    async fn ask_client(&self, question: &str) -> Result<Box<str>, String> {
        let all = members(question).unwrap_or_default();
        let method = member(&all, "method").and_then(|method| as_text(method.value)).unwrap_or_default();
        if !can(&self.session, &method) {
            return Err(format!("the server asks for `{method}`, which the client cannot do"));
        }
        let params = member(&all, "params").map_or("{}", |params| params.value);
        match self.session.client.call_over(&self.to, &method, params, CALL_TOTAL).await {
            Ok(Reply::Result(result)) => Ok(result),
            Ok(Reply::Error(error)) => Err(format!("the client refused `{method}`: {error}")),
            Err(error) => Err(format!("the client did not answer `{method}`: {error}")),
        }
    }

    /// The line with the answers, in place of those of a round before.
    fn with_input(&self, responses: &str, state: Option<&str>) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(&self.line).ok()?;
        let envelope = Envelope::parse(&self.line).ok()?;
        let params = envelope.params?;
        let all = members(params)?;
        let mut edits = Edits::new(params);
        edits.remove(&all, |key| ["inputResponses", "requestState"].contains(&key));
        let without = edits.apply();
        let mut edits = Edits::new(&without);
        edits.insert(&without, "inputResponses", responses);
        if let Some(state) = state {
            edits.insert(&without, "requestState", state);
        }
        let mut line = Edits::new(text);
        line.replace(params, edits.apply());
        Some(line.apply().into_bytes())
    }
}
