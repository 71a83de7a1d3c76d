//! `gatekey` as a process, spoken to in raw lines. Its stdin and stdout are pipes, as a client's are.

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

/// How long an answer may take unless a test says otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A running proxy with one client.
pub(crate) struct Proxy {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Lines that were read and not asked for yet.
    held: VecDeque<Value>,
    /// Every line of stdout, as it came.
    pub(crate) raw: Vec<String>,
    stderr: Arc<Mutex<String>>,
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
        let mut command = gatekey();
        command.arg("proxy").arg("--config").arg(file).arg("--log").arg("debug");
        command.current_dir(file.parent().expect("a config has a folder"));
        Self::spawn(command)
    }

    /// Starts a prepared command.
    pub(crate) fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("gatekey starts");
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
            }
        });
        let mut pipe = child.stderr.take().expect("stderr is a pipe");
        let stderr = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&stderr);
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(size @ 1..) = pipe.read(&mut chunk) {
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..size]));
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, held: VecDeque::new(), raw: Vec::new(), stderr, last_id: 0 }
    }

    /// What it wrote to stderr so far.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line as it is.
    pub(crate) fn send_raw(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).expect("gatekey reads");
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.send_raw(&message.to_string());
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
        let message = serde_json::from_str(line).unwrap_or_else(|error| panic!("stdout has `{line}`: {error}"));
        self.held.push_back(message);
    }

    /// Waits for the answer to a request and returns its line as it came, for bodies that no tree can hold. `id` is JSON.
    pub(crate) fn raw_answer(&mut self, id: &str, most: Duration) -> String {
        let deadline = Instant::now() + most;
        while let Some(line) = self.next_line(deadline) {
            let outside: Outside<'_> =
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("stdout has `{line}`: {error}"));
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
        self.send_raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        let line = self.raw_answer(&id, PATIENCE);
        raw_member(&line, "result").to_owned()
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
        let client = json!({"name": "raw lines", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        let result = self.result("initialize", params);
        self.send(json!({"method": "notifications/initialized"}));
        result
    }

    /// The tools of the list, by name, in the list's order.
    pub(crate) fn list(&mut self) -> Vec<Value> {
        self.result("tools/list", json!({}))["tools"].as_array().cloned().unwrap_or_default()
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
        result["structuredContent"].clone()
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

    /// Closes its stdin, as a client that goes away does.
    pub(crate) fn close(&mut self) {
        self.stdin = None;
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill -{name}");
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self, most: Duration) -> ExitStatus {
        let mut status = None;
        super::wait_until("gatekey ends", most, || {
            status = self.child.try_wait().expect("gatekey is our child");
            status.is_some()
        });
        status.expect("it has ended")
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

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stdin = None;
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

/// The program, with an environment that no setting of the user's reaches.
pub(crate) fn gatekey() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatekey"));
    command.env_remove("GATEKEY_CONFIG").env_remove("GATEKEY_LOG").env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

/// Runs a command of the program to its end; returns exit code, stdout and stderr.
pub(crate) fn run<I: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = I>) -> (i32, String, String) {
    let output = gatekey().args(arguments).output().expect("gatekey starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// What every modern request carries.
pub(crate) fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw lines", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
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
