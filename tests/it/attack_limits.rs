//! Attacks by size and depth, and by what is in a name: nothing that a client sends is too much for others, and nothing of it
//! becomes a line of a log, a command to a terminal, or a header.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::attack_http::{call_line, only_the_last_call_ran, open, put_in};
use crate::support::{
    cases::Case,
    process::proxy_of,
    proxy::{PATIENCE, Proxy, modern_meta, text_of},
    raw::{exchange, statuses},
    root,
    ways::{Way, in_ways},
};

const SECOND: Duration = Duration::from_secs(1);

// What is too much

in_ways! { [stdio http modern_stdio modern_http]
fn bodies_within_bodies_without_end(way: Way) {
    let (case, mut proxy) = {
        let case = Case::talks(&["talks"]);
        let proxy = Proxy::opened(way, &case.own_config("start-wait-ms = 20000"));
        (case, proxy)
    };
    proxy.load("talks");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deeper = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    let meta = if way.is_modern() { format!(r#","_meta":{}"#, modern_meta()) } else { String::new() };
    let key = proxy.load("talks")["key"].clone();
    let mut id = 1_000;
    for value in [&deep, &deeper] {
        for (method, params) in [
            ("tools/call", format!(r#"{{"name":"no_such","arguments":{{"x":{value}}}{meta}}}"#)),
            ("tools/call", format!(r#"{{"name":"tool_call_write","arguments":{{"key":{key},"name":"no_such","arguments":{{"x":{value}}}}}{meta}}}"#)),
            ("tools/call", format!(r#"{{"name":"skill_load","arguments":{{"name":{value}}}{meta}}}"#)),
            ("tools/call", format!(r#"{{"name":"tool_describe","arguments":{{"names":{value}}}{meta}}}"#)),
            ("tools/call", format!(r#"{{"name":{value}{meta}}}"#)),
            ("resources/read", format!(r#"{{"uri":{value}{meta}}}"#)),
            ("completion/complete", format!(r#"{{"ref":{value}{meta}}}"#)),
            ("tools/list", format!(r#"{{"cursor":{value}{meta}}}"#)),
        ] {
            id += 1;
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
            let named = json!({"id": id, "method": method, "params": {"name": if params.contains("skill_load") { "skill_load" } else if params.contains("tool_describe") { "tool_describe" } else if params.contains("tool_call_write") { "tool_call_write" } else { "no_such" }, "uri": "x",
                "_meta": if way.is_modern() { modern_meta() } else { json!({}) }}});
            proxy.send_as(&line, &named);
            let answer: Value = serde_json::from_str(&proxy.raw_answer(&id.to_string(), PATIENCE)).unwrap();
            assert!(answer["error"].is_object() || answer["result"].is_object(), "{method} {answer}");
        }
    }
    only_the_last_call_ran(&case, &mut proxy);
}
}

in_ways! { [stdio http]
fn ids_of_any_shape_and_size(way: Way) {
    let case = Case::talks(&["talks"]);
    let mut proxy = Proxy::opened(way, &case.own_config("start-wait-ms = 20000"));
    proxy.load("talks");
    let long = format!("\"{}\"", "x".repeat(1 << 20));
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    for id in ["1e400", "-0", "0.1", "18446744073709551616", r#""""#, r#""\u0000""#, r#""\r\nid: 7\r\n\r\n""#, "true", "[]", r#"{"id":1}"#, &long, &deep] {
        proxy.send_as(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#), &json!({"id": 1, "method": "ping"}));
        let line = proxy.raw_answer(id, PATIENCE);
        assert!(line.ends_with(r#","result":{}}"#) && !line.contains('\n'), "{}", line.get(..100.min(line.len())).unwrap());
    }
    only_the_last_call_ran(&case, &mut proxy);
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn names_lists_and_patterns_of_any_size(way: Way) {
    let case = Case::talks(&["talks"]);
    let mut proxy = Proxy::opened(way, &case.own_config("start-wait-ms = 20000"));
    let key = proxy.load("talks")["key"].clone();
    // Over HTTP a name stands in a header too, where it is longer than headers may be.
    let size = if way == Way::ModernHttp { 20_000 } else { 1 << 20 };
    let long = "n".repeat(size);
    let many: Vec<String> = (0..20_000).map(|number| format!("name_{number}")).collect();
    for (tool, arguments) in [
        (long.as_str(), json!({})),
        ("skill_load", json!({"name": long})),
        ("skill_read_reference", json!({"skill": "talks", "path": long})),
        ("skill_search", json!({"query": long})),
        ("skill_search", json!({"query": "a b c ".repeat(20_000), "top_k": 18_446_744_073_709_551_615_u64, "tags": many})),
        ("tool_describe", json!({"names": many, "key": key})),
        ("tool_describe", json!({"query": long})),
        ("tool_describe", json!({"regex": "(((a{100}){100}){100}){100}"})),
        ("tool_describe", json!({"regex": format!("{}a{}", "(".repeat(5_000), ")*".repeat(5_000))})),
        ("tool_describe", json!({"regex": "(a*)*(a*)*(a*)*$"})),
        ("tool_call_write", json!({"key": long, "name": long, "arguments": {"x": long}})),
    ] {
        let begun = Instant::now();
        let said = proxy.call(tool, arguments).to_string();
        assert!(begun.elapsed() < 5 * SECOND, "{tool} took {:?}", begun.elapsed());
        assert!(said.len() < 2 * size + 1_000_000, "{} bytes", said.len());
    }
    assert!(proxy.stderr().len() < 200_000, "the log has {} bytes", proxy.stderr().len());
    only_the_last_call_ran(&case, &mut proxy);
}
}

#[test]
fn heads_over_every_limit() {
    let (case, mut proxy) = open("");
    let session = proxy.http().session.clone().unwrap();
    let body = call_line(7, "put", &json!({}));
    let framing = format!("connection: close\r\ncontent-length: {}", body.len());
    let good = put_in(&session, &framing, &body);
    let long = "x".repeat(200_000);
    let many: String = (0..5_000).map(|number| format!("x-{number}: y\r\n")).collect();
    for (what, request) in [
        ("a long target", good.replacen("/mcp ", &format!("/mcp?{long} "), 1)),
        ("a long path", good.replacen("/mcp ", &format!("/skill/{long}/mcp "), 1)),
        ("a long method", good.replacen("POST", &long, 1)),
        ("a long name", good.replacen("host:", &format!("{long}: y\r\nhost:"), 1)),
        ("a long value", good.replacen("host:", &format!("x: {long}\r\nhost:"), 1)),
        ("many headers", good.replacen("host:", &format!("{many}host:"), 1)),
        ("a head without an end", format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\nx: {}", long.repeat(5))),
        ("a line without an end", long.repeat(5)),
    ] {
        let said = exchange(proxy.url(), &request);
        assert!(
            statuses(&said).iter().all(|status| *status >= 400),
            "{what}: {}",
            said.get(..300.min(said.len())).unwrap()
        );
    }
    only_the_last_call_ran(&case, &mut proxy);
}

// What is written into logs and headers

/// Parts of a line that would be another line of a log, or a command to a terminal.
const LINES: &[&str] = &[
    "x\nFORGED line",
    "x\r\nFORGED: y",
    "x\u{1b}[2J\u{1b}[31mred",
    "x\u{9b}31m",
    "x\u{7}\u{8}\u{8}",
    "x\u{2028}FORGED",
    "x\u{0}y",
];

/// The log has no line and no command that somebody else wrote.
pub(crate) fn log_is_clean(said: &str) {
    for line in said.lines().filter(|line| !line.starts_with("[client]")) {
        assert!(!line.trim_start().starts_with("FORGED"), "{line:?} in {said}");
    }
    let is_command = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    let ours: String = said.lines().filter(|line| !line.starts_with("[client]")).collect();
    assert!(!ours.contains(is_command), "{:?}", ours.lines().find(|line| line.contains(is_command)));
}

in_ways! { [stdio http modern_stdio modern_http]
fn line_ends_and_terminal_commands_in_whatever_a_client_names(way: Way) {
    let case = Case::talks(&["talks"]);
    let config = case.own_config("start-wait-ms = 20000\n[audit]\nfile = \"audit.jsonl\"\narguments = true");
    let mut proxy = Proxy::spawn_in(way, proxy_of(&config));
    if !way.is_modern() {
        let params = json!({"protocolVersion": "2025-11-25\nFORGED", "capabilities": {}, "clientInfo": {"name": LINES[0], "version": LINES[2]}});
        proxy.result("initialize", params);
    }
    let key = proxy.load("talks")["key"].clone();
    for text in LINES {
        for (method, params) in [
            ("tools/call", json!({"name": text, "arguments": {"intent": text}})),
            ("tools/call", json!({"name": "put", "arguments": {text.to_string(): text}})),
            ("tools/call", json!({"name": "tool_call_write", "arguments": {"key": text, "name": text}})),
            ("tools/call", json!({"name": "tool_call_write", "arguments": {"key": key, "name": "say", "arguments": {"texts": text}, "intent": text}})),
            ("tools/call", json!({"name": "skill_load", "arguments": {"name": text}})),
            ("tools/call", json!({"name": "skill_read_reference", "arguments": {"skill": "talks", "path": text}})),
            ("tools/call", json!({"name": "skill_search", "arguments": {"query": text, "why": text}})),
            ("tools/call", json!({"name": "tool_describe", "arguments": {"regex": text}})),
            ("resources/read", json!({"uri": text})),
            ("resources/read", json!({"uri": format!("skill://talks/{text}")})),
            ("prompts/get", json!({"name": text})),
            ("own/method", json!({"x": text})),
        ] {
            let id = proxy.ask(method, params);
            proxy.answer_to(id);
        }
        if !way.is_http() {
            let id = proxy.ask(text, json!({}));
            proxy.answer_to(id);
            proxy.send(json!({"method": text, "params": {}}));
            proxy.send(json!({"method": format!("notifications/{text}"), "params": {}}));
            proxy.send_raw(&format!("{text} is no message"));
            proxy.send(json!({"method": "notifications/cancelled", "params": {"requestId": text, "reason": text}}));
        }
    }
    proxy.call("put", json!({}));
    log_is_clean(&proxy.stderr());
    let audit = std::fs::read_to_string(case.path("audit.jsonl")).unwrap();
    for line in audit.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok_and(|record| record["event"].is_string()), "{line}");
        assert!(!line.contains(char::is_control), "{line:?}");
    }
}
}

in_ways! { [http modern_http]
fn line_ends_in_what_becomes_a_header_towards_a_server(way: Way) {
    let mut case = Case::talks(&[]);
    let journal = case.path("journal-evil.jsonl").to_string_lossy().into_owned();
    let program = root().join("tests/cases/evil/server.py").to_string_lossy().into_owned();
    let property = json!({"type": "string", "x-mcp-header": "Region"});
    let tool = json!({"name": "there", "inputSchema": {"type": "object", "properties": {"x": property}}}).to_string();
    case.servers.insert("evil".into(), json!({"command": "python3", "args": [program, "--era", "modern", "--journal", journal, "--tool", tool]}));
    let server = case.over_http("evil");
    let mut proxy = Proxy::opened(way, &case.own_config("start-wait-ms = 20000"));
    proxy.load("evil");
    for text in LINES {
        let forged = format!("{text}\r\nx-forged: yes\r\n\r\nPOST /mcp HTTP/1.1\r\n");
        for (method, params) in [
            ("resources/read", json!({"uri": format!("evil://{forged}")})),
            ("prompts/get", json!({"name": forged})),
            ("tools/call", json!({"name": "put", "arguments": {"x": forged}})),
            ("completion/complete", json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "x", "value": forged}})),
        ] {
            let id = proxy.ask(method, params);
            proxy.answer_to(id);
        }
        if !way.is_modern() {
            // A client of the newer era would have to send the header itself.
            assert_eq!(text_of(&proxy.call("there", json!({"x": forged}))), "ok:there");
        }
    }
    assert_eq!(text_of(&proxy.call("put", json!({}))), "put by evil");
    let (mut n_names, mut n_arguments) = (0, 0);
    for note in case.journal("journal-evil.jsonl").iter().filter(|note| note["headers"].is_object()) {
        assert!(note["headers"].get("x-forged").is_none(), "{note}");
        let value = |name: &str| note["headers"][name].as_str().unwrap_or_default().to_owned();
        assert!(![value("mcp-name"), value("mcp-param-region")].concat().contains(char::is_control), "{note}");
        n_names += usize::from(value("mcp-name").starts_with("=?base64?"));
        n_arguments += usize::from(value("mcp-param-region").starts_with("=?base64?"));
    }
    assert!(n_names >= LINES.len(), "they were sent, as what they are: {n_names}");
    assert_eq!(n_arguments, if way.is_modern() { 0 } else { LINES.len() });
    drop(server);
}
}
