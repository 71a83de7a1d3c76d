//! The cases of `tests/cases`: their configs with full paths, their journals in a temporary folder.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    proxy::{PATIENCE, Proxy},
    root,
    running::Running,
    ways::Way,
};

/// One case, ready to run.
pub(crate) struct Case {
    /// The case's own folder.
    pub(crate) folder: PathBuf,
    /// Where its config, journals and the like are.
    pub(crate) scratch: TempDir,
    /// `mcpServers`, with full paths.
    pub(crate) servers: serde_json::Map<String, Value>,
    /// Its servers over HTTP.
    running: Vec<Running>,
}

impl Case {
    /// Reads the case whose folder starts with `number`.
    pub(crate) fn new(number: &str) -> Self {
        let all = std::fs::read_dir(root().join("tests/cases")).expect("the cases are there");
        let mut folders = all.flatten().map(|entry| entry.path());
        let is_it = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(number));
        let folder = folders.find(is_it).expect("there is such a case");
        let scratch = tempfile::tempdir().expect("there is room");
        let mut case = Self { folder, scratch, servers: serde_json::Map::new(), running: Vec::new() };
        if let Ok(text) = std::fs::read_to_string(case.folder.join("upstreams.json"))
            && let Ok(Value::Object(mut file)) = serde_json::from_str(&text)
            && let Some(Value::Object(servers)) = file.remove("mcpServers")
        {
            case.servers = servers.into_iter().map(|(name, server)| (name, case.with_full_paths(server))).collect();
        }
        case
    }

    /// The server of this folder over stdio, as the upstream of its name.
    pub(crate) fn of_server(name: &str) -> Self {
        let mut case = Self::new(name);
        let args = json!(["server.py", "--journal", format!("journal-{name}.jsonl")]);
        let server = case.with_full_paths(json!({"command": "python3", "args": args}));
        case.servers.insert(name.to_owned(), server);
        case
    }

    /// The talking server over stdio as each of these upstreams; all but the first have a prefix.
    pub(crate) fn talks(names: &[&str]) -> Self {
        let mut case = Self::new("talks");
        for name in names {
            let args = json!(["server.py", "--name", name, "--journal", format!("journal-{name}.jsonl")]);
            let prefix = if *name == names[0] { String::new() } else { format!("{name}_") };
            let server = case.with_full_paths(json!({"command": "python3", "args": args, "prefix": prefix}));
            case.servers.insert((*name).to_owned(), server);
        }
        case
    }

    /// Lets every server speak as the client of this way does: over the same transport, in the same era.
    pub(crate) fn all_the_way(mut self, way: Way) -> Self {
        let names: Vec<String> = self.servers.keys().cloned().collect();
        for name in names {
            if way.is_modern() {
                self.add_args(&name, &["--era", "modern"]);
            }
            if way.is_http() {
                let running = self.over_http(&name);
                self.running.push(running);
            }
        }
        self
    }

    /// Turns an upstream into one over HTTP, which runs as long as what is returned. Its server knows `--http`.
    pub(crate) fn over_http(&mut self, name: &str) -> Running {
        let server = self.servers.get_mut(name).expect("there is such an upstream");
        let mut command = Command::new("python3");
        command.args(server["args"].as_array().into_iter().flatten().filter_map(Value::as_str)).arg("--http");
        let mut running = Running::start(command);
        let port = running.rest_of_line("listening ", 3 * PATIENCE);
        let mut remote = json!({"url": format!("http://127.0.0.1:{port}/mcp")});
        if let Some(prefix) = server.get("prefix") {
            remote["prefix"] = prefix.clone();
        }
        *server = remote;
        running
    }

    /// Takes the servers of another file as they are.
    pub(crate) fn of_file(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).expect("the file is there");
        let mut parsed: Value = serde_json::from_str(&text).expect("the file is JSON");
        let Value::Object(servers) = parsed["mcpServers"].take() else { panic!("the file has mcpServers") };
        let scratch = tempfile::tempdir().expect("there is room");
        Self { folder: root().into(), scratch, servers, running: Vec::new() }
    }

    fn with_full_paths(&self, mut server: Value) -> Value {
        let mut arguments: Vec<String> =
            server["args"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        for index in 0..arguments.len() {
            let is_path = index > 0 && ["--journal", "--pids"].contains(&arguments[index - 1].as_str());
            if is_path {
                arguments[index] = self.path(&arguments[index]).to_string_lossy().into_owned();
            } else if arguments[index] == "server.py" {
                arguments[index] = self.folder.join("server.py").to_string_lossy().into_owned();
            }
        }
        if server.get("args").is_some() {
            server["args"] = json!(arguments);
        }
        server
    }

    /// A file of the scratch folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Adds arguments to a server.
    pub(crate) fn add_args(&mut self, server: &str, arguments: &[&str]) {
        let list = self.servers[server]["args"].as_array_mut().expect("the server has arguments");
        list.extend(arguments.iter().map(|argument| json!(argument)));
    }

    /// Writes the servers as a client's file.
    pub(crate) fn clients_config(&self) -> PathBuf {
        self.write("upstreams.json", &json!({"mcpServers": self.servers}).to_string())
    }

    /// Writes a `gatekey.toml` with the servers and these lines at its top.
    pub(crate) fn own_config(&self, top: &str) -> PathBuf {
        let mut text = format!("version = 1\n{top}\n");
        for (name, server) in &self.servers {
            text.push_str(&format!("[upstreams.{}]\n", json!(name)));
            for (member, value) in server.as_object().into_iter().flatten() {
                let value = match value.as_object() {
                    Some(table) => {
                        let members: Vec<String> =
                            table.iter().map(|(key, value)| format!("{} = {value}", json!(key))).collect();
                        format!("{{ {} }}", members.join(", "))
                    }
                    None => value.to_string(),
                };
                text.push_str(&format!("{member} = {value}\n"));
            }
        }
        self.write("gatekey.toml", &text)
    }

    /// Writes a file into the scratch folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.path(name);
        std::fs::create_dir_all(file.parent().expect("a file has a folder")).expect("there is room");
        std::fs::write(&file, text).expect("there is room");
        file
    }

    /// Starts the proxy with the case's servers as a client's file has them, and opens a legacy session.
    pub(crate) fn start(&self) -> Proxy {
        Proxy::opened(Way::Stdio, &self.clients_config())
    }

    /// The same with a config of ours, reached in this way. On a busy machine a server may need longer than clients are
    /// made to wait for it.
    pub(crate) fn start_in(&self, way: Way) -> Proxy {
        Proxy::opened(way, &self.own_config("start-wait-ms = 20000"))
    }

    /// Every message that a server received, of the journal with this name. Over HTTP it came with headers.
    pub(crate) fn journal(&self, name: &str) -> Vec<Value> {
        journal(&self.path(name))
    }

    /// The same without headers.
    pub(crate) fn messages(&self, name: &str) -> Vec<Value> {
        let bare = |mut note: Value| if note["headers"].is_object() { note["message"].take() } else { note };
        self.journal(name).into_iter().map(bare).collect()
    }
}

/// Every message of a journal; a line that is just being written counts as not there.
pub(crate) fn journal(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The tools that the talking server ran, by its journal.
pub(crate) fn ran(journal: &[Value]) -> Vec<&str> {
    journal.iter().filter_map(|note| note["ran"].as_str()).collect()
}

/// The calls of a journal, by the tool's name.
pub(crate) fn called(journal: &[Value]) -> Vec<&str> {
    let calls = journal.iter().filter(|message| message["method"] == "tools/call");
    calls.filter_map(|message| message["params"]["name"].as_str()).collect()
}

/// Loads every skill and returns the tools that they opened, by exposed name.
pub(crate) fn open_all(proxy: &mut Proxy) -> Vec<String> {
    let tools = proxy.list();
    let load = tools.iter().find(|tool| tool["name"] == "skill_load").expect("skill_load is listed");
    let skills = load["inputSchema"]["properties"]["name"]["enum"].as_array().cloned().unwrap_or_default();
    let mut opened = BTreeSet::new();
    for skill in skills.iter().filter_map(Value::as_str) {
        let loaded = proxy.load(skill);
        opened.extend(
            loaded["tools"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|tool| tool["name"].as_str().map(str::to_owned)),
        );
    }
    opened.into_iter().collect()
}
