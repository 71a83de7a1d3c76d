//! The client that measures: starts what it is told, opens sessions as an agent would, loads the skills, and then calls.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    Result,
    http::Http,
    lanes::{Client, Lanes},
    message::Template,
    pipe::Pipe,
    process::Process,
    sample::{Limit, Outcome, Sample},
    task::{Front, Plan, Task, Work},
    usage::usage_of,
};

/// Until the first answers, and for everything.
const START_PATIENCE: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(120);
/// Between looks at something that is starting.
const PAUSE: Duration = Duration::from_millis(2);
const MOST_CALLS: u64 = 100_000;
/// Calls that are not counted: connections are opened, pages touched, code warmed.
const WARM_CALLS: u64 = 2_000;
const WARM_MOST: Duration = Duration::from_millis(500);

/// Does the task; the program that it starts has ended then.
pub(crate) async fn run(task: &Task) -> Outcome {
    let began = Instant::now();
    let process = match Process::start(&task.command, &task.env, task.front == Front::Stdio) {
        Ok(process) => process,
        Err(error) => return Outcome::NotMeasured(error.to_string()),
    };
    let _limit = process.limit(PATIENCE);
    let explained = |error| match process.last_words() {
        words if words.is_empty() => format!("{error}"),
        words => format!("{error} ({words})"),
    };
    let (client, tools) = match ready(task, &process).await {
        Ok(ready) => ready,
        Err(error) => return Outcome::NotMeasured(explained(error)),
    };
    let measured = match task.work {
        Work::Start => started(client, &tools, began, process.id()).await,
        _ => measure(task, client, &tools, process.id()).await,
    };
    measured.map_or_else(|error| Outcome::Failed(explained(error)), Outcome::Measured)
}

/// Waits until a session is open and shows every tool to call; returns their whole names.
async fn ready(task: &Task, process: &Process) -> Result<(Client, Vec<String>)> {
    let deadline = Instant::now() + START_PATIENCE;
    let mut client = match &task.front {
        Front::Stdio => Client::Pipe(Pipe::new(process)?),
        Front::Http => Client::Http(Http::new(&process.url(START_PATIENCE)?)?),
        Front::HttpAt(url) => Client::Http(Http::new(url)?),
    };
    let is_over = || process.has_ended() || Instant::now() > deadline;
    // Some listen before they can serve.
    while let Err(error) = client.open(&task.skills).await {
        if is_over() || task.front == Front::Stdio {
            return Err(error);
        }
        sleep(PAUSE).await;
    }
    loop {
        match client.tools(&task.tools).await {
            Ok(tools) => return Ok((client, tools)),
            Err(error) if is_over() => return Err(error),
            Err(_) => sleep(PAUSE).await,
        }
    }
}

async fn started(mut client: Client, tools: &[String], began: Instant, id: u32) -> Result<Sample> {
    for tool in tools {
        client.ask(&Template::call(tool, &json!({"text": "are you there"}))).await?;
    }
    Ok(Sample::once(began.elapsed(), usage_of(id)))
}

async fn measure(task: &Task, client: Client, tools: &[String], id: u32) -> Result<Sample> {
    let most = Duration::from_secs_f64(task.seconds);
    let plan = Plan::new(task, tools);
    let quiet = Plan { slow: None, ..plan.clone() };
    let mut lanes = Lanes::open(client, task).await?;
    lanes.keep(&quiet, Limit::new(WARM_CALLS, WARM_MOST)).await?;
    let quiet_us = match plan.slow {
        Some(_) => Some(lanes.keep(&quiet, Limit::new(MOST_CALLS, most)).await?.p50_and_p99()),
        None => None,
    };
    let before = usage_of(id);
    let began = Instant::now();
    let tally = lanes.keep(&plan, Limit::new(MOST_CALLS, most)).await?;
    let (took, after) = (began.elapsed(), usage_of(id));
    Ok(Sample { quiet_us, ..Sample::new(tally, took, before, after) })
}
