//! The front over HTTP: who may connect, which status says what, sessions, streams that break, and the end.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    cases::{Case, ran},
    http::{HttpClient, Reply, Stream, connections, post, wait},
    process::proxy_of,
    proxy::{Proxy, modern_meta, text_of, upstream_names},
    wait_until,
    ways::{Way, in_ways},
};

const SECOND: Duration = Duration::from_secs(1);
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

/// A gatekey before one talking server, with these lines in its config, and a session.
fn talking(top: &str) -> (Case, Proxy) {
    let case = Case::talks(&["talks"]);
    // On a busy machine a server may need longer than clients are made to wait.
    let mut proxy = Proxy::opened(Way::Http, &case.own_config(&format!("start-wait-ms = 20000\n{top}")));
    proxy.load("talks");
    (case, proxy)
}

/// The status of a message in a session.
fn status(client: &HttpClient, line: &str) -> u16 {
    Reply::to(client.headed(post(&client.http, &client.url, line), &Value::Null)).status
}

fn call_line(id: u64, tool: &str, arguments: Value) -> String {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

/// Calls a tool on a stream that the test reads.
fn streamed(client: &HttpClient, id: u64, tool: &str, arguments: Value) -> Stream {
    Stream::open(client.headed(post(&client.http, &client.url, &call_line(id, tool, arguments)), &Value::Null))
}

// Who may connect

#[test]
fn foreign_hosts_and_origins_are_refused_on_every_route_to_an_upstream() {
    let allowed = "[http]\nallowed-hosts = [\"gate.example\"]\nallowed-origins = [\"https://ui.example\"]";
    let (_case, proxy) = talking(allowed);
    let http = connections();
    for path in ["/mcp", "/skill/talks/mcp"] {
        let url = proxy.url().replace("/mcp", path);
        for (header, value, expected) in [
            ("host", "evil.example", 403),
            ("host", "localhost.evil.example:80", 403),
            ("origin", "https://evil.example", 403),
            ("origin", "null", 403),
            ("host", "localhost:1", 200),
            ("host", "[::1]:1", 200),
            ("host", "gate.example", 200),
            ("origin", "http://localhost:5173", 200),
            ("origin", "https://ui.example", 200),
        ] {
            let reply = Reply::to(post(&http, &url, INITIALIZE).header(header, value));
            assert_eq!(reply.status, expected, "{path} {header}: {value}");
            assert_eq!(reply.headers.contains_key("mcp-session-id"), expected == 200);
        }
        let of_page = |request: reqwest::RequestBuilder| request.header("origin", "https://evil.example");
        let session = |request| proxy.http().headed(request, &Value::Null);
        for request in [http.get(&url), http.delete(&url), http.request(reqwest::Method::OPTIONS, &url)] {
            assert_eq!(Reply::to(of_page(session(request))).status, 403);
        }
    }
    assert_eq!(status(proxy.http(), PING), 200, "the session was not ended");
}

#[test]
fn errors_of_the_transport_have_a_status_and_those_of_applications_are_answers() {
    let (_case, proxy) = talking("");
    let client = proxy.http();
    let answered = |line: &str| {
        let reply = Reply::to(client.headed(post(&client.http, &client.url, line), &Value::Null));
        (reply.status, reply.json())
    };
    for (line, code) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"no/such/method"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}"#, -32602),
    ] {
        let (status, answer) = answered(line);
        assert_eq!((status, &answer["error"]["code"], &answer["id"]), (200, &json!(code), &json!(1)), "{line}");
    }
    let (status_of, unknown) = answered(&call_line(1, "nobody_has_this", json!({})));
    assert_eq!((status_of, &unknown["result"]["isError"]), (200, &json!(true)));
    for (line, code) in [("{", -32700), (r#"[{"id":1}]"#, -32600), ("", -32700)] {
        let (status, answer) = answered(line);
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(code)), "{line}");
    }
    assert_eq!(status(client, r#"{"jsonrpc":"2.0","method":"notifications/x"}"#), 202);

    let (http, url) = (connections(), proxy.url());
    let named = |id: &str| post(&http, url, PING).header("mcp-session-id", id);
    let id = client.session.as_deref().unwrap();
    let plain = http.post(url).header("content-type", "text/plain").body(PING);
    let put = Reply::to(http.put(url).body(PING));
    assert_eq!((put.status, put.header("allow")), (405, "GET, POST, DELETE"));
    for (request, expected) in [
        (plain, 415),
        (http.get(url), 405),
        (post(&http, url, PING), 400),
        (named("made-up"), 404),
        (named(id).header("mcp-protocol-version", "1999-01-01"), 400),
        (named(id), 200),
    ] {
        assert_eq!(Reply::to(request).status, expected);
    }
    // Only what is known is served, whatever a path looks like.
    for path in ["", "/", "/mcp/", "/mcp/talks", "/mcp/talks/mcp", "/mcp/a%2Fb", "/skill//mcp", "/skill/none/mcp"] {
        let url = url.replace("/mcp", path);
        assert_eq!(Reply::to(post(&http, &url, INITIALIZE)).status, 404, "{path}");
    }
}

#[test]
fn bodies_and_headers_over_their_limits_cost_their_own_request() {
    let (case, mut proxy) = talking("line-limit-bytes = 65536");
    let long = call_line(9, "put", json!({"data": "x".repeat(70_000)}));
    assert_eq!(status(proxy.http(), &long), 413);
    let mut many = post(&proxy.http().http, proxy.url(), PING);
    for number in 0..150 {
        many = many.header(format!("x-{number}"), "x");
    }
    assert_eq!(Reply::to(many).status, 431);
    assert_eq!(text_of(&proxy.call("put", json!({"data": "x".repeat(60_000)}))), "put");
    assert_eq!(ran(&case.journal("journal-talks.jsonl")), ["put"]);
}

// Sessions

#[test]
fn a_session_ends_with_delete_and_its_calls_with_it() {
    let (case, mut proxy) = talking("");
    let mut other = proxy.another(Way::Http);
    let journal = || case.journal("journal-talks.jsonl");
    proxy.ask("tools/call", json!({"name": "nap", "arguments": {"seconds": 30}}));
    wait_until("the nap begins", 5 * SECOND, || ran(&journal()) == ["nap"]);
    let client = proxy.http();
    let session = |request| Reply::to(client.headed(request, &Value::Null)).status;
    assert_eq!(session(client.http.delete(&client.url)), 200);
    wait_until("the nap is cancelled", 2 * SECOND, || {
        journal().iter().any(|message| message["method"] == "notifications/cancelled")
    });
    assert_eq!(status(client, PING), 404);
    assert_eq!([session(client.get()), session(client.http.delete(&client.url))], [404, 404]);
    assert_eq!(other.result("ping", json!({})), json!({}));
}

#[test]
fn a_session_too_many_is_refused_until_one_is_idle() {
    let (_case, mut first) = talking("[http]\nsessions = 2\nsession-idle-s = 1");
    let second = first.another(Way::Http);
    let old = second.http().session.clone().unwrap();
    let (http, url) = (connections(), first.url().to_owned());
    let open = || Reply::to(post(&http, &url, INITIALIZE)).status;
    assert_eq!(open(), 503);
    // Both have an open stream; this one's breaks.
    drop(second);
    wait_until("the idle session makes room", 5 * SECOND, || open() == 200);
    let gone = Reply::to(post(&http, &url, PING).header("mcp-session-id", old));
    assert_eq!(gone.status, 404);
    assert_eq!(first.result("ping", json!({})), json!({}));
}

in_ways! { [http modern_http]
fn the_endpoint_of_a_skill_has_its_tools_open_from_the_start_and_no_others(way: Way) {
    let case = Case::talks(&["one", "two"]);
    let whole = Proxy::opened(Way::Http, &case.own_config("start-wait-ms = 20000"));
    let url = whole.url().replace("/mcp", "/skill/two/mcp");
    let mut proxy = whole.another_at(way, url.clone());
    if !way.is_modern() {
        proxy.initialize();
    }
    let listed = proxy.list();
    let names = upstream_names(&listed);
    assert!(!names.is_empty() && names.iter().all(|name| name.starts_with("two_")), "{names:?}");
    assert_eq!(text_of(&proxy.call("two_put", json!({}))), "put");
    assert_eq!(proxy.call("put", json!({}))["structuredContent"]["code"], "inactive");
    let strayed = whole.http().headed(post(&whole.http().http, &url, PING), &Value::Null);
    assert_eq!(Reply::to(strayed).status, 404, "a session belongs to where it was opened");
}
}

// Streams

#[test]
fn a_stream_that_is_opened_again_replaces_the_one_before() {
    let (_case, mut proxy) = talking("");
    let mut first = Stream::open(proxy.http().get());
    let mut second = Stream::open(proxy.http().get());
    assert_eq!(first.next(), None, "it ends");
    proxy.call("say", json!({"texts": ["hello"], "later": true}));
    assert_eq!(second.next().unwrap().1["params"]["data"], "hello");
}

#[test]
fn a_silent_stream_shows_that_it_is_alive() {
    let (_case, proxy) = talking("");
    let mut unasked = Stream::open(proxy.http().get());
    let mut call = streamed(proxy.http(), 7, "nap", json!({"seconds": 18}));
    // That it is open, and after a quarter of a minute that it still is.
    for stream in [&mut unasked, &mut call] {
        wait("it is open", stream.next_event());
    }
    for stream in [&mut unasked, &mut call] {
        let event = wait("a comment", stream.next_event()).unwrap();
        assert!(event.id.is_none() && event.data.is_empty(), "{event:?}");
    }
}

#[test]
fn streams_that_nobody_reads_stop_neither_their_session_nor_others() {
    let (case, mut proxy) = talking("");
    let mut other = proxy.another(Way::Http);
    other.load("talks");
    let n_said = || case.journal("journal-talks.jsonl").iter().filter(|note| note.get("said").is_some()).count();
    let texts = [vec!["x"; 39], vec!["z"]].concat();
    // Forty MiB, more than the queue of a stream and what the system holds.
    let _call = streamed(proxy.http(), 7, "say", json!({"texts": texts, "times": 1 << 20}));
    wait_until("all is said", 20 * SECOND, || n_said() == 1);
    for client in [&mut proxy, &mut other] {
        assert_eq!(text_of(&client.call("put", json!({}))), "put");
    }
    let _unasked = Stream::open(proxy.http().get());
    other.call("say", json!({"texts": texts, "times": 1 << 20, "later": true}));
    other.wait_for("the last word", 20 * SECOND, |message| {
        message["params"]["data"].as_str().is_some_and(|data| data.starts_with('z'))
    });
    for client in [&mut proxy, &mut other] {
        assert_eq!(text_of(&client.call("put", json!({}))), "put");
    }
}

/// What is left of a stream, without ids.
fn rest(mut stream: Stream) -> Vec<Value> {
    std::iter::from_fn(|| stream.next()).map(|(_, message)| message).collect()
}

#[test]
fn a_call_whose_stream_breaks_is_taken_up_with_exactly_what_was_missed() {
    let (case, proxy) = talking("");
    let client = proxy.http();
    let mut stream = streamed(client, 7, "work", json!({"steps": 8}));
    let mut last = None;
    for expected in 1..=2 {
        let (id, message) = stream.next().unwrap();
        assert_eq!(message["params"]["progress"], expected);
        last = id;
    }
    drop(stream);
    let again = rest(Stream::open(client.get().header("last-event-id", last.unwrap())));
    let steps: Vec<&Value> = again.iter().map(|message| &message["params"]["progress"]).collect();
    let answer = again.last().unwrap();
    assert_eq!(steps, [&json!(3), &json!(4), &json!(5), &json!(6), &json!(7), &json!(8), &Value::Null]);
    assert_eq!((&answer["id"], text_of(&answer["result"])), (&json!(7), "worked"));
    assert_eq!(ran(&case.journal("journal-talks.jsonl")), ["work"]);
}

#[test]
fn an_answer_that_went_into_a_dead_connection_is_sent_again() {
    let (_case, mut proxy) = talking("");
    // As a network does that is gone without a word: the stream is neither read nor closed.
    let mut dead = streamed(proxy.http(), 7, "nap", json!({"seconds": 0.5}));
    let begun = dead.next_id().unwrap().id.unwrap();
    proxy.call("nap", json!({"seconds": 1}));
    let again = rest(Stream::open(proxy.http().get().header("last-event-id", begun)));
    assert_eq!(again.len(), 1);
    assert_eq!((&again[0]["id"], text_of(&again[0]["result"])), (&json!(7), "woke"));
}

#[test]
fn what_nobody_asked_for_is_kept_while_the_stream_is_broken() {
    let (_case, mut proxy) = talking("");
    let mut other = proxy.another(Way::Http);
    let mut say = |proxy: &mut Proxy, text: &str| {
        proxy.call("say", json!({"texts": [text], "later": true}));
        other.wait_for(text, 5 * SECOND, |message| message["params"]["data"] == text);
    };
    let mut stream = Stream::open(proxy.http().get());
    say(&mut proxy, "first");
    let (last, first) = stream.next().unwrap();
    assert_eq!(first["params"]["data"], "first");
    drop(stream);
    for text in ["second", "third"] {
        say(&mut proxy, text);
    }
    let mut again = Stream::open(proxy.http().get().header("last-event-id", last.unwrap()));
    for text in ["second", "third"] {
        assert_eq!(again.next().unwrap().1["params"]["data"], text);
    }
}

// Beginning and end

#[test]
fn health_is_told_at_once_and_readiness_when_the_first_list_is_known() {
    let mut case = Case::talks(&["talks"]);
    case.add_args("talks", &["--init-delay", "1.5"]);
    let proxy = Proxy::spawn_in(Way::ModernHttp, proxy_of(&case.own_config("start-wait-ms = 20000")));
    let http = connections();
    let get = |path: &str| Reply::to(http.get(proxy.url().replace("/mcp", path)));
    assert_eq!((get("/healthz").status, get("/readyz").status), (200, 503));
    wait_until("it is ready", 20 * SECOND, || get("/readyz").status == 200);
}

in_ways! { [http modern_http]
fn a_call_in_flight_is_answered_before_the_end(way: Way) {
    let case = Case::talks(&["talks"]);
    let mut proxy = Proxy::opened(way, &case.own_config("start-wait-ms = 20000"));
    proxy.load("talks");
    let id = proxy.ask("tools/call", json!({"name": "nap", "arguments": {"seconds": 2}}));
    wait_until("the nap begins", 5 * SECOND, || ran(&case.journal("journal-talks.jsonl")) == ["nap"]);
    proxy.signal("TERM");
    let (http, url) = (connections(), proxy.url().replace("/mcp", "/healthz"));
    wait_until("no more connections are taken", 2 * SECOND, || wait("an end", http.get(&url).header("connection", "close").send()).is_err());
    assert_eq!(text_of(&proxy.answer_to(id)["result"]), "woke");
    assert_eq!(proxy.ended(10 * SECOND).code(), Some(0));
}
}

#[test]
fn a_modern_subscription_ends_with_the_program_and_with_its_connection() {
    let (_case, mut proxy) = talking("");
    let listen = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
        "params": {"notifications": {"promptsListChanged": true}, "_meta": modern_meta()}});
    let client = proxy.http();
    let open = || Stream::open(client.headed(post(&client.http, &client.url, &listen.to_string()), &listen));
    let (mut kept, mut closed) = (open(), open());
    for stream in [&mut kept, &mut closed] {
        assert_eq!(stream.next().unwrap().1["method"], "notifications/subscriptions/acknowledged");
    }
    drop(closed);
    proxy.call("tell", json!({"method": "notifications/prompts/list_changed"}));
    assert_eq!(kept.next().unwrap().1["method"], "notifications/prompts/list_changed");
    proxy.signal("TERM");
    assert_eq!(kept.next(), None);
    assert_eq!(proxy.ended(10 * SECOND).code(), Some(0));
}
