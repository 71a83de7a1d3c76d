//! Upstreams over HTTP: sessions that expire, connections that break, streams that end early, errors with a status, and
//! what is sent to whom. The server of `tests/cases/talks` fails as it is told.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use serde_json::{Value, json};

use crate::support::{
    cases::{Case, ran},
    process::proxy_of,
    proxy::{Proxy, text_of},
    running::Running,
    wait_until,
    ways::{Way, in_ways},
};

const SECOND: Duration = Duration::from_secs(1);
const JOURNAL: &str = "journal-far.jsonl";

/// The talking server over HTTP as `far`.
fn far() -> (Case, Running, PathBuf) {
    let mut case = Case::talks(&["far"]);
    let server = case.over_http("far");
    let config = case.own_config("start-wait-ms = 20000");
    (case, server, config)
}

/// A client of such a gatekey, with everything open.
fn opened(way: Way) -> (Case, Running, Proxy) {
    let (case, server, config) = far();
    let mut proxy = Proxy::opened(way, &config);
    proxy.load("far");
    (case, server, proxy)
}

/// The messages that reached the server, with the headers and the port that they came with.
fn received(case: &Case, method: &str) -> Vec<Value> {
    case.journal(JOURNAL).into_iter().filter(|note| note["message"]["method"] == method).collect()
}

fn n_ran(case: &Case, tool: &str) -> usize {
    ran(&case.journal(JOURNAL)).iter().filter(|name| **name == tool).count()
}

in_ways! { [stdio http modern_http]
fn a_session_that_the_server_forgot_is_opened_anew_and_no_call_is_lost_or_made_twice(way: Way) {
    let (case, _server, mut proxy) = opened(way);
    let n_greetings = received(&case, "initialize").len();
    let nap = proxy.ask("tools/call", json!({"name": "nap", "arguments": {"seconds": 1.5}}));
    wait_until("the nap begins", 5 * SECOND, || n_ran(&case, "nap") == 1);
    proxy.call("forget", json!({}));
    let puts: Vec<u64> = (0..5).map(|_| proxy.ask("tools/call", json!({"name": "put", "arguments": {}}))).collect();
    for id in puts {
        assert_eq!(text_of(&proxy.answer_to(id)["result"]), "put");
    }
    assert_eq!(text_of(&proxy.answer_to(nap)["result"]), "woke");
    assert_eq!(["nap", "forget", "put"].map(|tool| n_ran(&case, tool)), [1, 1, 5]);
    assert_eq!(received(&case, "initialize").len(), n_greetings + 1, "one new session for all");
}
}

in_ways! { [stdio modern_http]
fn a_write_whose_connection_breaks_is_told_and_never_made_again(way: Way) {
    let (case, _server, mut proxy) = opened(way);
    let broken = proxy.call("drop", json!({}));
    assert_eq!((&broken["isError"], &broken["structuredContent"]["code"]), (&json!(true), &json!("unavailable")));
    assert!(text_of(&broken).contains("`far`") && text_of(&broken).contains("check before"), "{broken}");
    assert_eq!(text_of(&proxy.call("put", json!({}))), "put", "the server still serves");
    assert_eq!(n_ran(&case, "drop"), 1);
}
}

in_ways! { [stdio modern_http]
fn a_read_whose_connection_breaks_is_made_again(way: Way) {
    let (case, _server, mut proxy) = opened(way);
    let read = proxy.result("resources/read", json!({"uri": "doc://flaky"}));
    assert_eq!(read["contents"][0]["text"], "read at last");
    assert_eq!(received(&case, "resources/read").len(), 2);
}
}

#[test]
fn a_stream_that_ends_before_its_answer_is_taken_up_where_the_server_lets_us() {
    let (case, _server, mut proxy) = opened(Way::Http);
    assert_eq!(text_of(&proxy.call("early", json!({"id": "e1"}))), "taken up");
    let lost = proxy.call("early", json!({}));
    assert_eq!(lost["structuredContent"]["code"], "unavailable", "{lost}");
    assert!(text_of(&lost).contains("without an answer"), "{lost}");
    assert_eq!(n_ran(&case, "early"), 2, "neither was made again");
}

