//! A config with a map, skills and a server, in files that tests change while a client is served; and what that client is told
//! and finds.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    cases::journal,
    process::proxy_of,
    proxy::{PATIENCE, Proxy, text_of},
    root, wait_until,
    ways::Way,
};

const TOOLS: &[&str] = &["a_get", "a_put", "b_get", "free_get"];

/// A config with a map, three skills and one upstream.
pub(crate) struct Desk {
    scratch: TempDir,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let desk = Self { scratch: tempfile::tempdir().unwrap() };
        desk.write("map.toml", "version = 1\n[skills]\nalpha = [\"a_\"]\nbeta = [\"b_\"]\n");
        desk.write("skills/alpha/SKILL.md", &skill("alpha", "Handles apples.", "Peel."));
        desk.write("skills/alpha/references/notes.md", "Notes.");
        desk.write("skills/beta/SKILL.md", &skill("beta", "Handles berries.", "Wash."));
        desk.config("");
        desk
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    /// Puts a file in place in one step.
    pub(crate) fn put(&self, name: &str, text: &str) {
        let beside = self.write("beside.tmp", text);
        fs::rename(beside, self.path(name)).unwrap();
    }

    /// The config with more at its end, written as a whole.
    pub(crate) fn config(&self, more: &str) -> PathBuf {
        self.config_with("maps = [\"map.toml\"]\nskills = [\"skills\"]", more)
    }

    pub(crate) fn config_with(&self, top: &str, more: &str) -> PathBuf {
        let server = root().join("tests/cases/many/server.py");
        let mut args = vec![server.to_string_lossy().into_owned(), "--journal".into(), self.journal_file()];
        for tool in TOOLS {
            args.extend([if tool.ends_with("get") { "--read" } else { "--tool" }.to_owned(), (*tool).to_owned()]);
        }
        // On a busy machine a server may need longer than clients are made to wait.
        let text = format!(
            "version = 1\n{top}\nsearch.encoder = \"off\"\nkey-secret = \"s\"\nstart-wait-ms = 20000\n[upstreams.many]\ncommand = \"python3\"\nargs = {}\n{more}",
            json!(args)
        );
        let file = self.path("gatekey.toml.new");
        fs::write(&file, text).unwrap();
        fs::rename(&file, self.path("gatekey.toml")).unwrap();
        self.path("gatekey.toml")
    }

    pub(crate) fn journal_file(&self) -> String {
        self.path("journal.jsonl").to_string_lossy().into_owned()
    }

    pub(crate) fn journal(&self) -> Vec<Value> {
        journal(&self.path("journal.jsonl"))
    }

    /// A client that has listed everything, or listens to everything.
    pub(crate) fn start(&self, way: Way) -> Proxy {
        let mut proxy = Proxy::spawn_in(way, proxy_of(&self.path("gatekey.toml"))).greeted();
        listening(&mut proxy, way);
        proxy
    }
}

pub(crate) fn listening(proxy: &mut Proxy, way: Way) {
    proxy.list();
    proxy.result("resources/list", json!({}));
    proxy.result("skills/list", json!({}));
    proxy.result("prompts/list", json!({}));
    if way.is_modern() {
        let all = json!({"toolsListChanged": true, "resourcesListChanged": true, "promptsListChanged": true});
        proxy.ask("subscriptions/listen", json!({"notifications": all}));
        proxy.wait_for("the acknowledgement", PATIENCE, |message| {
            message["method"] == "notifications/subscriptions/acknowledged"
        });
    }
}

pub(crate) fn skill(name: &str, description: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n{body}\n")
}

/// Every notice of a changed list that came so far: of tools, resources, prompts.
pub(crate) fn notices(proxy: &mut Proxy) -> [usize; 3] {
    proxy.count(|_| false);
    ["tools", "resources", "prompts"].map(|kind| {
        let method = format!("\"notifications/{kind}/list_changed\"");
        proxy.raw.iter().filter(|line| line.contains(&method)).count()
    })
}

/// Waits for the last of these notices; no kind may have more.
pub(crate) fn told(proxy: &mut Proxy, expected: [usize; 3]) {
    let all = told_at_least(proxy, expected);
    assert_eq!(all, expected);
}

/// Waits for so many notices; returns how many there are then.
pub(crate) fn told_at_least(proxy: &mut Proxy, expected: [usize; 3]) -> [usize; 3] {
    let mut all = [0; 3];
    wait_until(&format!("{expected:?} are told"), PATIENCE, || {
        all = notices(proxy);
        all.iter().zip(expected).all(|(told, expected)| *told >= expected)
    });
    all
}

pub(crate) fn found(proxy: &mut Proxy, query: &str) -> Vec<String> {
    let found = proxy.call("skill_search", json!({"query": query, "top_k": 20}));
    let skills = found["structuredContent"]["skills"].as_array().cloned().unwrap_or_default();
    skills.iter().filter_map(|skill| skill["name"].as_str().map(str::to_owned)).collect()
}

/// Waits until `skill_search` and `skill_load` know of a change that was just made; returns how long that took.
pub(crate) fn visible(proxy: &mut Proxy, name: &str, word: &str) -> Duration {
    let written = Instant::now();
    wait_until(&format!("{word} is found"), PATIENCE, || found(proxy, word) == [name]);
    let loaded = proxy.load(name);
    assert!(loaded["body"].as_str().is_some_and(|body| body.contains(word)), "{loaded}");
    written.elapsed()
}

/// Does something and says how long that took.
pub(crate) fn timed(what: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    what();
    begun.elapsed()
}

/// Calls a tool; its text, or the code of the refusal.
pub(crate) fn call(proxy: &mut Proxy, tool: &str) -> String {
    let result = proxy.call(tool, json!({"n": 1}));
    let code = result["structuredContent"]["code"].as_str();
    code.map_or_else(|| text_of(&result).to_owned(), str::to_owned)
}

/// Loads both skills; returns what was told then.
pub(crate) fn loaded(proxy: &mut Proxy) -> [usize; 3] {
    proxy.load("alpha");
    proxy.load("beta");
    notices(proxy)
}
