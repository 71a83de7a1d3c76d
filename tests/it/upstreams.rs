//! Cases of `tests/cases` about upstreams' lives: greeting them, walking their lists, their news, their crashes.

use std::time::{Duration, Instant};

use gatekey::model::limits::BACKOFF_FIRST;
use serde_json::{Value, json};

use crate::support::{
    cases::{Case, called},
    process::proxy_of,
    proxy::{Proxy, modern_meta, names, text_of},
    wait_until,
    ways::{Way, in_ways},
};

const SECOND: Duration = Duration::from_secs(1);

fn methods(journal: &[Value]) -> Vec<&str> {
    journal.iter().filter_map(|message| message["method"].as_str()).collect()
}

fn opened(loaded: &Value) -> Vec<&str> {
    loaded["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect()
}

// 01 — cursors

in_ways! { [stdio http modern_stdio modern_http]
fn lists_are_walked_to_their_end_by_the_servers_own_cursors(way: Way) {
    let case = Case::new("01").all_the_way(way);
    let mut proxy = case.start_in(way);
    let alpha: Vec<String> = (1..=14).map(|number| format!("t{number:02}")).collect();
    assert_eq!(opened(&proxy.load("alpha")), alpha);
    assert_eq!(opened(&proxy.load("beta")), ["u01", "u02", "u03"]);
    for tool in ["t14", "u03"] {
        assert_eq!(text_of(&proxy.call(tool, json!({}))), format!("ok:{tool}"));
    }
    let journal = case.messages("journal-alpha.jsonl");
    let cursors: Vec<&Value> = journal
        .iter()
        .filter(|message| message["method"] == "tools/list")
        .map(|message| &message["params"]["cursor"])
        .collect();
    assert_eq!(cursors, [&Value::Null, &json!("at:8")]);
    let id = proxy.ask("tools/list", json!({"cursor": "at:8"}));
    assert_eq!(proxy.answer_to(id)["error"]["code"], -32602, "the server's cursor is none of ours");
}
}

// 02 — a cursor that comes back

in_ways! { [stdio http modern_stdio modern_http]
fn a_cursor_that_comes_back_ends_the_walk_with_a_warning(way: Way) {
    let case = Case::new("02").all_the_way(way);
    let mut proxy = case.start_in(way);
    assert_eq!(opened(&proxy.load("loop")), ["n1", "n2", "n3", "n4"]);
    assert_eq!(opened(&proxy.load("fine")), ["f1", "f2"]);
    assert_eq!(text_of(&proxy.call("n1", json!({}))), "ok:n1");
    let n_lists = methods(&case.messages("journal-loop.jsonl")).iter().filter(|method| **method == "tools/list").count();
    assert!(n_lists <= 3, "{n_lists} pages were asked for");
    let log = proxy.stderr();
    let warning =
        log.lines().find(|line| line.contains("a cursor came back")).unwrap_or_else(|| panic!("no warning in {log}"));
    assert!(warning.contains("`loop`"), "{warning}");
}
}

// 11 — progress

/// The values of the progress under `token`, which all came before the answer to `id`.
fn progress_before(proxy: &Proxy, token: &Value, id: u64) -> Vec<Value> {
    let lines: Vec<Value> = proxy.raw.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer = lines.iter().position(|line| line["id"] == id).expect("there is an answer");
    let is_its = |line: &&Value| line["params"]["progressToken"] == *token;
    assert!(!lines[answer..].iter().any(|line| is_its(&line)), "progress after the answer");
    lines[..answer].iter().filter(is_its).map(|line| line["params"]["progress"].clone()).collect()
}

in_ways! { [stdio http modern_stdio modern_http]
fn progress_reaches_the_call_that_asked_for_it_and_no_other(way: Way) {
    let case = Case::new("11");
    let mut proxy = case.start_in(way);
    proxy.load("worker");
    let work = |proxy: &mut Proxy, steps: u64, meta: Value| {
        proxy.ask("tools/call", json!({"name": "work", "arguments": {"steps": steps}, "_meta": meta}))
    };
    let tokens = [json!(1), json!("1")];
    let asked = [0, 1].map(|index: usize| work(&mut proxy, 3, json!({"progressToken": tokens[index]})));
    for id in asked {
        assert_eq!(text_of(&proxy.answer_to(id)["result"]), "steps 3, meta progressToken");
    }
    for (id, token) in asked.iter().zip(&tokens) {
        assert_eq!(progress_before(&proxy, token, *id), [json!(1), json!(2), json!(3)], "{token}");
    }
    let calls = case.journal("journal.jsonl");
    let seen: Vec<&Value> = calls
        .iter()
        .filter(|message| message["method"] == "tools/call")
        .map(|message| &message["params"]["_meta"]["progressToken"])
        .collect();
    assert!(seen.len() == 2 && seen[0] != seen[1], "{seen:?}");

    let n_progress = |proxy: &mut Proxy| proxy.count(|message| message["method"] == "notifications/progress");
    let before = n_progress(&mut proxy);
    let meta = json!({"com.example/trace": {"id": "t-1", "hops": [1.0, null]}});
    let id = work(&mut proxy, 2, meta.clone());
    assert_eq!(text_of(&proxy.answer_to(id)["result"]), "steps 2, meta com.example/trace");
    assert_eq!(case.journal("journal.jsonl").last().unwrap()["params"]["_meta"], meta);

    let late = proxy.ask("tools/call", json!({"name": "late", "arguments": {}, "_meta": {"progressToken": "k"}}));
    assert_eq!(text_of(&proxy.answer_to(late)["result"]), "answered");
    assert_eq!(text_of(&proxy.call("rude", json!({}))), "answered");
    // Its progress comes half a second after the answer, and ten steps of the same server take a whole one.
    let id = work(&mut proxy, 10, json!({}));
    proxy.answer_to(id);
    assert_eq!(n_progress(&mut proxy), before, "nobody asked for any more");
}
}

in_ways! { [http modern_http]
fn progress_of_two_clients_with_the_same_token_is_not_crossed(way: Way) {
    let case = Case::new("11");
    let mut ann = case.start_in(way);
    let mut bob = ann.another(way);
    let token = json!(1);
    let ids = [(&mut ann, 3), (&mut bob, 5)].map(|(proxy, steps)| {
        proxy.load("worker");
        let arguments = json!({"steps": steps});
        proxy.ask("tools/call", json!({"name": "work", "arguments": arguments, "_meta": {"progressToken": token}}))
    });
    for (proxy, id, steps) in [(&mut ann, ids[0], 3), (&mut bob, ids[1], 5)] {
        proxy.answer_to(id);
        let expected: Vec<Value> = (1..=steps).map(|step| json!(step)).collect();
        assert_eq!(progress_before(proxy, &token, id), expected);
    }
}
}

// 17 — old and new servers

in_ways! { [stdio http]
fn servers_of_both_eras_serve_clients_of_both_eras(way: Way) {
    let case = Case::new("17");
    let mut proxy = Proxy::spawn_in(way, proxy_of(&case.clients_config()));
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
}

// Over HTTP servers are greeted before any client is there.
#[test]
fn a_client_of_the_older_era_gets_servers_in_its_own_era_where_they_speak_it() {
    let case = Case::new("17");
    let mut proxy = case.start_in(Way::Stdio);
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

// 18 — crashes

/// Calls `pid` until it is answered by the server.
fn wait_for_pid(proxy: &mut Proxy, most: Duration) -> String {
    let mut said = String::new();
    wait_until("the server is there again", most, || {
        text_of(&proxy.call("pid", json!({}))).clone_into(&mut said);
        said.starts_with("pid ")
    });
    said
}

in_ways! { [stdio http modern_stdio modern_http]
fn a_crashed_server_comes_back_whole_after_pauses_that_grow_and_its_neighbor_is_not_disturbed(way: Way) {
    let case = Case::new("18");
    let mut proxy = case.start_in(way);
    proxy.load("shaky");
    proxy.load("steady");
    let steady = text_of(&proxy.call("steady_pid", json!({}))).to_owned();
    let first = wait_for_pid(&mut proxy, 5 * SECOND);

    let nap = proxy.ask("tools/call", json!({"name": "nap"}));
    wait_until("the nap begins", 5 * SECOND, || called(&case.journal("journal-shaky.jsonl")).contains(&"nap"));
    let boom = proxy.ask("tools/call", json!({"name": "boom"}));
    for id in [nap, boom] {
        let result = proxy.answer_within(id, 2 * SECOND)["result"].clone();
        assert_eq!(result["isError"], true, "{result}");
        for part in ["`shaky`", "code 1", "fatal: lost the database"] {
            assert!(text_of(&result).contains(part), "{part} in {result}");
        }
    }
    // An idle machine takes half a second.
    assert_ne!(wait_for_pid(&mut proxy, 10 * SECOND), first);
    let journal = case.journal("journal-shaky.jsonl");
    let crash = journal.iter().position(|message| message["params"]["name"] == "boom").unwrap();
    let after = methods(&journal[crash + 1..]);
    assert_eq!(after, ["initialize", "notifications/initialized", "tools/list", "tools/call"]);
    let n_calls = |tool: &str| called(&journal).iter().filter(|name| **name == tool).count();
    assert_eq!([n_calls("nap"), n_calls("boom")], [1, 1], "what was in flight is not repeated");
    let all = ["boom", "nap", "pid", "steady_boom", "steady_nap", "steady_pid"];
    assert_eq!(names(&proxy.definitions(&["shaky", "steady"])), all);

    for number in 1..=3 {
        let crashed = Instant::now();
        assert_eq!(proxy.call("boom", json!({}))["isError"], true);
        if number < 3 {
            wait_for_pid(&mut proxy, 20 * SECOND);
            let pause = BACKOFF_FIRST * 2_u32.pow(number);
            assert!(crashed.elapsed() > pause, "crash {number}: {:?}", crashed.elapsed());
        } else {
            wait_until("the longest pause begins", SECOND, || proxy.stderr().contains("pause=8"));
        }
    }
    assert_eq!(text_of(&proxy.call("steady_pid", json!({}))), steady);
    let greeted = case.journal("journal-steady.jsonl");
    assert_eq!(methods(&greeted).iter().filter(|method| **method == "initialize").count(), 1);
}
}

// 23 — news of the list

fn n_lists(case: &Case) -> usize {
    methods(&case.journal("journal.jsonl")).iter().filter(|method| **method == "tools/list").count()
}

fn is_notice(message: &Value) -> bool {
    message["method"] == "notifications/tools/list_changed"
}

/// Opens everything and takes the news of that; returns the key.
fn load_busy(proxy: &mut Proxy, way: Way) -> Value {
    let key = proxy.load("busy")["key"].clone();
    proxy.list();
    proxy.subscribe();
    if !way.is_modern() {
        // Loading told of it.
        proxy.wait_for("news of the load", SECOND, is_notice);
    }
    key
}

/// Calls a tool that changes the list and waits until the client is told; returns what the tool said.
fn change(proxy: &mut Proxy, tool: &str) -> String {
    let said = text_of(&proxy.call(tool, json!({}))).to_owned();
    // An idle machine takes 150 ms.
    proxy.wait_for(&format!("news of {tool}"), 4 * SECOND, is_notice);
    said
}

fn described(proxy: &mut Proxy, key: &Value, query: &str) -> Vec<String> {
    let found = proxy.call("tool_describe", json!({"query": query, "key": key}));
    let tools = found["structuredContent"]["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
}

in_ways! { [stdio http modern_stdio modern_http]
fn a_storm_of_news_costs_little_and_real_news_reach_list_search_and_gate(way: Way) {
    let case = Case::new("23");
    let mut proxy = case.start_in(way);
    let key = load_busy(&mut proxy, way);
    let own = ["grow", "shrink", "storm", "swap"];
    assert_eq!(names(&proxy.definitions(&["busy"])), own);

    let before = n_lists(&case);
    assert_eq!(text_of(&proxy.call("storm", json!({"n": 200}))), "stormed");
    wait_until("the server is asked again", 4 * SECOND, || n_lists(&case) > before);
    assert_eq!(change(&mut proxy, "grow"), "extra_4");
    assert!(n_lists(&case) <= before + 3 + 1, "{} lists for a storm and one change", n_lists(&case) - before);
    assert_eq!(proxy.count(is_notice), 0, "the storm was no news, and growing is told once");

    assert_eq!(names(&proxy.definitions(&["busy"])), ["extra_4", "grow", "shrink", "storm", "swap"]);
    assert_eq!(text_of(&proxy.call("extra_4", json!({}))), "ok:extra_4");
    assert_eq!(described(&mut proxy, &key, "extra_4"), ["extra_4"]);

    assert_eq!(described(&mut proxy, &key, "renewed"), [""; 0]);
    if way.is_modern() {
        // The list of a modern client has no definitions of opened tools, so it stays as it is.
        assert_eq!(text_of(&proxy.call("swap", json!({}))), "swapped");
        wait_until("it is known", 4 * SECOND, || !described(&mut proxy, &key, "renewed").is_empty());
    } else {
        assert_eq!(change(&mut proxy, "swap"), "swapped");
    }
    let listed = proxy.definitions(&["busy"]);
    let storm = listed.iter().find(|tool| tool["name"] == "storm").unwrap();
    assert!(storm["description"].as_str().unwrap().contains("renewed"), "{storm}");
    assert_eq!(described(&mut proxy, &key, "renewed")[0], "storm");

    assert_eq!(change(&mut proxy, "shrink"), "extra_4");
    assert_eq!(names(&proxy.definitions(&["busy"])), own);
    assert_eq!(proxy.call("extra_4", json!({}))["structuredContent"]["code"], "not_found");
    assert_eq!(described(&mut proxy, &key, "extra_4"), [""; 0]);
    assert_eq!(proxy.count(is_notice), 0, "each change is told once");

    let whole = proxy.result("tools/list", json!({}));
    assert!(whole.get("nextCursor").is_none(), "the list is one page, so no client is in the middle of it");
    let id = proxy.ask("tools/list", json!({"cursor": "at:1"}));
    assert_eq!(proxy.answer_to(id)["error"]["code"], -32602);
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn a_server_that_tells_of_changes_without_end_is_asked_now_and_then_and_serves_all_the_while(way: Way) {
    let mut case = Case::new("23");
    case.add_args("busy", &["--tick"]);
    let mut proxy = case.start_in(way);
    load_busy(&mut proxy, way);
    let (started, before) = (Instant::now(), n_lists(&case));
    wait_until("five seconds are over", 20 * SECOND, || {
        let id = proxy.ask("tools/call", json!({"name": "storm", "arguments": {"n": 0}}));
        // Alone on the machine it takes a few milliseconds.
        assert_eq!(text_of(&proxy.answer_within(id, SECOND)["result"]), "stormed");
        started.elapsed() > 5 * SECOND
    });
    let (n_asked, most) = (n_lists(&case) - before, 2 * started.elapsed().as_secs());
    assert!((1..=most).contains(&(n_asked as u64)), "{n_asked} lists, at most {most} are right");
    assert_eq!(proxy.count(is_notice), 0, "nothing has changed");
    assert_eq!(change(&mut proxy, "grow"), "extra_4");
    assert_eq!(names(&proxy.definitions(&["busy"])), ["extra_4", "grow", "shrink", "storm", "swap"]);
}
}
