//! What users of gateways, proxies and loaders reported, by subject, each report with its repository and number. Those
//! that need many servers or files are the numbered cases of `tests/cases`; these need only a config or a small server.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{
    cases::{Case, called, open_all},
    median,
    proxy::{PATIENCE, Proxy, modern_meta, names, run, text_of, upstream_names},
    wait_until,
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
        ("skill_load", "own"),
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
        ("skill_load", "own"),
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

// Schemas

/// ThinkInAIXYZ/deepchat#2075
#[test]
fn a_wrong_type_deep_in_an_output_schema_costs_nothing() {
    let mut case = Case::new("off-output");
    case.servers.insert("pages".into(), json!({"command": "python3", "args": [case.folder.join("server.py")]}));
    let mut proxy = case.start();
    let key = proxy.load("pages")["key"].clone();
    let listed = proxy.list();
    assert_eq!(upstream_names(&listed), ["pages_get", "pages_list"]);
    let get = listed.iter().find(|tool| tool["name"] == "pages_get").unwrap();
    assert_eq!(get["outputSchema"].pointer("/properties/rows/properties/cells/type"), Some(&json!("list")));
    for tool in ["pages_get", "pages_list"] {
        let listed = listed.iter().find(|listed| listed["name"] == tool).unwrap();
        assert_eq!(listed["inputSchema"]["properties"]["limit"], json!({"type": "integer", "maximum": 5}));
        let by_key = |limit: u64| json!({"key": key, "name": tool, "arguments": {"limit": limit}});
        assert_eq!(text_of(&proxy.call("tool_call_write", by_key(5))), format!("ok:{tool}"));
        let refused = proxy.call("tool_call_write", by_key(6));
        assert_eq!(refused["structuredContent"]["code"], "invalid_arguments", "the input schema holds: {refused}");
    }
}

// Errors

/// anthropics/claude-code#28290
#[test]
fn the_text_of_a_lost_call_names_the_server_how_it_ended_and_what_happens_next() {
    let case = Case::new("18");
    let mut proxy = case.start();
    proxy.load("shaky");
    let lost = proxy.call("boom", json!({}));
    assert_eq!(
        text_of(&lost),
        "The server `shaky` ended during the call: it exited with code 1; its last line on stderr: fatal: lost the \
         database. It is started again. The call may have had an effect: check before you repeat it."
    );
    assert_eq!((&lost["isError"], &lost["structuredContent"]["upstream"]), (&json!(true), &json!("shaky")));
}

// Start

/// smart-mcp-proxy/mcpproxy-go#447
#[test]
fn while_servers_start_each_is_said_to_be_ready_starting_or_down_and_none_to_have_no_tools() {
    let mut case = Case::new("16");
    case.add_args("slow", &["--init-delay", "60"]);
    let mut proxy = case.start();
    proxy.load("good");
    let states = [
        "`slow` is starting",
        "`hang` is starting",
        "`quits` is down: it exited with code 3",
        "`missing` is down: there is no program `no-such-program-here`",
    ];
    // The last two are started again now and then.
    wait_until("every state is told", PATIENCE, || {
        let told = proxy.call("no_such_tool", json!({}));
        assert!(!text_of(&told).contains("`good`"), "{told}");
        states.iter().all(|state| text_of(&told).contains(state))
    });
    let listed = proxy.list();
    let load = listed.iter().find(|tool| tool["name"] == "skill_load").unwrap();
    let catalogue = load["description"].as_str().unwrap();
    let line_of = |skill: &str| catalogue.lines().find(|line| line.starts_with(&format!("- {skill}:"))).unwrap();
    assert!(line_of("good").contains("Opens 1 tool: hello_good."), "{catalogue}");
    for skill in ["slow", "hang", "quits", "missing"] {
        assert!(!line_of(skill).contains(|c: char| c.is_ascii_digit()), "{catalogue}");
    }
}

/// agentgateway/agentgateway#2873
#[test]
fn a_server_that_cannot_import_its_parts_is_shown_with_its_last_line_and_costs_the_others_nothing() {
    let mut case = Case::new("many");
    case.servers.insert("broken".into(), json!({"command": "python3", "args": ["-c", "import no_such_module"]}));
    case.servers.insert("whole".into(), server_with("whole_tool"));
    let reason = "exited with code 1; its last line on stderr: ModuleNotFoundError: No module named 'no_such_module'";
    let config = case.clients_config();
    let (code, findings) = check(&config);
    assert_eq!(code, 4);
    let is_its = |finding: &Value| {
        finding["code"] == "upstream-unreachable" && finding["message"].as_str().unwrap_or_default().contains(reason)
    };
    assert!(findings.iter().any(is_its), "{findings:?}");
    let mut proxy = initialized(&config);
    proxy.load("whole");
    assert_eq!(text_of(&proxy.call("whole_tool", json!({"n": 1}))), "ok:whole_tool");
    wait_until("it has ended", PATIENCE, || proxy.load("broken")["warnings"].to_string().contains(reason));
}

// Speed

fn time_of_nap(proxy: &mut Proxy, number: usize) -> Duration {
    let asked = Instant::now();
    let woke = proxy.call("nap", json!({"seconds": 0, "tag": number}));
    assert_eq!(text_of(&woke), format!("woke {number}"));
    asked.elapsed()
}

