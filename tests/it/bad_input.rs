//! What goes wrong is answered with what to do next, nothing is lost, and the gate stays closed.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{
    cases::{Case, called},
    proxy::{Proxy, gatekey, run, text_of},
    wait_until,
};

/// A config with the odd server as `odd` and these lines at its top and below the server.
fn odd(top: &str, below: &str) -> (Case, PathBuf) {
    let mut case = Case::new("odd");
    let server = case.folder.join("server.py");
    let journal = case.path("journal.jsonl");
    case.servers.insert("odd".into(), json!({"command": "python3", "args": [server, "--journal", journal]}));
    let config = case.own_config(top);
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}{below}\n")).unwrap();
    (case, config)
}

fn start(config: &std::path::Path) -> Proxy {
    let mut proxy = Proxy::with_config(config);
    proxy.initialize();
    proxy
}

#[test]
fn lines_that_are_no_messages_are_answered_and_the_session_goes_on() {
    let (_case, config) = odd("", "");
    let mut proxy = start(&config);
    for (line, code) in [
        ("not json", -32700),
        ("[]", -32600),
        ("42", -32600),
        (r#"{"jsonrpc":"2.0"}"#, -32600),
        (r#"[{"id":1,"method":"ping"}]"#, -32600),
    ] {
        proxy.send_raw(line);
        let answer = proxy
            .wait_for(line, Duration::from_secs(5), |message| message["id"].is_null() && message["error"].is_object());
        assert_eq!(answer["error"]["code"], code, "{line}");
    }
    proxy.send_raw("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"ping\"}\r");
    proxy.wait_for("a ping behind a byte-order mark", Duration::from_secs(5), |message| {
        message["id"] == "b" && message["result"].is_object()
    });
    for (method, params, code) in [
        ("no/such/method", json!({}), -32601),
        ("tools/call", json!([1]), -32602),
        ("tools/call", json!({"arguments": {}}), -32602),
        ("tools/call", json!({"name": "ok", "NAME": "die"}), -32602),
        ("tools/list", json!({"cursor": "made up"}), -32602),
        ("tools/list", json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}}), -32022),
    ] {
        let id = proxy.ask(method, params);
        assert_eq!(proxy.answer_to(id)["error"]["code"], code, "{method}");
    }
    assert_eq!(proxy.result("ping", json!({})), json!({}));
}

#[test]
fn lines_over_the_limit_are_answered_both_ways_and_nothing_hangs() {
    let (_case, config) = odd("line-limit-bytes = 65536", "");
    let mut proxy = start(&config);
    proxy.load("odd");
    let id = proxy.ask("tools/call", json!({"name": "ok", "arguments": {"x": "y".repeat(70_000)}}));
    let refused = proxy.answer_to(id);
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    let result = proxy.call("big", json!({"bytes": 100_000}));
    assert_eq!((&result["isError"], &result["structuredContent"]["code"]), (&json!(true), &json!("unavailable")));
    assert!(text_of(&result).contains("`odd`") && text_of(&result).contains("100"), "{result}");
    assert_eq!(text_of(&proxy.call("big", json!({"bytes": 60_000}))).len(), 60_000);
}

#[test]
fn a_large_result_passes_by_default() {
    let (_case, config) = odd("", "");
    let mut proxy = start(&config);
    proxy.load("odd");
    assert_eq!(text_of(&proxy.call("big", json!({"bytes": 20 << 20}))).len(), 20 << 20);
}

#[test]
fn a_call_that_is_never_answered_is_given_up_and_the_server_is_told() {
    let (case, config) = odd("", "call-idle-timeout-ms = 700");
    let mut proxy = start(&config);
    proxy.load("odd");
    let started = Instant::now();
    let result = proxy.call("hang", json!({}));
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(result["structuredContent"]["code"], "unavailable");
    assert!(text_of(&result).contains("did not answer in time"), "{result}");
    wait_until("the server is told", Duration::from_secs(2), || {
        case.journal("journal.jsonl").iter().any(|message| message["method"] == "notifications/cancelled")
    });
    assert_eq!(text_of(&proxy.call("ok", json!({}))), "fine");
}

