//! Real servers of the registries behind one proxy, and real clients before it. `tests/real/setup` installs them.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use gatekey::{
    gate::{key::Secret, map::Pattern},
    model::{
        name::{SkillName, UpstreamName},
        principal::Principal,
    },
};
use serde_json::{Value, json};

use crate::support::{
    cases::Case,
    descendants, installed, is_running,
    proxy::{Proxy, gatekey, names, text_of, upstream_names},
    root,
};

/// What the servers work on: a file, and a git repository with one commit.
pub(crate) fn workplace() -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    let repository = scratch.path().join("repo");
    for folder in ["files", "repo", "home"] {
        std::fs::create_dir(scratch.path().join(folder)).unwrap();
    }
    std::fs::write(scratch.path().join("files/note.txt"), "written by hand").unwrap();
    let git = |arguments: &[&str]| {
        let status = Command::new("git").arg("-C").arg(&repository).args(arguments).output().unwrap().status;
        assert!(status.success(), "git {arguments:?}");
    };
    git(&["init", "-q"]);
    let identity = ["-c", "user.name=t", "-c", "user.email=t@t.invalid"];
    git(&[&identity[..], &["commit", "-q", "--allow-empty", "-m", "first commit"]].concat());
    scratch
}

/// The five servers as five `--upstream` command lines, in the order of the table below.
pub(crate) fn command_lines(work: &Path) -> Vec<String> {
    let real = installed();
    let node = format!("'{}/bin/node'", real.display());
    let module =
        |name: &str| format!("'{}/npm/node_modules/@modelcontextprotocol/{name}/dist/index.js'", real.display());
    let work = work.display();
    vec![
        format!("{node} {} stdio", module("server-everything")),
        format!("{node} {} '{work}/files'", module("server-filesystem")),
        format!("env 'MEMORY_FILE_PATH={work}/memory.jsonl' {node} {}", module("server-memory")),
        format!("'{}/venv-git/bin/mcp-server-git' --repository '{work}/repo'", real.display()),
        format!("'{}/venv-time/bin/mcp-server-time' --local-timezone Europe/Prague", real.display()),
    ]
}

