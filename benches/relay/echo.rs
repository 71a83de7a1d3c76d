//! The server behind every proxy: one tool that echoes, N − 1 more to be listed, over stdio or HTTP.

use std::{
    io::{self, BufRead as _, Write as _},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, Response, StatusCode, body::Incoming};
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use tokio::runtime::Runtime;

use crate::{
    Result,
    message::{Message, PROTOCOL},
    serve,
};

/// What results are filled with; its escapes cost those who decode it.
const FILLING: &str = "The quick brown fox jumps over the lazy dog, \\\"then\\\" some more.\\n";

/// How it is started.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Serve HTTP on a port that is said on stderr, instead of stdio
    #[arg(long)]
    http: bool,
    /// How many tools to list
    #[arg(long, default_value_t = 10)]
    tools: usize,
    /// Put before every tool's name
    #[arg(long, default_value = "")]
    prefix: String,
    /// How long to do nothing first, as interpreters do
    #[arg(long, default_value_t = 0)]
    start_ms: u64,
}

/// Arguments of its tool.
#[derive(Deserialize)]
struct Arguments<'a> {
    /// Comes back as it is.
    #[serde(borrow)]
    text: &'a RawValue,
    /// How much comes back besides.
    #[serde(default)]
    bytes: usize,
    /// How long to wait before the answer.
    #[serde(default)]
    wait_ms: u64,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    arguments: Arguments<'a>,
}

/// An answer, and how long to hold it back.
type Held = (Vec<u8>, Duration);

pub(crate) fn run(options: &Options, runtime: &Runtime) -> Result<()> {
    let tools: Vec<String> = (0..options.tools).map(|number| tool(&options.prefix, number)).collect();
    let list: Arc<str> = format!(r#"{{"tools":[{}]}}"#, tools.join(",")).into();
    wait(Duration::from_millis(options.start_ms));
    if options.http {
        return runtime.block_on(serve::serve(|| {
            let list = Arc::clone(&list);
            move |request| http(Arc::clone(&list), request)
        }));
    }
    stdio(&list)
}

fn stdio(list: &str) -> Result<()> {
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some((mut answer, hold)) = answer(list, &line) {
            answer.push(b'\n');
            if hold.is_zero() {
                io::stdout().write_all(&answer)?;
            } else {
                thread::spawn(move || {
                    wait(hold);
                    io::stdout().write_all(&answer)
                });
            }
        }
        line.clear();
    }
    Ok(())
}

async fn http(list: Arc<str>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>> {
    static SESSIONS: AtomicU64 = AtomicU64::new(1);
    match *request.method() {
        Method::POST => {}
        Method::DELETE => return serve::empty(StatusCode::OK),
        _ => return serve::empty(StatusCode::METHOD_NOT_ALLOWED),
    }
    let body = request.into_body().collect().await?.to_bytes();
    let Some((answer, hold)) = answer(&list, &body) else { return serve::empty(StatusCode::ACCEPTED) };
    if !hold.is_zero() {
        tokio::time::sleep(hold).await;
    }
    let begins = Message::parse(&body).is_some_and(|message| message.method.as_deref() == Some("initialize"));
    serve::json(answer, begins.then(|| format!("echo-{}", SESSIONS.fetch_add(1, Ordering::Relaxed))))
}

/// `None` for what asks nothing.
fn answer(list: &str, line: &[u8]) -> Option<Held> {
    let message = Message::parse(line)?;
    let id = message.id?.get();
    let params = message.params.map_or("{}", |params| params.get());
    let mut hold = Duration::ZERO;
    let body = match message.method?.as_ref() {
        "initialize" => {
            let server = json!({"name": "echo", "version": "1"});
            let capabilities = json!({"tools": {}});
            let result = json!({"protocolVersion": PROTOCOL, "capabilities": capabilities, "serverInfo": server});
            format!(r#""result":{result}"#)
        }
        "ping" => r#""result":{}"#.to_owned(),
        "tools/list" => format!(r#""result":{list}"#),
        "tools/call" => {
            let Arguments { text, bytes, wait_ms } = serde_json::from_str::<CallParams>(params).ok()?.arguments;
            hold = Duration::from_millis(wait_ms);
            let filling = FILLING.repeat(bytes.div_ceil(FILLING.len()));
            let content = format!(r#"{{"type":"text","text":{text}}},{{"type":"text","text":"{filling}"}}"#);
            format!(r#""result":{{"content":[{content}],"isError":false}}"#)
        }
        method => format!(r#""error":{{"code":-32601,"message":"no method {method}"}}"#),
    };
    Some((format!(r#"{{"jsonrpc":"2.0","id":{id},{body}}}"#).into_bytes(), hold))
}

/// A definition of about the size that real ones have. Names without a second word keep a server's tools in one skill.
fn tool(prefix: &str, number: usize) -> String {
    if number == 0 {
        let properties =
            json!({"text": {"type": "string"}, "bytes": {"type": "integer"}, "wait_ms": {"type": "integer"}});
        let schema = json!({"type": "object", "properties": properties});
        return json!({"name": format!("{prefix}echo"), "description": "Echoes.", "inputSchema": schema}).to_string();
    }
    let properties = json!({
        "workspace": {"type": "string", "description": "Identifier of the workspace that holds the records."},
        "filter": {"type": "object", "description": "Conditions that every returned record meets.", "properties": {
            "status": {"type": "string", "enum": ["open", "closed", "draft", "archived"]},
            "owner": {"type": "string"}, "updated_after": {"type": "string", "format": "date-time"}}},
        "limit": {"type": "integer", "minimum": 1, "maximum": 500, "default": 50},
        "cursor": {"type": "string", "description": "Where the previous page ended."},
        "labels": {"type": "array", "items": {"type": "string"}, "description": "Labels that every record carries."},
    });
    json!({
        "name": format!("{prefix}tool{number}"),
        "description": format!("Finds records of kind {number} in the workspace and returns them with identifiers, \
            owners and times; use the filter to narrow the result and the cursor to page through it."),
        "inputSchema": {"type": "object", "properties": properties, "required": ["workspace"]},
        "annotations": {"readOnlyHint": number.is_multiple_of(2)},
    })
    .to_string()
}

#[expect(clippy::disallowed_methods, reason = "a slow server is what is played here")]
fn wait(time: Duration) {
    thread::sleep(time);
}