#[test]
fn a_server_that_dies_in_a_call_is_named_with_its_last_words_and_started_again() {
    let (_case, config) = odd("", "");
    let mut proxy = start(&config);
    proxy.load("odd");
    let result = proxy.call("die", json!({}));
    for part in ["`odd`", "code 9", "the disk is on fire"] {
        assert!(text_of(&result).contains(part), "{part} in {result}");
    }
    assert_eq!(result["structuredContent"]["tool"], "die");
    // Every call in between is answered, and in the end the server is there again, with the skill still loaded.
    wait_until("the server is there again", Duration::from_secs(20), || {
        let result = proxy.call("ok", json!({}));
        assert!(text_of(&result) == "fine" || result["structuredContent"]["code"] == "unavailable", "{result}");
        text_of(&result) == "fine"
    });
}

#[test]
fn progress_comes_in_order_under_the_clients_token_and_never_after_the_answer() {
    let (_case, config) = odd("", "");
    let mut proxy = start(&config);
    proxy.load("odd");
    let id = proxy.ask("tools/call", json!({"name": "flood", "_meta": {"progressToken": "mine"}}));
    assert_eq!(text_of(&proxy.answer_to(id)["result"]), "flooded");
    let lines: Vec<Value> = proxy.raw.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let progress: Vec<(usize, u64)> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line["params"]["progressToken"] == "mine")
        .filter_map(|(position, line)| Some((position, line["params"]["progress"].as_u64()?)))
        .collect();
    assert_eq!(progress.iter().map(|(_, value)| *value).collect::<Vec<_>>(), (0..1000).collect::<Vec<_>>());
    let answer = lines.iter().position(|line| line["id"] == id).unwrap();
    assert!(progress.iter().all(|(position, _)| *position < answer));
}

#[test]
fn unknown_skills_and_references_are_answered_with_what_there_is() {
    let root = crate::support::root();
    let (case, _) = odd("", "");
    let skill = case.path("skills/guide");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), "---\nname: guide\ndescription: Guides.\n---\nRead inside.md.\n").unwrap();
    std::fs::write(skill.join("inside.md"), "inside").unwrap();
    std::fs::write(case.path("skills/outside.md"), "outside").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(root.join("Cargo.toml"), skill.join("link.md")).unwrap();
    let config = case.own_config("skills = [\"skills\"]");
    let mut proxy = start(&config);
    let unknown = proxy.call("skill_load", json!({"name": "giude"}));
    assert_eq!(unknown["structuredContent"]["code"], "unknown_skill");
    assert!(text_of(&unknown).contains("Did you mean `guide`?"), "{unknown}");
    assert_eq!(text_of(&proxy.call("skill_read_reference", json!({"skill": "guide", "path": "inside.md"}))), "inside");
    let absolute = skill.join("inside.md");
    for path in
        ["../outside.md", "link.md", "inside.md/../../outside.md", "SKILL.md", absolute.to_str().unwrap(), "nowhere"]
    {
        let refused = proxy.call("skill_read_reference", json!({"skill": "guide", "path": path}));
        assert_eq!(refused["structuredContent"]["code"], "unknown_reference", "{path}: {refused}");
        assert!(text_of(&refused).contains("It has: inside.md."), "{refused}");
        let leaks = ["outside\"", "[package]", case.scratch.path().to_str().unwrap()];
        assert!(path.starts_with('/') || leaks.iter().all(|leak| !refused.to_string().contains(leak)), "{refused}");
    }
    assert_eq!(proxy.call("ok", json!({}))["structuredContent"]["code"], "inactive", "reading opens nothing");
}

