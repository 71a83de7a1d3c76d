//! Asking the client from 2026-07-28 on: the answer to a call is what is missing, and the client calls again with it.
//!
//! Owns [`Round`], a call or prompt in whichever round it is. No state is kept here: the client carries it, sealed.

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, GetPromptRequestParams, InputRequests,
        InputRequiredResult, InputResponses, RequestStateCodec, SealOptions,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

use crate::tools::{internal, text};

/// A request in one of its rounds.
pub(crate) struct Round<'a> {
    states: &'a RequestStateCodec,
    /// What is called; a state is good for it alone.
    name: &'a str,
    answers: Option<&'a InputResponses>,
    state: Option<&'a str>,
}

impl<'a> Round<'a> {
    pub(crate) fn of_call(states: &'a RequestStateCodec, request: &'a CallToolRequestParams) -> Self {
        let answers = request.input_responses.as_ref();
        Self { states, name: &request.name, answers, state: request.request_state.as_deref() }
    }

    pub(crate) fn of_prompt(states: &'a RequestStateCodec, request: &'a GetPromptRequestParams) -> Self {
        let answers = request.input_responses.as_ref();
        Self { states, name: &request.name, answers, state: request.request_state.as_deref() }
    }

    /// The result that asks for what is missing; `None` when everything is answered.
    pub(crate) fn ask(&self, questions: Value) -> Result<Option<InputRequiredResult>, ErrorData> {
        self.missing(questions, None)
    }

    /// As [`Self::ask`], but only answers count that come back with the state of this step.
    fn ask_in_step(&self, step: &str, questions: Value) -> Result<Option<InputRequiredResult>, ErrorData> {
        self.missing(questions, Some(step))
    }

    fn missing(&self, questions: Value, step: Option<&str>) -> Result<Option<InputRequiredResult>, ErrorData> {
        let counts = step.is_none() || self.step()?.as_deref() == step;
        // An answer is an object; whether it is a good one, the suite does not ask.
        let is_answered = |key: &str| counts && self.answers.and_then(|all| all.get(key)).is_some_and(Value::is_object);
        let mut missing: InputRequests = serde_json::from_value(questions).map_err(internal)?;
        missing.retain(|key, _| !is_answered(key));
        let options = SealOptions::new().associated_data(self.name.as_bytes());
        let state = step.map(|step| self.states.seal_with(step.as_bytes(), &options));
        Ok((!missing.is_empty()).then(|| InputRequiredResult::new(Some(missing), state)))
    }

    /// The step of which the client brings the state.
    fn step(&self) -> Result<Option<String>, ErrorData> {
        let Some(sealed) = self.state else { return Ok(None) };
        let opened = self.states.open_with(sealed, self.name.as_bytes());
        let step = opened.map_err(|error| ErrorData::invalid_params(format!("requestState: {error}"), None))?;
        Ok(Some(String::from_utf8_lossy(&step).into_owned()))
    }

    /// The answers as a text.
    pub(crate) fn summary(&self) -> String {
        format!("state-ok, answers: {}", json!(self.answers))
    }
}

/// Calls a tool that is done after one or more rounds.
pub(crate) fn call(round: &Round<'_>, context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let asked = match round.name {
        "test_input_required_result_elicitation" => round.ask(json!({"user_name": form("Your name?", "name")})),
        "test_input_required_result_sampling" => {
            round.ask(json!({"capital_question": message("What is the capital of France?")}))
        }
        "test_input_required_result_list_roots" => round.ask(json!({"client_roots": folders()})),
        "test_streaming_elicitation" => round.ask(json!({"confirm": form("Go on?", "confirm")})),
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            round.ask_in_step("confirm", json!({"confirm": form("Go on?", "ok")}))
        }
        "test_input_required_result_multiple_inputs" => {
            let greeting = message("Generate a greeting");
            let name = form("Your name?", "name");
            round.ask_in_step("all", json!({"user_name": name, "greeting": greeting, "client_roots": folders()}))
        }
        "test_input_required_result_multi_round" => {
            let is_past_first = round.step()?.as_deref() == Some("second");
            let first = json!({"step1": form("Step 1: your name?", "name")});
            let asked = if is_past_first { None } else { round.ask_in_step("first", first)? };
            let second = json!({"step2": form("Step 2: your favorite color?", "color")});
            asked.map_or_else(|| round.ask_in_step("second", second), |asked| Ok(Some(asked)))
        }
        "test_input_required_result_capabilities" => {
            let declared = context.client_capabilities().unwrap_or_default();
            let mut questions = json!({});
            if declared.elicitation.is_some() {
                questions["user_name"] = form("Your name?", "name");
            }
            if declared.sampling.is_some() {
                questions["greeting"] = message("Generate a greeting");
            }
            round.ask(questions)
        }
        name => return Err(ErrorData::invalid_params(format!("unknown tool `{name}`"), None)),
    };
    Ok(asked?.map_or_else(|| CallToolResult::success(vec![text(round.summary())]).into(), CallToolResponse::from))
}

/// A question to the user with one field.
pub(crate) fn form(message: &str, field: &str) -> Value {
    let kind = if matches!(field, "ok" | "confirm") { "boolean" } else { "string" };
    let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    json!({"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}})
}

/// A question to the client's model.
fn message(question: &str) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": question}});
    json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}})
}

/// A question for the client's folders.
fn folders() -> Value {
    json!({"method": "roots/list", "params": {}})
}