/// PrefectHQ/fastmcp#1583
#[test]
fn calls_one_after_the_other_use_one_process_and_cost_little_more_than_without_a_proxy() {
    let mut case = Case::new("13");
    case.servers.remove("b");
    let journal = case.path("journal.jsonl");
    case.add_args("a", &["--journal", journal.to_str().unwrap()]);
    let mut proxy = case.start();
    proxy.load("a");
    let mut direct = std::process::Command::new("python3");
    direct.arg(case.folder.join("server.py")).args(["--journal", case.path("direct.jsonl").to_str().unwrap()]);
    let mut direct = Proxy::spawn(direct);
    direct.initialize();

    let times = (0..100).map(|number| (time_of_nap(&mut proxy, number), time_of_nap(&mut direct, number)));
    let (proxied, alone): (Vec<Duration>, Vec<Duration>) = times.unzip();
    let (proxied, alone) = (median(proxied), median(alone));
    // A call through us passes twice as many processes; on a busy machine each of them waits for its turn.
    assert!(proxied < 2 * alone + Duration::from_millis(5), "{proxied:?}, without a proxy {alone:?}");
    let messages = case.journal("journal.jsonl");
    assert_eq!(called(&messages).len(), 100);
    let n_greeted = messages.iter().filter(|message| message["method"] == "initialize").count();
    assert_eq!(n_greeted, 1);
}

// News of the list

/// PrefectHQ/fastmcp#4161
#[test]
fn news_of_a_servers_tools_reach_the_session_and_the_subscriptions_that_want_them() {
    let case = Case::new("23");
    case.write("map.toml", "version = 1\nalways = [\"*\"]\n[skills]\n");
    let mut proxy = initialized(&case.own_config("maps = [\"map.toml\"]"));
    proxy.list();
    for (id, wanted) in [("tools", json!({"toolsListChanged": true})), ("prompts", json!({"promptsListChanged": true}))]
    {
        let params = json!({"notifications": wanted, "_meta": modern_meta()});
        proxy.send(json!({"id": id, "method": "subscriptions/listen", "params": params}));
        let acknowledged = proxy.wait_for("the acknowledgement", PATIENCE, |message| {
            message["method"] == "notifications/subscriptions/acknowledged"
        });
        assert_eq!(acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    }
    assert_eq!(text_of(&proxy.call("grow", json!({}))), "extra_4");
    let is_notice = |message: &Value| message["method"] == "notifications/tools/list_changed";
    let told = [(); 2].map(|()| {
        let notice = proxy.wait_for("the news", PATIENCE, is_notice);
        notice["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone()
    });
    assert_eq!(told, [Value::Null, json!("tools")], "the session, then the subscription");
    assert_eq!(proxy.count(is_notice), 0);
    assert!(upstream_names(&proxy.list()).contains(&"extra_4"));
}

// Skills and the gate

/// Case 29 with two skills that share a tool.
fn files() -> (Case, PathBuf) {
    let case = Case::new("29");
    case.write("map.toml", "version = 1\n[skills]\nreader = [\"=read\"]\nwriter = [\"=read\", \"=write\"]\n");
    let config = case.own_config(&format!("maps = [\"map.toml\"]\nskills = [{}]", json!(case.folder.join("skills"))));
    (case, config)
}

/// anthropics/claude-code#14067
#[test]
fn a_tool_of_two_skills_stays_open_until_the_last_one_is_unloaded_and_no_server_is_started_for_it() {
    let (case, config) = files();
    let mut proxy = initialized(&config);
    proxy.list();
    let open =
        |proxy: &mut Proxy| ["read", "write"].map(|tool| text_of(&proxy.call(tool, json!({}))) == format!("ok:{tool}"));
    for (step, skill, expected) in [
        ("skill_load", "reader", [true, false]),
        ("skill_unload", "reader", [false, false]),
        ("skill_load", "reader", [true, false]),
        ("skill_load", "writer", [true, true]),
        ("skill_unload", "reader", [true, true]),
        ("skill_load", "reader", [true, true]),
        ("skill_unload", "writer", [true, false]),
        ("skill_unload", "reader", [false, false]),
    ] {
        assert_ne!(proxy.call(step, json!({"name": skill}))["isError"], true, "{step} {skill}");
        assert_eq!(open(&mut proxy), expected, "{step} {skill}");
        let listed: Vec<&str> =
            ["read", "write"].into_iter().zip(expected).filter_map(|(tool, is_open)| is_open.then_some(tool)).collect();
        assert_eq!(upstream_names(&proxy.list()), listed, "{step} {skill}");
    }
    let journal = case.journal("journal.jsonl");
    assert_eq!(journal.iter().filter(|message| message["method"] == "initialize").count(), 1);
}

/// aklivity/zilla#1969
#[test]
fn searching_finds_only_what_is_open_best_first_and_always_in_the_same_order() {
    let (case, config) = files();
    let (mut reader, mut writer) = (initialized(&config), initialized(&config));
    reader.load("reader");
    writer.load("writer");
    let search = |proxy: &mut Proxy, query: &str| {
        let found = proxy.call("tool_describe", json!({"query": query}));
        names(found["structuredContent"]["tools"].as_array().unwrap()).join(" ")
    };
    for query in ["delete", "delete_all", "DELETE"] {
        assert_eq!([search(&mut reader, query), search(&mut writer, query)], ["", ""], "{query}");
    }
    assert_eq!([search(&mut reader, "file"), search(&mut writer, "file")], ["read", "read write"], "a tie, by name");
    assert_eq!([search(&mut reader, "write file"), search(&mut writer, "write file")], ["read", "write read"]);
    for _ in 0..5 {
        assert_eq!(search(&mut writer, "file"), "read write");
    }
    assert_eq!(called(&case.journal("journal.jsonl")), [""; 0]);
}