#[test]
fn a_map_edit_makes_old_keys_stale_and_new_tools_under_an_old_prefix_are_open_at_once() {
    let (case, _) = odd("", "");
    case.write("skills/s/SKILL.md", "---\nname: s\ndescription: Opens.\n---\nDo.\n");
    let config = case.own_config("maps = [\"map.toml\"]\nskills = [\"skills\"]\nkey-secret = \"fixed\"");
    case.write("map.toml", "version = 1\n[skills]\ns = [\"=ok\"]\n");
    let key = start(&config).load("s")["key"].clone();
    let by_key =
        |proxy: &mut Proxy, tool: &str| proxy.modern_call("tool_call_write", json!({"key": key, "name": tool}));
    assert_eq!(
        text_of(&by_key(&mut start(&config), "ok")),
        "fine",
        "a key outlives its process where the secret is fixed"
    );
    case.write("map.toml", "version = 1\n[skills]\ns = [\"=ok\", \"big\"]\n");
    let mut proxy = start(&config);
    for tool in ["ok", "big"] {
        let stale = by_key(&mut proxy, tool);
        assert_eq!(
            (&stale["structuredContent"]["code"], &stale["structuredContent"]["skill"]),
            (&json!("inactive"), &json!("s"))
        );
        assert!(text_of(&stale).contains("has changed since"), "{stale}");
    }
    assert_eq!(called(&case.journal("journal.jsonl")), ["ok"]);
}

#[test]
fn the_command_line_says_what_to_do_and_ends_with_the_documented_code() {
    let scratch = tempfile::tempdir().unwrap();
    let broken = scratch.path().join("gatekey.toml");
    std::fs::write(&broken, "version = 1\n[upstream.x]\ncommand = \"x\"\n").unwrap();
    let broken = broken.to_str().unwrap();
    let missing = "no-such-program-anywhere";
    for (arguments, code, part) in [
        (&["proxy"][..], 2, "there is no upstream"),
        (&["proxy", "--config", broken], 3, "did you mean `upstreams`?"),
        (&["check", "--config", "/no/such/file.toml"], 3, "cannot be read"),
        (&["check", "--upstream", missing], 4, "there is no program `no-such-program-anywhere`"),
        (&["tools", "list", "--upstream", missing], 4, "there is no program"),
        (&["tools", "call", "x", "--args", "{", "--upstream", missing], 2, "`--args` is not a JSON object"),
        (&["proxy", "--upstream", "sh -c 'x"], 2, "quotes"),
        (&["frobnicate"], 2, "unrecognized subcommand"),
        (&["schema", "config"], 0, "\"upstreams\""),
        (&["schema", "map"], 0, "core-skill"),
        (&["completions", "bash"], 0, "_gatekey"),
        (&["--help"], 0, "Load a skill, get its key"),
    ] {
        let (found, stdout, stderr) = run(arguments.iter().copied());
        assert_eq!(found, code, "{arguments:?}: {stdout}{stderr}");
        assert!(format!("{stdout}{stderr}").contains(part), "{part} in {stdout}{stderr}");
    }
    let (code, stdout, _) = run(["check", "--json", "--config", broken]);
    let envelope: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &envelope["kind"]), (3, &json!("error")));
}

