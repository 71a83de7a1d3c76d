//! A client over Streamable HTTP. What comes back on any stream goes to one channel, as if it were a line of stdout; tests
//! of the transport itself make single requests and read single streams.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock,
        mpsc::{Sender, channel},
    },
};

use gatekey::wire::headers::encode;
use reqwest::{RequestBuilder, Response, header::HeaderMap};
use serde_json::Value;
use tokio::{runtime::Handle, task::AbortHandle};

use super::proxy::PATIENCE;

/// `_meta` key whose presence makes a request modern.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// The runtime of all clients, in a thread of its own.
fn runtime() -> &'static Handle {
    static RUNTIME: OnceLock<Handle> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
            sender.send(runtime.handle().clone()).expect("it is waited for");
            runtime.block_on(std::future::pending::<()>());
        });
        receiver.recv().expect("the runtime starts")
    })
}

/// Waits for what a client does.
pub(crate) fn wait<T>(what: &str, doing: impl Future<Output = T>) -> T {
    let within = async { tokio::time::timeout(PATIENCE, doing).await };
    runtime().block_on(within).unwrap_or_else(|_elapsed| panic!("not within {PATIENCE:?}: {what}"))
}

/// Connections of its own.
pub(crate) fn connections() -> reqwest::Client {
    // Fails where another client came first, which chose the same.
    rustls::crypto::ring::default_provider().install_default().ok();
    let builder = reqwest::Client::builder().tls_certs_only(std::iter::empty()).no_proxy();
    builder.build().expect("a client needs nothing")
}

/// A POST with the headers that every client sends.
pub(crate) fn post(http: &reqwest::Client, url: &str, body: &str) -> RequestBuilder {
    let request = http.post(url).header("content-type", "application/json");
    request.header("accept", "application/json, text/event-stream").body(body.to_owned())
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Reply {
    /// Sends a request and reads all that comes.
    pub(crate) fn to(request: RequestBuilder) -> Self {
        wait("a response", async {
            let response = request.send().await.expect("gatekey answers");
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            Self { status, headers, body: response.text().await.expect("the body arrives") }
        })
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

/// One event of a stream; a comment has neither id nor data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

/// A stream of events that is read one by one. Dropped, its connection closes.
pub(crate) struct Stream {
    response: Response,
    rest: Vec<u8>,
}

impl Stream {
    /// Sends a request that is answered with a stream.
    pub(crate) fn open(request: RequestBuilder) -> Self {
        let response = wait("a stream", request.send()).expect("gatekey answers");
        assert_eq!(response.status(), 200, "{:?}", response.headers());
        Self::of(response)
    }

    fn of(response: Response) -> Self {
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, rest: Vec::new() }
    }

    /// The next event, comments included; `None` at the end of the stream or of the connection.
    pub(crate) async fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = memchr::memmem::find(&self.rest, b"\n\n") {
                let block: Vec<u8> = self.rest.drain(..end + 2).collect();
                return Some(event(&String::from_utf8(block).expect("streams are UTF-8")));
            }
            let chunk = self.response.chunk().await.ok().flatten()?;
            self.rest.extend_from_slice(&chunk);
        }
    }

    /// The next message with its event's id; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<(Option<String>, Value)> {
        wait("an event", async {
            loop {
                let Event { id, data } = self.next_event().await?;
                if !data.is_empty() {
                    return Some((id, serde_json::from_str(&data).expect("an event is a message")));
                }
            }
        })
    }

    /// The next event that has an id.
    pub(crate) fn next_id(&mut self) -> Option<Event> {
        wait("an event with an id", async {
            loop {
                let event = self.next_event().await?;
                if event.id.is_some() {
                    return Some(event);
                }
            }
        })
    }
}

fn event(block: &str) -> Event {
    let mut event = Event::default();
    for line in block.lines() {
        match line.split_once(':') {
            Some(("data", data)) => event.data.push_str(data.strip_prefix(' ').unwrap_or(data)),
            Some(("id", id)) => event.id = Some(id.trim_start().to_owned()),
            _ => {}
        }
    }
    event
}

/// One client of one endpoint.
pub(crate) struct HttpClient {
    pub(crate) url: String,
    pub(crate) http: reqwest::Client,
    /// The legacy session, once it is open.
    pub(crate) session: Option<String>,
    /// What it shows to be let in.
    pub(crate) bearer: Option<String>,
    /// Headers that it sends besides.
    pub(crate) brings: Vec<(&'static str, String)>,
    lines: Sender<String>,
    /// Where what is no message is noted, for whoever reads a failed test.
    notes: Arc<Mutex<String>>,
    /// Requests by id as JSON, and last the stream of what nobody asked for.
    running: HashMap<String, AbortHandle>,
}

impl HttpClient {
    pub(crate) fn new(url: String, lines: Sender<String>, notes: Arc<Mutex<String>>) -> Self {
        Self {
            url,
            http: connections(),
            session: None,
            bearer: None,
            brings: Vec::new(),
            lines,
            notes,
            running: HashMap::new(),
        }
    }

