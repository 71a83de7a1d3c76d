//! Cases of `tests/cases` about greeting upstreams and walking their lists.

use serde_json::{Value, json};

use crate::support::{
    cases::{Case, called},
    proxy::{Proxy, modern_meta, text_of},
};

fn methods(journal: &[Value]) -> Vec<&str> {
    journal.iter().filter_map(|message| message["method"].as_str()).collect()
}

fn opened(loaded: &Value) -> Vec<&str> {
    loaded["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect()
}

// 01 — cursors

#[test]
fn lists_are_walked_to_their_end_by_the_servers_own_cursors() {
    let case = Case::new("01");
    let mut proxy = case.start();
    let alpha: Vec<String> = (1..=14).map(|number| format!("t{number:02}")).collect();
    assert_eq!(opened(&proxy.load("alpha")), alpha);
    assert_eq!(opened(&proxy.load("beta")), ["u01", "u02", "u03"]);
    for tool in ["t14", "u03"] {
        assert_eq!(text_of(&proxy.call(tool, json!({}))), format!("ok:{tool}"));
    }
    let journal = case.journal("journal-alpha.jsonl");
    let cursors: Vec<&Value> = journal
        .iter()
        .filter(|message| message["method"] == "tools/list")
        .map(|message| &message["params"]["cursor"])
        .collect();
    assert_eq!(cursors, [&Value::Null, &json!("at:8")]);
    let id = proxy.ask("tools/list", json!({"cursor": "at:8"}));
    assert_eq!(proxy.answer_to(id)["error"]["code"], -32602, "the server's cursor is none of ours");
}

// 02 — a cursor that comes back

#[test]
fn a_cursor_that_comes_back_ends_the_walk_with_a_warning() {
    let case = Case::new("02");
    let mut proxy = case.start();
    assert_eq!(opened(&proxy.load("loop")), ["n1", "n2", "n3", "n4"]);
    assert_eq!(opened(&proxy.load("fine")), ["f1", "f2"]);
    assert_eq!(text_of(&proxy.call("n1", json!({}))), "ok:n1");
    let n_lists = methods(&case.journal("journal-loop.jsonl")).iter().filter(|method| **method == "tools/list").count();
    assert!(n_lists <= 3, "{n_lists} pages were asked for");
    let log = proxy.stderr();
    let warning =
        log.lines().find(|line| line.contains("a cursor came back")).unwrap_or_else(|| panic!("no warning in {log}"));
    assert!(warning.contains("`loop`"), "{warning}");
}

// 17 — old and new servers

#[test]
fn servers_of_both_eras_serve_clients_of_both_eras() {
    let case = Case::new("17");
    let mut proxy = Proxy::with_config(&case.clients_config());
    // A client that arrives in the newer way, so that servers are probed.
    proxy.result("server/discover", json!({"_meta": modern_meta()}));
    proxy.initialize();
    for server in ["reject", "badparams", "silent", "exits", "modern", "dual"] {
        let key = proxy.load(server)["key"].clone();
        let tool = format!("tool_{server}");
        assert_eq!(text_of(&proxy.call(&tool, json!({}))), format!("ok:{tool}"));
        let modern = proxy.modern_call("tool_call_write", json!({"key": key, "name": tool}));
        assert_eq!((text_of(&modern), &modern["resultType"]), (&*format!("ok:{tool}"), &json!("complete")));
    }
    let journal = |server: &str| case.journal(&format!("journal-{server}.jsonl"));
    for server in ["reject", "badparams", "silent"] {
        assert_eq!(methods(&journal(server))[..2], ["server/discover", "initialize"], "{server}");
    }
    assert_eq!(
        methods(&journal("exits")).iter().filter(|method| **method == "server/discover").count(),
        1,
        "probed once"
    );
    for server in ["modern", "dual"] {
        let messages = journal(server);
        assert!(!methods(&messages).contains(&"initialize"), "{server}");
        assert_eq!(called(&messages).len(), 2, "{server}");
        for message in messages.iter().filter(|message| message["method"] != "notifications/cancelled") {
            for key in modern_meta().as_object().unwrap().keys() {
                assert!(message["params"]["_meta"].get(key).is_some(), "{server}: {key} in {message}");
            }
        }
    }
    for server in ["reject", "badparams", "silent", "exits"] {
        let calls = journal(server);
        let is_modern =
            |message: &Value| message["params"]["_meta"].get("io.modelcontextprotocol/protocolVersion").is_some();
        let n_modern = calls.iter().filter(|message| message["method"] == "tools/call" && is_modern(message)).count();
        assert_eq!(n_modern, 0, "{server} gets no member of an era that it does not know");
    }
}

#[test]
fn a_client_of_the_older_era_gets_servers_in_its_own_era_where_they_speak_it() {
    let case = Case::new("17");
    let mut proxy = case.start();
    for server in ["reject", "silent", "modern", "dual"] {
        proxy.load(server);
        let tool = format!("tool_{server}");
        assert_eq!(text_of(&proxy.call(&tool, json!({}))), format!("ok:{tool}"));
    }
    for (server, greeted_by) in [
        ("reject", &["initialize", "notifications/initialized"][..]),
        ("silent", &["initialize", "notifications/initialized"]),
        ("dual", &["initialize", "notifications/initialized"]),
        ("modern", &["initialize", "server/discover"]),
    ] {
        let journal = case.journal(&format!("journal-{server}.jsonl"));
        assert_eq!(&methods(&journal)[..2], greeted_by, "{server}");
    }
}