#[test]
fn tools_can_be_looked_at_and_tried_by_hand() {
    let (_case, config) = odd("", "");
    let config = config.to_str().unwrap();
    let (code, stdout, _) = run(["tools", "list", "--json", "--config", config]);
    let envelope: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, envelope["data"].as_array().map(Vec::len)), (0, Some(6)), "{envelope}");
    let (code, stdout, _) = run(["tools", "show", "big", "--config", config]);
    let definition: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &definition["name"]), (0, &json!("big")));
    let (code, stdout, _) = run(["tools", "call", "big", "--args", r#"{"bytes": 3}"#, "--config", config]);
    assert_eq!((code, stdout.as_str()), (0, "xxx\n"));
    let (code, _, stderr) = run(["tools", "call", "bigg", "--config", config]);
    assert_eq!(code, 1);
    assert!(stderr.contains("Did you mean `big`?"), "{stderr}");
    let (code, _, stderr) = run(["tools", "call", "die", "--config", config]);
    assert_eq!(code, 4, "{stderr}");
}

#[test]
fn requests_piped_in_at_once_are_all_answered() {
    let (_case, config) = odd("", "");
    let mut command = gatekey();
    command.arg("proxy").arg("--config").arg(&config);
    let mut proxy = Proxy::spawn(command);
    let initialize = proxy.ask(
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}),
    );
    let list = proxy.ask("tools/list", json!({}));
    let load = proxy.ask("tools/call", json!({"name": "skill_load", "arguments": {"name": "odd"}}));
    proxy.close();
    assert_eq!(proxy.answer_to(initialize)["result"]["protocolVersion"], "2025-06-18");
    assert!(proxy.answer_to(list)["result"]["tools"].is_array());
    assert_eq!(proxy.answer_to(load)["result"]["structuredContent"]["tools"].as_array().map(Vec::len), Some(6));
    assert_eq!(proxy.ended(Duration::from_secs(10)).code(), Some(0));
}

#[test]
fn an_answer_that_cannot_be_read_ends_its_call_at_once() {
    let (_case, config) = odd("", "");
    let mut proxy = start(&config);
    proxy.load("odd");
    let id = proxy.ask("tools/call", json!({"name": "latin1"}));
    let answer = proxy.answer_within(id, Duration::from_secs(5));
    assert_eq!(answer["result"]["structuredContent"]["code"], "unavailable", "{answer}");
    assert_eq!(text_of(&proxy.call("ok", json!({}))), "fine");
}