    /// Posts a message. Requests go on in the background; others are accepted when this returns.
    pub(crate) fn send(&mut self, line: &str) {
        self.send_as(line, &serde_json::from_str(line).unwrap_or_default());
    }

    /// The same for a message that no tree can hold; `message` has what headers repeat.
    pub(crate) fn send_as(&mut self, line: &str, message: &Value) {
        let request = self.headed(post(&self.http, &self.url, line), message);
        let (lines, notes) = (self.lines.clone(), Arc::clone(&self.notes));
        if message["method"] == "initialize" {
            let response = wait("a session", request.send()).expect("gatekey answers");
            let session = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok());
            self.session = session.map(str::to_owned);
            wait("the greeting", deliver(response, lines, notes));
            self.listen();
        } else if message.get("method").is_some() && message.get("id").is_some() {
            let task = runtime().spawn(async move {
                match request.send().await {
                    Ok(response) => deliver(response, lines, notes).await,
                    Err(error) => note(&notes, &format!("{error:?}")),
                }
            });
            self.running.insert(message["id"].to_string(), task.abort_handle());
        } else {
            let response = wait("a message is accepted", request.send()).expect("gatekey answers");
            wait("a message is accepted", deliver(response, lines, notes));
        }
    }

    /// The headers that repeat parts of a message, or name its session.
    pub(crate) fn headed(&self, mut request: RequestBuilder, message: &Value) -> RequestBuilder {
        if let Some(bearer) = &self.bearer {
            request = request.bearer_auth(bearer);
        }
        for (name, value) in &self.brings {
            request = request.header(*name, value);
        }
        let params = &message["params"];
        if let Some(version) = params["_meta"][META_VERSION].as_str() {
            let method = message["method"].as_str().unwrap_or_default();
            let request = request.header("mcp-protocol-version", version).header("mcp-method", method);
            let name = match method {
                "tools/call" | "prompts/get" => &params["name"],
                "resources/read" => &params["uri"],
                "tasks/get" | "tasks/update" | "tasks/cancel" => &params["taskId"],
                _ => return request,
            };
            return request.header("mcp-name", &*encode(name.as_str().unwrap_or_default()));
        }
        match &self.session {
            Some(session) => request.header("mcp-protocol-version", "2025-11-25").header("mcp-session-id", session),
            None => request,
        }
    }

    /// A GET of the session's stream.
    pub(crate) fn get(&self) -> RequestBuilder {
        self.headed(self.http.get(&self.url).header("accept", "text/event-stream"), &Value::Null)
    }

    /// Takes what nobody asked for; returns when the stream is open.
    fn listen(&mut self) {
        let mut stream = Stream::open(self.get());
        wait("the stream is open", stream.next_event());
        let lines = self.lines.clone();
        let task = runtime().spawn(async move { take(stream, &lines).await });
        self.running.insert("GET".into(), task.abort_handle());
    }

    /// Closes the connection that waits for the answer to a request.
    pub(crate) fn abort(&mut self, id: &str) {
        self.running.remove(id).expect("there is such a request").abort();
    }

    /// Goes away: a session is ended, and nothing is waited for any more.
    pub(crate) fn close(&mut self) {
        if self.session.is_some() {
            Reply::to(self.headed(self.http.delete(&self.url), &Value::Null));
        }
        self.drop_connections();
    }

    fn drop_connections(&mut self) {
        for (_, task) in self.running.drain() {
            task.abort();
        }
    }
}

impl Drop for HttpClient {
    fn drop(&mut self) {
        self.drop_connections();
    }
}

/// Hands on every message of a response.
async fn deliver(response: Response, lines: Sender<String>, notes: Arc<Mutex<String>>) {
    let status = response.status();
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match kind {
        "text/event-stream" => take(Stream::of(response), &lines).await,
        "application/json" => match response.text().await {
            // Nobody may be left to take it.
            Ok(body) => drop(lines.send(body)),
            Err(error) => note(&notes, &format!("{error:?}")),
        },
        _ if status.is_success() => {}
        _ => note(&notes, &format!("HTTP {status}: {}", response.text().await.unwrap_or_default())),
    }
}

async fn take(mut stream: Stream, lines: &Sender<String>) {
    while let Some(event) = stream.next_event().await {
        if !event.data.is_empty() && lines.send(event.data).is_err() {
            return;
        }
    }
}

fn note(notes: &Mutex<String>, text: &str) {
    notes.lock().unwrap().push_str(&format!("[client] {text}\n"));
}
