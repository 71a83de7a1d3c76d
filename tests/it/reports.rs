//! What users of gateways, proxies and loaders reported, by subject, each report with its repository and number. Those
//! that need many servers or files are the numbered cases of `tests/cases`; these need only a config or a small server.

use serde_json::{Value, json};

use crate::support::{
    cases::{Case, open_all},
    proxy::{Proxy, names, run, text_of},
};

/// A server of `tests/cases/many` with one tool.
fn server_with(tool: &str) -> Value {
    let server = Case::new("many").folder.join("server.py");
    json!({"command": "python3", "args": [server, "--tool", tool]})
}

/// `gatekey check` over a config: exit code and findings, as objects.
fn check(config: &std::path::Path) -> (i32, Vec<Value>) {
    let (code, stdout, stderr) = run(["check", "--json", "--config", config.to_str().unwrap()]);
    let envelope: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error} in {stdout}{stderr}"));
    (code, envelope["diagnostics"].as_array().cloned().unwrap_or_default())
}

fn initialized(config: &std::path::Path) -> Proxy {
    let mut proxy = Proxy::with_config(config);
    proxy.initialize();
    proxy
}

// Names in configs

/// obot-platform/obot#6429
#[test]
fn a_name_or_prefix_that_is_too_long_or_blank_costs_its_server_and_is_named_with_its_rule() {
    let mut case = Case::new("many");
    let long = "p".repeat(129);
    for (number, (name, prefix)) in
        [(&*long, ""), ("   ", ""), ("", ""), ("long-prefix", &*long), ("blank-prefix", "   "), ("empty-prefix", "")]
            .into_iter()
            .enumerate()
    {
        let mut server = server_with(&format!("tool_{number}"));
        server["prefix"] = json!(prefix);
        case.servers.insert(name.into(), server);
    }
    let config = case.own_config("");
    let (code, findings) = check(&config);
    assert_eq!(code, 3);
    for (server, member, limit) in [
        (&*long, "a name has at most", "64 characters"),
        ("   ", "a name is not empty", "no blanks around it"),
        ("", "a name is not empty", "no blanks around it"),
        ("long-prefix", "`prefix` has at most", "32 characters"),
        ("blank-prefix", "`prefix` has at most", "no blanks around it"),
    ] {
        let is_its = |finding: &&Value| {
            let message = finding["message"].as_str().unwrap_or_default();
            message.starts_with(&format!("upstream `{server}`: ")) && finding["at"]["line"].is_u64()
        };
        let finding = findings.iter().find(is_its).unwrap_or_else(|| panic!("{server:?} in {findings:?}"));
        let message = finding["message"].as_str().unwrap();
        assert!(message.contains(member) && message.contains(limit), "{finding}");
    }
    let mut proxy = initialized(&config);
    assert_eq!(open_all(&mut proxy), ["tool_5"]);
    assert_eq!(text_of(&proxy.call("tool_5", json!({"n": 1}))), "ok:tool_5");
}

/// wso2/agent-manager#1402
#[test]
fn odd_names_of_servers_are_refused_by_a_stated_rule_or_work() {
    let mut case = Case::new("many");
    let long = "x".repeat(200);
    for (name, tool) in [
        ("", "empty"),
        ("   ", "blank"),
        (&*long, "long"),
        ("a/b", "slash"),
        ("Case", "twice"),
        ("case", "twice"),
        ("7", "seven"),
        ("skill_load", "skill_load"),
        ("last", "last"),
    ] {
        case.servers.insert(name.into(), server_with(tool));
    }
    let config = case.clients_config();
    let (code, findings) = check(&config);
    assert_eq!(code, 3);
    let refused: Vec<(&str, bool)> = findings
        .iter()
        .filter(|finding| finding["code"] == "config-value")
        .map(|finding| (finding["message"].as_str().unwrap(), finding["at"]["line"].is_u64()))
        .collect();
    let rule = "a name is not empty and has no blanks around it or control characters";
    for message in [
        format!("upstream ``: {rule}"),
        format!("upstream `   `: {rule}"),
        format!("upstream `{long}`: a name has at most 64 characters"),
    ] {
        assert!(refused.contains(&(&*message, true)), "{message} in {refused:?}");
    }
    assert_eq!(refused.len(), 3, "{refused:?}");

    let mut proxy = initialized(&config);
    for (server, tool) in [
        ("a/b", "slash"),
        ("Case", "twice"),
        ("case", "case_twice"),
        ("7", "seven"),
        ("skill_load", "skill_load_skill_load"),
        ("last", "last"),
    ] {
        assert_eq!(names(proxy.load(server)["tools"].as_array().unwrap()), [tool], "{server}");
        let called = proxy.call(tool, json!({"n": 1}));
        assert!(text_of(&called).starts_with("ok:"), "{server}: {called}");
    }
    let skills = proxy.list().into_iter().find(|tool| tool["name"] == "skill_load").unwrap();
    assert_eq!(
        skills["inputSchema"]["properties"]["name"]["enum"],
        json!(["7", "Case", "a/b", "case", "last", "skill_load"]),
        "a name that was refused is no skill"
    );
}