#[test]
fn arguments_of_meta_tools_are_answered_however_they_are_spelled() {
    let (_case, config) = odd("", "");
    let mut proxy = start(&config);
    let key = proxy.load("odd")["key"].clone();
    for (tool, arguments) in [
        ("skill_load", r#"{"name":"odd","Name":"x"}"#.to_owned()),
        ("tool_call_write", format!(r#"{{"key":{key},"name":"ok","arguments":{{}},"arguments":{{"a":1}}}}"#)),
        ("tool_call_write", format!(r#"{{"key":{key},"name":"ok","Name":"Bob"}}"#)),
        ("tool_call_write", format!(r#"{{"key":{key},"name":"ok","\ud800":1,"\udc00":2}}"#)),
        ("tool_call_write", "[1]".to_owned()),
    ] {
        proxy.send_raw(&format!(
            r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        ));
        let answer = proxy.wait_for(&arguments, Duration::from_secs(5), |message| message["id"] == "x");
        assert!(answer["result"]["content"].is_array(), "{answer}");
    }
}

#[test]
fn requests_before_the_servers_are_up_are_answered_in_their_order() {
    let (_case, config) = odd("", "");
    let mut proxy = Proxy::with_config(&config);
    let asked: Vec<u64> = (0..12).map(|_| proxy.ask("tools/list", json!({}))).collect();
    proxy.answer_to(asked[11]);
    let answered: Vec<Value> =
        proxy.raw.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect();
    assert_eq!(answered, asked.iter().map(|id| json!(id)).collect::<Vec<_>>());
}

#[cfg(unix)]
#[test]
fn a_proxy_whose_client_does_not_read_can_be_ended() {
    let (_case, config) = odd("", "");
    let mut command = gatekey();
    command.arg("proxy").arg("--config").arg(&config);
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let big = json!({"jsonrpc": "2.0", "id": "x".repeat(200_000), "method": "ping"}).to_string() + "\n";
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, big.repeat(3).as_bytes()).unwrap();
    drop(stdin);
    let mut status = None;
    wait_until("it ends although nobody reads its answers", Duration::from_secs(12), || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(0));
}

#[cfg(unix)]
#[test]
fn a_modern_server_that_failed_once_is_found_again() {
    let case = Case::new("17");
    let flag = case.path("started-before");
    let server = case.folder.join("server.py");
    let script = format!(
        "test -f '{0}' || {{ touch '{0}'; exit 1; }}; exec python3 '{1}' --name modern --era modern",
        flag.display(),
        server.display()
    );
    let config = case
        .write("one.json", &json!({"mcpServers": {"modern": {"command": "sh", "args": ["-c", script]}}}).to_string());
    let mut proxy = Proxy::with_config(&config);
    proxy.initialize();
    wait_until("it is found again", Duration::from_secs(30), || {
        !proxy.load("modern")["tools"].as_array().is_none_or(Vec::is_empty)
    });
    assert_eq!(text_of(&proxy.call("tool_modern", json!({}))), "ok:tool_modern");
}

#[test]
fn check_names_a_rule_that_protects_nothing() {
    let (_case, config) = odd("", "[[rules]]\ndeny = [\"odd:die\", \"odd:dye\"]");
    let (code, stdout, _) = run(["check", "--config", config.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(stdout.contains("`odd:dye` of a rule matches no tool") && !stdout.contains("`odd:die` of"), "{stdout}");
    let mut proxy = start(&config);
    proxy.load("odd");
    assert_eq!(proxy.call("die", json!({}))["structuredContent"]["code"], "forbidden");
}

#[test]
fn a_slip_of_the_pen_never_gives_more_rights() {
    let (case, config) =
        odd("", "[principals.ann]\nroles = [\"viewer\"]\n[[rules]]\nroles = [\"viewer\"]\nallow = [\"ok\"]");
    let mut text = std::fs::read_to_string(&config).unwrap();
    text.push_str("[upstreams.off]\ncommand = \"true\"\ndisabled = true\n");
    let config = case.write("gatekey.toml", &text);
    let config = config.to_str().unwrap();
    let call = |tool: &str, who: &str| run(["tools", "call", tool, "--as", who, "--config", config]);
    assert_eq!(call("ok", "ann").0, 0);
    assert_eq!(call("ok", "bob:viewer").0, 0);
    let (code, _, stderr) = call("die", "ann");
    assert_eq!(code, 1, "{stderr}");
    for (who, part) in [("anne", "did you mean `ann`?"), ("bob:veiwer", "did you mean `viewer`?")] {
        let (code, _, stderr) = call("ok", who);
        assert_eq!(code, 2, "{who}: {stderr}");
        assert!(stderr.contains(part), "{stderr}");
    }
    let (_, stdout, _) = run(["tools", "list", "--as", "ann", "--config", config]);
    assert!(stdout.lines().any(|line| line.starts_with("die") && line.contains("(forbidden)")), "{stdout}");
    let (code, _, stderr) = run(["tools", "list", "--upstream", "off", "--config", config]);
    assert_eq!(code, 2);
    assert!(stderr.contains("upstream `off` is disabled"), "{stderr}");
}

#[test]
fn the_reason_is_given_for_tools_that_nobody_has_seen() {
    let case = Case::new("29");
    case.write("map.toml", "version = 1\n[skills]\nreader = [\"=read\"]\n");
    let skills = json!(case.folder.join("skills"));
    let text = format!(
        "version = 1\nmaps = [\"map.toml\"]\nskills = [{skills}]\n[upstreams.files]\ncommand = \"no-such-program\"\n"
    );
    let config = case.write("gatekey.toml", &text);
    let mut proxy = start(&config);
    let loaded = proxy.load("reader");
    assert!(loaded["warnings"].to_string().contains("there is no program `no-such-program`"), "{loaded}");
    let called = proxy.call("read", json!({}));
    assert_eq!(called["structuredContent"]["code"], "not_found");
    assert!(text_of(&called).contains("there is no program `no-such-program`"), "{called}");
    let (code, _, stderr) = run(["tools", "call", "read", "--config", config.to_str().unwrap()]);
    assert_eq!(code, 4, "{stderr}");
    let (_, stdout, _) = run(["check", "--json", "--config", "/no/such/file.toml"]);
    let envelope: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(envelope["diagnostics"][1]["at"]["file"], "/no/such/file.toml", "{envelope}");
}
