//! Sessions of either transport, and calls that go through them at the same time.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    Result,
    http::Http,
    message::{INITIALIZED, Template},
    pipe::Pipe,
    sample::{Limit, Tally},
    task::{Plan, Task, Work},
};

/// Calls that are held up on purpose while others are measured.
pub(crate) const SLOW_AT_ONCE: usize = 8;

/// One session.
pub(crate) enum Client {
    Pipe(Pipe),
    Http(Http),
}

impl Client {
    pub(crate) async fn ask(&mut self, request: &Template) -> Result<Bytes> {
        match self {
            Self::Pipe(pipe) => pipe.ask(request),
            Self::Http(http) => http.ask(request).await,
        }
    }

    pub(crate) async fn open(&mut self, skills: &[String]) -> Result<()> {
        match self {
            Self::Pipe(pipe) => {
                pipe.ask(&Template::initialize())?;
                pipe.tell(INITIALIZED)?;
                for skill in skills {
                    pipe.ask(&load(skill))?;
                }
                Ok(())
            }
            Self::Http(http) => open(http, skills).await,
        }
    }

    /// The tools whose names end as wanted, in that order.
    pub(crate) async fn tools(&mut self, endings: &[String]) -> Result<Vec<String>> {
        let mut names = Vec::new();
        let mut cursor = None;
        loop {
            let page: Value = serde_json::from_slice(&self.ask(&Template::list(cursor.as_deref())).await?)?;
            let tools = page["result"]["tools"].as_array().ok_or("the list has no tools")?;
            names.extend(tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)));
            cursor = page["result"]["nextCursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        let find = |ending: &String| names.iter().find(|name| name.ends_with(ending.as_str())).cloned();
        let missing = |ending: &String| format!("no tool `{ending}` among {}", names.len()).into();
        endings.iter().map(|ending| find(ending).ok_or_else(|| missing(ending))).collect()
    }
}

async fn open(http: &mut Http, skills: &[String]) -> Result<()> {
    http.end().await.ok();
    http.ask(&Template::initialize()).await?;
    http.tell(INITIALIZED).await?;
    for skill in skills {
        http.ask(&load(skill)).await?;
    }
    Ok(())
}

fn load(skill: &str) -> Template {
    Template::call("skill_load", &json!({"name": skill}))
}

/// What calls go through at the same time: one pipe, or as many connections.
pub(crate) enum Lanes {
    Pipe(Pipe),
    Http(Vec<Http>),
}

impl Lanes {
    pub(crate) async fn open(client: Client, task: &Task) -> Result<Self> {
        let first = match client {
            Client::Pipe(pipe) => return Ok(Self::Pipe(pipe)),
            Client::Http(http) => http,
        };
        let mut lanes = vec![first];
        while lanes.len() < task.lanes {
            let mut lane = lanes[0].another();
            if task.work != Work::Session {
                open(&mut lane, &task.skills).await?;
            }
            lanes.push(lane);
        }
        Ok(Self::Http(lanes))
    }

    pub(crate) async fn keep(&mut self, plan: &Plan, limit: Limit) -> Result<Tally> {
        let lanes = match self {
            Self::Pipe(pipe) => return pipe.keep(plan, &limit),
            Self::Http(lanes) => lanes,
        };
        let mut slow = JoinSet::new();
        for number in 0..SLOW_AT_ONCE {
            if let Some(request) = plan.slow.clone() {
                let mut lane = lanes[0].beside(number as u64 + 1);
                slow.spawn(async move { while lane.ask(&request).await.is_ok() {} });
            }
        }
        let (plan, limit) = (Arc::new(plan.clone()), Arc::new(limit));
        let mut running = JoinSet::new();
        for lane in lanes.drain(..) {
            running.spawn(keep_lane(lane, Arc::clone(&plan), Arc::clone(&limit)));
        }
        let mut all = Tally::default();
        while let Some(ended) = running.join_next().await {
            let (lane, tally) = ended?;
            lanes.push(lane);
            all.join(tally);
        }
        Ok(all)
    }
}

async fn keep_lane(mut lane: Http, plan: Arc<Plan>, limit: Arc<Limit>) -> (Http, Tally) {
    let mut tally = Tally::default();
    while limit.take() {
        let began = Instant::now();
        let answer = match &plan.session {
            Some(skills) => whole_session(&mut lane, &plan, skills).await,
            None => lane.ask(&plan.request).await,
        };
        tally.add(began.elapsed(), answer.and_then(|answer| plan.judge(&answer, false)));
    }
    (lane, tally)
}

async fn whole_session(lane: &mut Http, plan: &Plan, skills: &[String]) -> Result<Bytes> {
    open(lane, skills).await?;
    lane.ask(&Template::list(None)).await?;
    let answer = lane.ask(&plan.request).await?;
    lane.end().await?;
    Ok(answer)
}
