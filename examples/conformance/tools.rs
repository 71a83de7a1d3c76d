//! What the tools do, but for those that need several rounds or go on as tasks.

use std::{fmt::Display, time::Duration};

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
        ProgressNotificationParam, ResourceContents, ServerNotification, ServerRequest,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use tokio::{sync::watch, time::sleep};

use crate::{
    rounds::{self, Round},
    server::{Server, is_modern},
    tasks,
};

/// A red dot as PNG, in base64.
pub(crate) const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";
/// A millisecond of silence as WAV, in base64.
const SOUND: &str = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";
/// Between two notifications, so that a client gets them one by one.
const STEP: Duration = Duration::from_millis(50);

/// Calls a tool.
pub(crate) async fn call(
    server: &Server,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let content = match request.name.as_ref() {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => ContentBlock::image(PICTURE, "image/png"),
        "test_audio_content" => ContentBlock::audio(SOUND, "audio/wav"),
        "test_embedded_resource" => {
            resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
        }
        "test_multiple_content_types" => {
            let json = resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#);
            let picture = ContentBlock::image(PICTURE, "image/png");
            return Ok(CallToolResult::success(vec![text("Multiple content types test:"), picture, json]).into());
        }
        "test_error_handling" => {
            let error = text("This tool intentionally returns an error for testing");
            return Ok(CallToolResult::error(vec![error]).into());
        }
        "test_tool_with_logging" | "test_logging_tool" => log(server, context).await?,
        "test_tool_with_progress" => report_progress(context).await?,
        "test_reconnection" => {
            // Long enough for a proxy to see that its client may want to come back for the answer.
            sleep(6 * STEP).await;
            text("Still connected.")
        }
        "test_sampling" => sample(request, context).await?,
        "test_elicitation" | "test_elicitation_sep1034_defaults" | "test_elicitation_sep1330_enums" => {
            elicit(request, context).await?
        }
        "test_missing_capability" => {
            let mut needed = ClientCapabilities::default();
            needed.sampling = Some(Default::default());
            if context.client_capabilities().is_none_or(|declared| declared.sampling.is_none()) {
                return Err(ErrorData::missing_required_client_capability(needed));
            }
            text("The client samples.")
        }
        "test_trigger_tool_change" => {
            toggle(&server.shared.extra_tool);
            if !is_modern(context) {
                context.peer.notify_tool_list_changed().await.map_err(internal)?;
            }
            text("The list of tools is another one.")
        }
        "test_trigger_prompt_change" => {
            toggle(&server.shared.extra_prompt);
            if !is_modern(context) {
                context.peer.notify_prompt_list_changed().await.map_err(internal)?;
            }
            text("The list of prompts is another one.")
        }
        "test_header_param" | "json_schema_2020_12_tool" | "test_changing_tool" => {
            text(format!("Called with {}.", json!(request.arguments)))
        }
        "greet" => text(format!("Hello, {}!", argument(request, "name").as_str().unwrap_or("you"))),
        name if tasks::NAMES.contains(&name) => return tasks::call(server, request, context).await,
        _ => return rounds::call(&Round::of_call(&server.shared.states, request), context),
    };
    Ok(CallToolResult::success(vec![content]).into())
}

/// An argument of a call, or null.
pub(crate) fn argument(request: &CallToolRequestParams, name: &str) -> Value {
    request.arguments.as_ref().and_then(|arguments| arguments.get(name)).cloned().unwrap_or_default()
}

pub(crate) fn text(text: impl Into<String>) -> ContentBlock {
    ContentBlock::text(text)
}

pub(crate) fn resource(uri: &str, mime_type: &str, text: &str) -> ContentBlock {
    ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(mime_type))
}

pub(crate) fn internal(error: impl Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn toggle(is_there: &watch::Sender<bool>) {
    is_there.send_modify(|is_there| *is_there = !*is_there);
}

async fn log(server: &Server, context: &RequestContext<RoleServer>) -> Result<ContentBlock, ErrorData> {
    for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        if server.logs_info(context) {
            let message = json!({"method": "notifications/message", "params": {"level": "info", "data": line}});
            let message: ServerNotification = serde_json::from_value(message).map_err(internal)?;
            context.peer.send_notification(message).await.map_err(internal)?;
        }
        sleep(STEP).await;
    }
    Ok(text("Logged, if that was wanted."))
}

async fn report_progress(context: &RequestContext<RoleServer>) -> Result<ContentBlock, ErrorData> {
    for progress in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, progress).with_total(100.0);
            context.peer.notify_progress(progress).await.map_err(internal)?;
        }
        sleep(STEP).await;
    }
    Ok(text("Done, step by step."))
}

async fn sample(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<ContentBlock, ErrorData> {
    let prompt = json!({"role": "user", "content": {"type": "text", "text": argument(request, "prompt")}});
    let params = json!({"messages": [prompt], "maxTokens": 100});
    let answer = ask(context, json!({"method": "sampling/createMessage", "params": params})).await?;
    Ok(text(format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or_default())))
}

async fn elicit(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<ContentBlock, ErrorData> {
    let message = argument(request, "message");
    let params = match request.name.as_ref() {
        "test_elicitation_sep1034_defaults" => with_defaults(),
        "test_elicitation_sep1330_enums" => with_choices(),
        _ => json!({
            "message": message.as_str().unwrap_or("Who are you?"),
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "username": {"type": "string", "description": "User's response"},
                    "email": {"type": "string", "description": "User's email address"},
                },
                "required": ["username", "email"],
            },
        }),
    };
    let answer = ask(context, json!({"method": "elicitation/create", "params": params})).await?;
    let action = answer["action"].as_str().unwrap_or_default();
    Ok(text(format!("Elicitation completed: action={action}, content={}", answer["content"])))
}

/// A form with a default in every kind of field.
fn with_defaults() -> Value {
    json!({
        "message": "Is that right?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": true},
            },
        },
    })
}

/// A form with every kind of choice.
fn with_choices() -> Value {
    let titled = json!([{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}]);
    json!({
        "message": "Which ones?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
                "titledSingle": {"type": "string", "oneOf": titled},
                "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
                "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2"]}},
                "titledMulti": {"type": "array", "items": {"anyOf": titled}},
            },
        },
    })
}

/// Asks the client in the middle of a call, as servers do before 2026-07-28.
async fn ask(context: &RequestContext<RoleServer>, request: Value) -> Result<Value, ErrorData> {
    let request: ServerRequest = serde_json::from_value(request).map_err(internal)?;
    let answer = context.peer.send_request(request).await.map_err(internal)?;
    serde_json::to_value(answer).map_err(internal)
}