in_ways! { [stdio http modern_http]
fn errors_with_a_status_are_passed_on_where_they_are_answers_and_named_where_not(way: Way) {
    let (case, _server, mut proxy) = opened(way);
    let error = json!({"code": -32050, "message": "sign in first", "data": {"at": "https://example.com"}});
    for code in [200, 400, 401, 500] {
        let arguments = json!({"code": code, "body": {"error": error}});
        let id = proxy.ask("tools/call", json!({"name": "status", "arguments": arguments}));
        assert_eq!(proxy.answer_to(id)["error"], error, "{code}");
    }
    // A redirect is not followed: it would take the call, and the headers of the config, elsewhere.
    let elsewhere = json!({"code": 307, "headers": {"Location": "/elsewhere"}});
    for arguments in [json!({"code": 401}), json!({"code": 503}), json!({"code": 405}), elsewhere] {
        let refused = proxy.call("status", arguments.clone());
        assert_eq!(refused["structuredContent"]["code"], "unavailable", "{refused}");
        let status = arguments["code"].to_string();
        assert!(text_of(&refused).contains("`far`") && text_of(&refused).contains(&status), "{refused}");
    }
    assert_eq!(n_ran(&case, "status"), 8, "each was made once");
    assert_eq!(text_of(&proxy.call("put", json!({}))), "put");
}
}

#[test]
fn a_hundred_calls_share_a_session_and_a_connection() {
    let (case, _server, mut proxy) = opened(Way::Stdio);
    for _ in 0..100 {
        assert_eq!(text_of(&proxy.call("put", json!({}))), "put");
    }
    let calls = received(&case, "tools/call");
    let ports: BTreeSet<u64> = calls.iter().filter_map(|call| call["port"].as_u64()).collect();
    assert_eq!(calls.len(), 100);
    // On a busy machine the one that was just used may not be back yet when the next call goes.
    assert!(ports.len() <= 10, "{} connections", ports.len());
    assert_eq!(received(&case, "initialize").len(), 1);
}

in_ways! { [stdio modern_http]
fn headers_of_the_config_reach_the_server_and_no_log(way: Way) {
    let (mut case, _server, _) = far();
    case.servers["far"]["headers"] = json!({"Authorization": "Bearer ${MX_SET}"});
    let url = case.servers["far"]["url"].as_str().unwrap().to_owned();
    case.servers["far"]["url"] = json!(format!("{url}?tenant=${{MX_SET}}"));
    let mut command = proxy_of(&case.own_config("start-wait-ms = 20000"));
    command.env("MX_SET", "s3cr3t");
    let mut proxy = Proxy::spawn_in(way, command).greeted();
    proxy.load("far");
    assert_eq!(text_of(&proxy.call("put", json!({}))), "put");
    assert_eq!(proxy.call("drop", json!({}))["isError"], true);
    for note in case.journal(JOURNAL).iter().filter(|note| note.get("headers").is_some()) {
        assert_eq!(note["headers"]["authorization"], "Bearer s3cr3t", "{note}");
    }
    assert!(!proxy.stderr().contains("s3cr3t") && !proxy.raw.concat().contains("s3cr3t"));
}
}

in_ways! { [stdio http modern_http]
fn a_cancelled_call_ends_at_the_server(way: Way) {
    let (case, _server, mut proxy) = opened(way);
    let nap = proxy.ask("tools/call", json!({"name": "nap", "arguments": {"seconds": 30}}));
    wait_until("the nap begins", 5 * SECOND, || n_ran(&case, "nap") == 1);
    proxy.cancel(nap, "enough");
    wait_until("the server is told", 2 * SECOND, || !received(&case, "notifications/cancelled").is_empty());
    let asked = &received(&case, "tools/call")[0]["message"]["id"];
    assert_eq!(received(&case, "notifications/cancelled")[0]["message"]["params"]["requestId"], *asked);
    assert_eq!(text_of(&proxy.call("put", json!({}))), "put");
}
}

#[test]
fn a_server_that_cannot_be_reached_costs_its_own_calls() {
    let mut case = Case::talks(&["near", "far"]);
    // A port that nobody listens on any more.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    case.servers["far"] = json!({"url": format!("http://127.0.0.1:{port}/mcp"), "prefix": "far_"});
    let mut proxy = Proxy::opened(Way::Http, &case.own_config(""));
    proxy.load("near");
    assert_eq!(text_of(&proxy.call("put", json!({}))), "put");
    let loaded = proxy.load("far");
    let warning = loaded["warnings"][0].as_str().unwrap_or_default();
    assert!(warning.contains("far") && warning.contains("cannot be reached"), "{loaded}");
    assert!(!warning.contains("127.0.0.1"), "an address may hold secrets: {warning}");
}
