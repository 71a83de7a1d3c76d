//! A running gatekey with one client, which reaches it in one of several ways and is told of every message as a line.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, VecDeque},
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{ChildStdin, Command, ExitStatus},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

pub(crate) use super::process::{gatekey, run};
use super::{
    http::HttpClient,
    process::{Process, proxy_of},
    ways::Way,
};

/// How long an answer may take unless a test says otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A running proxy with one client.
pub(crate) struct Proxy {
    way: Way,
    process: Arc<Process>,
    stdin: Option<ChildStdin>,
    http: Option<HttpClient>,
    /// Of the modern ways: which key opens a tool, and by which tool of ours it is called.
    keys: HashMap<String, (Value, &'static str)>,
    lines: Receiver<String>,
    /// Lines that were read and not asked for yet.
    held: VecDeque<Value>,
    /// Every message that came, as it came: lines of stdout, bodies, and events of streams.
    pub(crate) raw: Vec<String>,
    last_id: u64,
}

impl Proxy {
    /// Starts `gatekey proxy` with these arguments.
    pub(crate) fn start<I: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = I>) -> Self {
        let mut command = gatekey();
        command.arg("proxy").args(arguments);
        Self::spawn(command)
    }

    /// Starts `gatekey proxy --config FILE` in the file's folder.
    pub(crate) fn with_config(file: &Path) -> Self {
        Self::spawn(proxy_of(file))
    }

    /// The same, reached in this way; a legacy session is opened.
    pub(crate) fn opened(way: Way, file: &Path) -> Self {
        Self::spawn_in(way, proxy_of(file)).greeted()
    }

    /// Starts a prepared command.
    pub(crate) fn spawn(command: Command) -> Self {
        Self::spawn_in(Way::Stdio, command)
    }

