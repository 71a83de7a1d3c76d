//! Tools that go on after their call has been answered: the tasks extension.

use std::time::Duration;

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, CreateTaskResult, InputRequest,
    },
    service::RequestContext,
    task_manager::{TaskContext, TaskExit, TaskOptions},
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    rounds::{Round, form},
    server::Server,
    tools::{argument, internal, text},
};

/// The tools that become tasks.
pub(crate) const NAMES: &[&str] =
    &["slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input", "test_tool_with_task"];
/// Long enough for a client to see the task at work.
const MOMENT: Duration = Duration::from_millis(200);

/// Calls one of them.
pub(crate) async fn call(
    server: &Server,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let knows_tasks = context.client_capabilities().is_some_and(|declared| declared.supports_tasks());
    let round = Round::of_call(&server.shared.states, request);
    match request.name.as_ref() {
        "slow_compute" if !knows_tasks => {
            sleep(duration(request)).await;
            return Ok(computed().into());
        }
        _ if !knows_tasks => {
            let needed = ClientCapabilities::builder().enable_tasks().build();
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        "test_tool_with_task" => {
            if let Some(asked) = round.ask(json!({"user_name": form("Your name?", "name")}))? {
                return Ok(asked.into());
            }
        }
        _ => {}
    }
    let (name, seconds, summary) = (request.name.clone().into_owned(), duration(request), round.summary());
    let task = server.shared.tasks.spawn(TaskOptions::new().with_poll_interval_ms(100), |task| {
        Box::pin(async move {
            match name.as_str() {
                "slow_compute" => tokio::select! {
                    () = task.cancelled() => Err(TaskExit::Cancelled),
                    () = sleep(seconds) => Ok(computed()),
                },
                "failing_job" => {
                    sleep(MOMENT).await;
                    Ok(CallToolResult::error(vec![text("The job has failed.")]))
                }
                "protocol_error_job" => {
                    sleep(MOMENT).await;
                    Err(internal("the job came to grief").into())
                }
                "confirm_delete" => {
                    let answer = input(&task, "confirm", "Delete it?", "confirm").await?;
                    Ok(CallToolResult::success(vec![text(format!("Confirmed: {answer}"))]))
                }
                "multi_input" => {
                    let name = input(&task, "name", "Your name?", "name");
                    let (name, confirm) = tokio::try_join!(name, input(&task, "confirm", "Go on?", "confirm"))?;
                    Ok(CallToolResult::success(vec![text(format!("Answers: {name}, {confirm}"))]))
                }
                _ => Ok(CallToolResult::success(vec![text(summary)])),
            }
        })
    });
    Ok(CreateTaskResult::new(task).into())
}

fn duration(request: &CallToolRequestParams) -> Duration {
    let seconds = argument(request, "seconds").as_f64().unwrap_or_default();
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn computed() -> CallToolResult {
    CallToolResult::success(vec![text("Computed.")])
}

/// Asks the client in the middle of a task.
async fn input(task: &TaskContext, key: &str, message: &str, field: &str) -> Result<Value, TaskExit> {
    let request: InputRequest = serde_json::from_value(form(message, field)).map_err(internal)?;
    task.request_input(key, request).await
}