/// What is tried of one server.
struct Trial {
    skill: &'static str,
    n_tools: usize,
    /// A tool that is marked read-only, its arguments, and a part of its answer.
    reads: (&'static str, Value, &'static str),
    /// One that is not, with its arguments.
    writes: Option<(&'static str, Value)>,
}

fn trials(work: &Path) -> [Trial; 5] {
    let path = |name: &str| work.join(name);
    let entity = json!({"entities": [{"name": "shop", "entityType": "place", "observations": ["sells tents"]}]});
    [
        Trial {
            skill: "server-everything",
            n_tools: 13,
            reads: ("echo", json!({"message": "hello"}), "hello"),
            writes: None,
        },
        Trial {
            skill: "server-filesystem",
            n_tools: 14,
            reads: ("read_text_file", json!({"path": path("files/note.txt")}), "written by hand"),
            writes: Some(("write_file", json!({"path": path("files/made.txt"), "content": "x"}))),
        },
        Trial {
            skill: "server-memory",
            n_tools: 9,
            reads: ("read_graph", json!({}), "entities"),
            writes: Some(("create_entities", entity)),
        },
        Trial {
            skill: "mcp-server-git",
            n_tools: 12,
            reads: ("git_log", json!({"repo_path": path("repo")}), "first commit"),
            writes: Some(("git_create_branch", json!({"repo_path": path("repo"), "branch_name": "made"}))),
        },
        Trial {
            skill: "mcp-server-time",
            n_tools: 2,
            reads: ("get_current_time", json!({"timezone": "Europe/Prague"}), "Europe/Prague"),
            writes: None,
        },
    ]
}

#[test]
fn five_servers_without_a_config_are_gated_called_and_ended() {
    let work = workplace();
    let arguments = command_lines(work.path()).into_iter().flat_map(|line| ["--upstream".to_owned(), line]);
    let mut proxy = Proxy::start(arguments);
    proxy.initialize();
    assert_eq!(upstream_names(&proxy.list()), [""; 0], "all is closed at the start");
    for Trial { skill, n_tools, reads: (reads, arguments, part), writes } in trials(work.path()) {
        // The first one waits for its server, which may take long to start.
        let load = proxy.ask("tools/call", json!({"name": "skill_load", "arguments": {"name": skill}}));
        let loaded = proxy.answer_within(load, Duration::from_secs(60))["result"]["structuredContent"].clone();
        let tools = loaded["tools"].as_array().cloned().unwrap_or_default();
        assert_eq!(tools.len(), n_tools, "{skill}: {loaded}");
        let effect = |name: &str| tools.iter().find(|tool| tool["name"] == name).map(|tool| tool["effect"].clone());
        assert_eq!(effect(reads), Some(json!("read")), "{skill}");

        let by_name = proxy.call(reads, arguments.clone());
        assert!(text_of(&by_name).contains(part), "{skill} by name: {by_name}");
        let key = &loaded["key"];
        let by_key = proxy.modern_call("tool_call_read", json!({"key": key, "name": reads, "arguments": arguments}));
        assert!(text_of(&by_key).contains(part), "{skill} by key: {by_key}");
        assert_eq!(by_key["resultType"], "complete", "{skill}");
        if let Some((writes, arguments)) = writes {
            assert_eq!(effect(writes), Some(json!("write")), "{skill}");
            let dispatched = json!({"key": key, "name": writes, "arguments": arguments});
            let refused = proxy.modern_call("tool_call_read", dispatched.clone());
            assert_eq!(refused["structuredContent"]["code"], "not_read_only", "{skill}: {refused}");
            let done = proxy.modern_call("tool_call_write", dispatched);
            assert_ne!(done["isError"], true, "{skill}: {done}");
        }
    }
    assert_eq!(std::fs::read_to_string(work.path().join("files/made.txt")).unwrap(), "x");
    assert!(std::fs::read_to_string(work.path().join("memory.jsonl")).unwrap().contains("sells tents"));
    let unknown = proxy.call("git_push", json!({}));
    assert_eq!(unknown["structuredContent"]["code"], "not_found");

    let children = descendants(proxy.pid());
    assert!(children.len() >= 6, "five servers and the guard: {children:?}");
    proxy.close();
    assert_eq!(proxy.ended(Duration::from_secs(10)).code(), Some(0));
    let left: Vec<&u32> = children.iter().filter(|pid| is_running(**pid)).collect();
    assert!(left.is_empty(), "left running: {left:?}");
}

/// A config with the five servers and a fixed secret, so that a scripted client can know the keys.
fn config(work: &Path) -> (Case, PathBuf) {
    let mut case = Case::of_file(&root().join("tests/real/servers.json"));
    let real = installed().to_string_lossy().into_owned();
    let text = json!(case.servers)
        .to_string()
        .replace("${GATEKEY_REAL}", &real)
        .replace("${GATEKEY_WORK}", &work.to_string_lossy());
    case.servers = serde_json::from_str(&text).unwrap();
    let config = case.own_config("key-secret = \"test\"\nstart-wait-ms = 30000");
    (case, config)
}

fn key_of(upstream: &str) -> String {
    let patterns = [Pattern::all_of(&UpstreamName::new(upstream))];
    Secret::new("test").key(&Principal::local(), &SkillName::new(upstream), &patterns)
}

/// Runs a scenario with the Python SDK against the proxy; returns its report.
fn sdk(config: &Path, mode: &[&str], steps: &Value) -> Value {
    let script = config.with_file_name("steps.json");
    std::fs::write(&script, steps.to_string()).unwrap();
    let mut command = Command::new(installed().join("venv-sdk/bin/python"));
    command.arg(root().join("tests/real/sdk_client.py")).args(mode).args(["--timeout", "90", "--script"]).arg(script);
    command.arg("--").arg(gatekey().get_program()).args(["proxy", "--config"]).arg(config);
    let output = command.output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
    report
}

#[test]
fn the_python_sdk_works_as_a_legacy_client() {
    let work = workplace();
    let (_case, config) = config(work.path());
    let steps = json!([
        {"list": true},
        {"call": "git_log", "arguments": {"repo_path": work.path().join("repo")}},
        {"call": "skill_load", "arguments": {"name": "git"}},
        {"wait_list_changed": 10},
        {"list": true},
        {"call": "git_log", "arguments": {"repo_path": work.path().join("repo")}},
    ]);
    let report = sdk(&config, &["--mode", "legacy"], &steps);
    assert_eq!(report["protocol_version"], "2025-11-25");
    let steps = report["steps"].as_array().unwrap();
    let names_of = |step: &Value| step["tools"].as_array().cloned().unwrap_or_default();
    assert!(names_of(&steps[0]).contains(&json!("skill_load")) && !names_of(&steps[0]).contains(&json!("git_log")));
    assert_eq!(steps[1]["structuredContent"]["code"], "inactive", "{}", steps[1]);
    assert_ne!(steps[2]["isError"], true, "{}", steps[2]);
    assert!(names_of(&steps[4]).contains(&json!("git_log")), "{}", steps[4]);
    assert!(steps[5]["content"].to_string().contains("first commit"), "{}", steps[5]);
}

#[test]
fn the_python_sdk_works_as_a_modern_client() {
    let work = workplace();
    let (_case, config) = config(work.path());
    let call = json!({"key": key_of("git"), "name": "git_log", "arguments": {"repo_path": work.path().join("repo")}});
    let legacy_server = json!({"key": key_of("memory"), "name": "read_graph", "arguments": {}});
    let steps = json!([
        {"list": true},
        {"call": "skill_load", "arguments": {"name": "git"}},
        {"call": "tool_call_read", "arguments": call},
        {"call": "tool_call_read", "arguments": legacy_server},
        {"list": true, "fresh": true},
    ]);
    let report = sdk(&config, &["--mode", "auto", "--listen"], &steps);
    assert_eq!(report["protocol_version"], "2026-07-28", "{report}");
    assert_eq!(report["listen"]["opened"], true, "{}", report["listen"]);
    let steps = report["steps"].as_array().unwrap();
    assert_eq!(steps[1]["structuredContent"]["key"], key_of("git"), "{}", steps[1]);
    assert!(steps[2]["content"].to_string().contains("first commit"), "{}", steps[2]);
    assert!(steps[3]["content"].to_string().contains("entities"), "{}", steps[3]);
    assert_eq!(steps[0]["tools"], steps[4]["tools"], "the list never depends on earlier calls");
}

/// Runs the inspector's command line against the proxy; returns what it prints.
fn inspector(config: &Path, method: &[&str]) -> Value {
    let launcher = "npm/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
    let mut command = Command::new(installed().join("bin/node"));
    command.arg(installed().join(launcher)).args(["--cli", "--quiet"]).args(method);
    command.env("HOME", config.parent().unwrap());
    command.arg("--").arg(gatekey().get_program()).args(["proxy", "--config"]).arg(config);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn the_inspector_lists_strictly_and_calls() {
    let work = workplace();
    let (_case, config) = config(work.path());
    let listed = inspector(&config, &["--strict", "--method", "tools/list"]);
    let tools = listed["tools"].as_array().cloned().unwrap_or_default();
    let expected =
        ["skill_load", "skill_read_reference", "tool_describe", "tool_call_read", "tool_call_write", "skill_unload"];
    assert_eq!(names(&tools), expected, "{listed}");
    let loaded =
        inspector(&config, &["--method", "tools/call", "--tool-name", "skill_load", "--tool-arg", "name=time"]);
    assert_eq!(loaded["structuredContent"]["skill"], "time", "{loaded}");
    let refused = inspector(
        &config,
        &["--method", "tools/call", "--tool-name", "tool_call_read", "--tool-arg", "name=get_current_time"],
    );
    assert_eq!(refused["structuredContent"]["code"], "inactive", "{refused}");
}