    /// Starts a prepared command, reached in this way.
    pub(crate) fn spawn_in(way: Way, mut command: Command) -> Self {
        if way.is_http() {
            command.args(["--http", "127.0.0.1:0"]);
        }
        let (process, stdin, stdout) = Process::spawn(command);
        if way.is_http() {
            let url = process.url(PATIENCE);
            return Self::client_of(Arc::new(process), way, url);
        }
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
            }
        });
        Self::new(Arc::new(process), way, lines, Some(stdin), None)
    }

    /// A further client of the same process, over HTTP, at the same endpoint.
    pub(crate) fn another(&self, way: Way) -> Self {
        self.another_at(way, self.url().to_owned()).greeted()
    }

    /// A further client of the same process, over HTTP; it has not said anything yet.
    pub(crate) fn another_at(&self, way: Way, url: String) -> Self {
        Self::client_of(Arc::clone(&self.process), way, url)
    }

    /// Sends this header from now on.
    pub(crate) fn bringing(mut self, name: &'static str, value: &str) -> Self {
        self.http.as_mut().expect("it is reached over HTTP").brings.push((name, value.to_owned()));
        self
    }

    /// A further client of the same process, over HTTP, with this token.
    pub(crate) fn another_as(&self, way: Way, bearer: &str) -> Self {
        self.another_at(way, self.url().to_owned()).with_bearer(bearer).greeted()
    }

    /// Shows this token from now on.
    pub(crate) fn with_bearer(mut self, bearer: &str) -> Self {
        self.http.as_mut().expect("it is reached over HTTP").bearer = Some(bearer.to_owned());
        self
    }

    fn client_of(process: Arc<Process>, way: Way, url: String) -> Self {
        let (sender, lines) = channel();
        let client = HttpClient::new(url, sender, Arc::clone(process.stderr()));
        Self::new(process, way, lines, None, Some(client))
    }

    fn new(
        process: Arc<Process>,
        way: Way,
        lines: Receiver<String>,
        stdin: Option<ChildStdin>,
        http: Option<HttpClient>,
    ) -> Self {
        let (keys, held, raw) = (HashMap::new(), VecDeque::new(), Vec::new());
        Self { way, process, stdin, http, keys, lines, held, raw, last_id: 0 }
    }

    /// With its legacy session open, where the way has one.
    pub(crate) fn greeted(mut self) -> Self {
        if !self.way.is_modern() {
            self.initialize();
        }
        self
    }

    /// What it wrote to stderr so far.
    pub(crate) fn stderr(&self) -> String {
        self.process.stderr().lock().unwrap().clone()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The client over HTTP.
    pub(crate) fn http(&self) -> &HttpClient {
        self.http.as_ref().expect("it is reached over HTTP")
    }

    /// The endpoint.
    pub(crate) fn url(&self) -> &str {
        &self.http().url
    }

    /// Sends a line as it is.
    pub(crate) fn send_raw(&mut self, line: &str) {
        if let Some(http) = &mut self.http {
            return http.send(line);
        }
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).expect("gatekey reads");
    }

    /// Sends a line that no tree can hold; `message` has what headers over HTTP repeat.
    pub(crate) fn send_as(&mut self, line: &str, message: &Value) {
        match &mut self.http {
            Some(http) => http.send_as(line, message),
            None => self.send_raw(line),
        }
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        if self.way.is_modern() && message.get("id").is_some() && message["method"].is_string() {
            self.modernize(&mut message);
        }
        self.send_raw(&message.to_string());
    }

    /// Makes a legacy request one of the newer era: it says who asks, and what a skill opened is called by its key.
    fn modernize(&self, message: &mut Value) {
        let is_call = message["method"] == "tools/call";
        let params = &mut message["params"];
        let called = params["name"].as_str().and_then(|name| self.keys.get(name));
        if let Some((key, by)) = called.filter(|_| is_call) {
            let arguments = json!({"key": key, "name": params["name"], "arguments": params["arguments"]});
            (params["name"], params["arguments"]) = (json!(by), arguments);
        }
        if params["_meta"].is_null() {
            params["_meta"] = json!({});
        }
        for (key, value) in modern_meta().as_object().into_iter().flatten() {
            if params["_meta"][key].is_null() {
                params["_meta"][key] = value.clone();
            }
        }
    }

    /// Sends a request and returns its id.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        self.send(json!({"id": self.last_id, "method": method, "params": params}));
        self.last_id
    }

    /// Waits for the first message that `is_wanted`; others stay.
    pub(crate) fn wait_for(&mut self, what: &str, most: Duration, is_wanted: impl Fn(&Value) -> bool) -> Value {
        self.find(most, &is_wanted)
            .unwrap_or_else(|| panic!("not within {most:?}: {what}\nheld: {:?}\nstderr: {}", self.held, self.stderr()))
    }

    fn find(&mut self, most: Duration, is_wanted: &impl Fn(&Value) -> bool) -> Option<Value> {
        let deadline = Instant::now() + most;
        loop {
            if let Some(position) = self.held.iter().position(is_wanted) {
                return self.held.remove(position);
            }
            let line = self.next_line(deadline)?;
            self.hold(&line);
        }
    }

    /// The next line of stdout; `None` when there is none in time or no more.
    fn next_line(&mut self, deadline: Instant) -> Option<String> {
        let line = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()?;
        self.raw.push(line.clone());
        Some(line)
    }

    fn hold(&mut self, line: &str) {
        let message = serde_json::from_str(line).unwrap_or_else(|error| panic!("`{line}` came: {error}"));
        self.held.push_back(message);
    }

    /// Waits for the answer to a request and returns its line as it came, for bodies that no tree can hold. `id` is JSON.
    pub(crate) fn raw_answer(&mut self, id: &str, most: Duration) -> String {
        let deadline = Instant::now() + most;
        while let Some(line) = self.next_line(deadline) {
            let outside: Outside<'_> =
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("`{line}` came: {error}"));
            if outside.method.is_none() && outside.id.is_some_and(|found| found.get() == id) {
                return line;
            }
            self.hold(&line);
        }
        panic!("not within {most:?}: the answer to {id}\nstderr: {}", self.stderr());
    }

    /// Sends a request whose params are given as they are to be written, and returns the result as it was written.
    pub(crate) fn raw_result(&mut self, method: &str, params: &str) -> String {
        self.last_id += 1;
        let id = self.last_id.to_string();
        raw_member(&self.raw_line(&id, method, params), "result").to_owned()
    }

    /// The same under an id that is JSON; returns the whole line.
    fn raw_line(&mut self, id: &str, method: &str, params: &str) -> String {
        let params = if self.way.is_modern() { with_meta(params) } else { params.to_owned() };
        self.send_raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        self.raw_answer(id, PATIENCE)
    }

    /// Calls a tool under an id that is JSON, with arguments as they are to be written; returns the result as it was written.
    pub(crate) fn raw_call_as(&mut self, id: &str, tool: &str, arguments: &str) -> String {
        let call = format!(r#""name":{},"arguments":{arguments}"#, json!(tool));
        let params = match self.keys.get(tool) {
            Some((key, by)) => format!(r#"{{"name":"{by}","arguments":{{"key":{key},{call}}}}}"#),
            None => format!("{{{call}}}"),
        };
        raw_member(&self.raw_line(id, "tools/call", &params), "result").to_owned()
    }

    /// The same under the next id.
    pub(crate) fn raw_call(&mut self, tool: &str, arguments: &str) -> String {
        self.last_id += 1;
        self.raw_call_as(&self.last_id.to_string(), tool, arguments)
    }

    /// Waits for the whole answer to a request.
    pub(crate) fn answer_to(&mut self, id: u64) -> Value {
        self.answer_within(id, PATIENCE)
    }

    pub(crate) fn answer_within(&mut self, id: u64, most: Duration) -> Value {
        self.wait_for(&format!("the answer to {id}"), most, |message| {
            message["id"] == id && message.get("method").is_none()
        })
    }

    /// Asks and returns the result.
    pub(crate) fn result(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.answer_to(id);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Opens a legacy session.
    pub(crate) fn initialize(&mut self) -> Value {
        self.initialize_as(&json!({}))
    }

    /// Opens a legacy session of a client with these capabilities.
    pub(crate) fn initialize_as(&mut self, capabilities: &Value) -> Value {
        let client = json!({"name": "raw lines", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client});
        let result = self.result("initialize", params);
        self.send(json!({"method": "notifications/initialized"}));
        result
    }

    /// The tools of the list, by name, in the list's order.
    pub(crate) fn list(&mut self) -> Vec<Value> {
        self.result("tools/list", json!({}))["tools"].as_array().cloned().unwrap_or_default()
    }

    /// The definitions of all opened tools. A legacy client lists them; to a modern one those of these skills are described.
    pub(crate) fn definitions(&mut self, skills: &[&str]) -> Vec<Value> {
        if !self.way.is_modern() {
            let is_ours =
                |tool: &Value| gatekey::gateway::META_TOOLS.contains(&tool["name"].as_str().unwrap_or_default());
            return self.list().into_iter().filter(|tool| !is_ours(tool)).collect();
        }
        let described = skills.iter().flat_map(|skill| {
            let loaded = self.load(skill);
            let opened = names(loaded["tools"].as_array().expect("it opens tools"));
            let found = self.call("tool_describe", json!({"names": opened, "key": loaded["key"]}));
            found["structuredContent"]["tools"].as_array().cloned().unwrap_or_default()
        });
        described.collect()
    }

    /// Asks to be told when the list of tools changes, where a session is not told anyway.
    pub(crate) fn subscribe(&mut self) {
        if self.way.is_modern() {
            self.ask("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
            self.wait_for("the acknowledgement", PATIENCE, |message| {
                message["method"] == "notifications/subscriptions/acknowledged"
            });
        }
    }

    /// Calls a tool in the legacy session and returns the result.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool in the modern, stateless way and returns the result.
    pub(crate) fn modern_call(&mut self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({"name": tool, "arguments": arguments, "_meta": modern_meta()}))
    }

    /// Loads a skill in the legacy session; returns its structured content.
    pub(crate) fn load(&mut self, skill: &str) -> Value {
        let result = self.call("skill_load", json!({"name": skill}));
        assert_ne!(result["isError"], true, "{result}");
        let loaded = result["structuredContent"].clone();
        for tool in loaded["tools"].as_array().into_iter().flatten().filter(|_| self.way.is_modern()) {
            let by = if tool["effect"] == "read" { "tool_call_read" } else { "tool_call_write" };
            let name = tool["name"].as_str().expect("a tool has a name");
            self.keys.insert(name.to_owned(), (loaded["key"].clone(), by));
        }
        loaded
    }

    /// Gives a request up, as clients of each way do; only some can say why.
    pub(crate) fn cancel(&mut self, id: u64, reason: &str) {
        if self.way == Way::ModernHttp {
            return self.http.as_mut().expect("it is reached over HTTP").abort(&id.to_string());
        }
        self.send(json!({"method": "notifications/cancelled", "params": {"requestId": id, "reason": reason}}));
    }

    /// How many such messages wait or come until everything sent before now is answered.
    pub(crate) fn count(&mut self, is_wanted: impl Fn(&Value) -> bool) -> usize {
        let id = self.ask("ping", json!({}));
        self.answer_to(id);
        self.held.iter().filter(|message| is_wanted(message)).count()
    }

    /// Waits for the end of its stdout, as a client whose server has died notices it.
    pub(crate) fn wait_for_end(&mut self, most: Duration) {
        let deadline = Instant::now() + most;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.raw.push(line),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => panic!("its stdout is open after {most:?}"),
            }
        }
    }

    /// Goes away, as clients of each way do.
    pub(crate) fn close(&mut self) {
        self.stdin = None;
        if let Some(http) = &mut self.http {
            http.close();
        }
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self, most: Duration) -> ExitStatus {
        self.process.ended(most)
    }
}

/// What tells one message from another.
#[derive(Deserialize)]
struct Outside<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
}

/// What every modern request carries.
pub(crate) fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw lines", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// The params of a modern request, all else as it was written.
fn with_meta(params: &str) -> String {
    let rest = params.trim_start().strip_prefix('{').expect("params are an object");
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    format!(r#"{{"_meta":{}{comma}{rest}"#, modern_meta())
}

/// A member of a JSON object as it was written.
pub(crate) fn raw_member<'a>(object: &'a str, name: &str) -> &'a str {
    let members: BTreeMap<Cow<'a, str>, &'a RawValue> =
        serde_json::from_str(object).unwrap_or_else(|error| panic!("no object: {error} in {object}"));
    members.get(name).unwrap_or_else(|| panic!("no `{name}` in {object}")).get()
}

/// The text of a tool result.
pub(crate) fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// The names of listed tools.
pub(crate) fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
}

/// The names of listed tools that are not our own.
pub(crate) fn upstream_names(tools: &[Value]) -> Vec<&str> {
    names(tools).into_iter().filter(|name| !gatekey::gateway::META_TOOLS.contains(name)).collect()
}
