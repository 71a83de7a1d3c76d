//! Attacks over HTTP: others' sessions, streams and questions; hosts and pages that are none of ours; requests that two
//! readers would read differently; what dawdles, and what is too much.

use std::{
    io::Write as _,
    net::TcpStream,
    path::PathBuf,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::auth::token;
use crate::support::{
    cases::{Case, ran},
    http::{HttpClient, Reply, Stream, connections, post},
    process::proxy_of,
    proxy::{PATIENCE, Proxy, modern_meta, text_of},
    raw::{connect, exchange, statuses, until},
    ways::{Way, in_ways},
};

const SECOND: Duration = Duration::from_secs(1);
pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;
pub(crate) const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

/// The talking server before a gatekey that asks for tokens.
pub(crate) fn guarded() -> (Case, PathBuf) {
    let case = Case::talks(&["talks"]);
    let config = case.own_config("start-wait-ms = 20000\n[http.auth]\ntokens = \"tokens.json\"");
    (case, config)
}

/// The talking server before a gatekey that serves whoever reaches it, with a client that has everything open.
pub(crate) fn open(top: &str) -> (Case, Proxy) {
    let case = Case::talks(&["talks"]);
    let mut proxy = Proxy::opened(Way::Http, &case.own_config(&format!("start-wait-ms = 20000\n{top}")));
    proxy.load("talks");
    (case, proxy)
}

pub(crate) fn in_session(client: &HttpClient, line: &str) -> reqwest::RequestBuilder {
    client.headed(post(&client.http, &client.url, line), &Value::Null)
}

pub(crate) fn call_line(id: u64, tool: &str, arguments: &Value) -> String {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

/// The call of a session, as bytes of a request whose framing headers the test writes.
pub(crate) fn put_in(session: &str, framing: &str, body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-session-id: {session}\r\n{framing}\r\n\r\n{body}"
    )
}

/// Only the call that is allowed, and made here, has run.
pub(crate) fn only_the_last_call_ran(case: &Case, proxy: &mut Proxy) {
    assert_eq!(text_of(&proxy.call("put", json!({"it": "is allowed"}))), "put");
    assert_eq!(ran(&case.journal("journal-talks.jsonl")), ["put"]);
    let calls = case.journal("journal-talks.jsonl");
    let call = calls.iter().find(|message| message["method"] == "tools/call").unwrap();
    assert_eq!(call["params"]["arguments"], json!({"it": "is allowed"}));
}

// Others' sessions

#[test]
fn a_session_id_that_is_proposed_guessed_or_doubled() {
    let (case, config) = guarded();
    let [ann, bob] = ["ann", "bob"].map(|name| token(&config, name, &[]));
    let mut ann = Proxy::spawn_in(Way::Http, proxy_of(&config)).with_bearer(&ann).greeted();
    ann.load("talks");
    let stolen = ann.http().session.clone().unwrap();
    let (http, url) = (connections(), ann.url().to_owned());
    // Who proposes one is given another.
    for proposed in ["00000000000000000000000000000000", &*stolen] {
        let reply = Reply::to(post(&http, &url, INITIALIZE).bearer_auth(&bob).header("mcp-session-id", proposed));
        assert_eq!(reply.status, 200);
        assert_ne!(reply.header("mcp-session-id"), proposed);
    }
    let own: Vec<String> = (0..50)
        .map(|_| Reply::to(post(&http, &url, INITIALIZE).bearer_auth(&bob)).header("mcp-session-id").to_owned())
        .collect();
    let heads: std::collections::BTreeSet<&str> = own.iter().filter_map(|id| id.get(..8)).collect();
    assert!(heads.len() > 48 && own.iter().all(|id| id.len() >= 32), "they are random: {own:?}");
    let put = call_line(7, "put", &json!({}));
    let by_bob = || post(&http, &url, &put).bearer_auth(&bob);
    for ids in [
        vec![stolen.to_uppercase()],
        vec![format!("{stolen} ")],
        vec![format!("{stolen}, {}", own[0])],
        vec![format!("{}, {stolen}", own[0])],
        vec![format!("\"{stolen}\"")],
        vec![stolen.clone(), own[0].clone()],
        vec![stolen.get(..31).unwrap().to_owned()],
        vec!["*".to_owned()],
        vec![String::new()],
    ] {
        let mut request = by_bob();
        for id in &ids {
            request = request.header("mcp-session-id", id);
        }
        let reply = Reply::to(request);
        assert!([400, 404].contains(&reply.status), "{ids:?}: {reply:?}");
    }
    // With the other one first it is a session of bob's own, in which nothing is open that he has not opened.
    let reply = Reply::to(by_bob().header("mcp-session-id", &own[0]).header("mcp-session-id", &stolen));
    assert!(reply.status != 200 || reply.json()["result"]["structuredContent"]["code"] == "inactive", "{reply:?}");
    only_the_last_call_ran(&case, &mut ann);
}

#[test]
fn anothers_stream_by_its_event_ids() {
    let (case, config) = guarded();
    let tokens = ["ann", "bob"].map(|name| token(&config, name, &[]));
    let mut ann = Proxy::spawn_in(Way::Http, proxy_of(&config)).with_bearer(&tokens[0]).greeted();
    ann.load("talks");
    let mut call = Stream::open(in_session(ann.http(), &call_line(7, "work", &json!({"steps": 3}))));
    let first = call.next_id().unwrap().id.unwrap();
    while call.next().is_some() {}
    // Another caller, and another session of the same one.
    let others = [ann.another_as(Way::Http, &tokens[1]), ann.another_as(Way::Http, &tokens[0])];
    for other in &others {
        for event in [&*first, "0-0", "1-0", "1-1", "2-0", "-1", "0", "1", "18446744073709551615-0", "a-b", "1-0\t"] {
            let request = other.http().get().header("last-event-id", event);
            let response = crate::support::http::wait("an answer", request.send()).unwrap();
            let status = response.status().as_u16();
            if status == 200 {
                // A stream of its own, on which there is nothing.
                let mut stream = Stream::open(other.http().get().header("last-event-id", event));
                let opened = crate::support::http::wait("it is open", stream.next_event()).unwrap();
                assert!(opened.data.is_empty(), "{event}: {opened:?}");
            } else {
                assert_eq!(status, 404, "{event}");
            }
        }
    }
    let again: Vec<Value> = {
        let mut stream = Stream::open(ann.http().get().header("last-event-id", first));
        std::iter::from_fn(|| stream.next()).map(|(_, message)| message).collect()
    };
    assert_eq!(text_of(&again.last().unwrap()["result"]), "worked", "its owner takes it up");
    assert_eq!(ran(&case.journal("journal-talks.jsonl")), ["work"]);
}

in_ways! { [http modern_http]
fn anothers_call_cancelled(way: Way) {
    let (case, config) = guarded();
    let tokens = ["ann", "bob"].map(|name| token(&config, name, &[]));
    let mut ann = Proxy::spawn_in(Way::Http, proxy_of(&config)).with_bearer(&tokens[0]).greeted();
    ann.load("talks");
    let mut bob = ann.another_as(way, &tokens[1]);
    bob.load("talks");
    let id = ann.ask("tools/call", json!({"name": "work", "arguments": {"steps": 8}, "_meta": {"progressToken": "t"}}));
    ann.wait_for("it has begun", PATIENCE, |message| message["method"] == "notifications/progress");
    let upstream_id = case.journal("journal-talks.jsonl").iter().rfind(|message| message["params"]["name"] == "work").unwrap()["id"].clone();
    for forged in [json!(id), upstream_id, json!(id.to_string()), json!(null), json!([id]), json!(-1)] {
        let params = json!({"requestId": forged, "reason": "mine", "_meta": if way.is_modern() { modern_meta() } else { json!({}) }});
        bob.send_raw(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string());
    }
    assert_eq!(text_of(&ann.answer_to(id)["result"]), "worked");
    assert_eq!(text_of(&bob.call("put", json!({}))), "put");
    let text = std::fs::read_to_string(case.path("journal-talks.jsonl")).unwrap();
    assert!(!text.contains("notifications/cancelled"), "{text}");
}
}

#[test]
fn anothers_question_answered() {
    let (case, config) = guarded();
    let tokens = ["ann", "bob"].map(|name| token(&config, name, &[]));
    let nobody = Proxy::spawn_in(Way::Http, proxy_of(&config)).with_bearer(&tokens[0]).greeted();
    let mut clients = [0, 1].map(|index| {
        let mut client = nobody.another_at(Way::Http, nobody.url().to_owned()).with_bearer(&tokens[index]);
        client.initialize_as(&json!({"elicitation": {}, "sampling": {}, "roots": {}}));
        client.load("talks");
        client
    });
    let [ann, bob] = &mut clients;
    let params = json!({"message": "Pay?", "requestedSchema": {"type": "object", "properties": {}}});
    let id =
        ann.ask("tools/call", json!({"name": "ask", "arguments": {"method": "elicitation/create", "params": params}}));
    let question = ann.wait_for("the question", PATIENCE, |message| message["method"] == "elicitation/create");
    for forged in [question["id"].clone(), json!(question["id"].to_string()), json!(1), json!(2), json!(3)] {
        bob.send(json!({"id": forged, "result": {"action": "accept", "content": {"by": "bob"}}}));
        bob.send(json!({"id": forged, "error": {"code": 1, "message": "by bob"}}));
    }
    ann.send(json!({"id": question["id"], "result": {"action": "decline", "content": {"by": "ann"}}}));
    let said = ann.answer_to(id);
    assert!(text_of(&said["result"]).contains("\"ann\"") && !said.to_string().contains("bob"), "{said}");
    let text = std::fs::read_to_string(case.path("journal-talks.jsonl")).unwrap();
    assert!(!text.contains("bob"), "{text}");
}

// Hosts and pages

/// Names under which a page could have us looked up, or that a sloppy reader takes for this machine.
const FOREIGN_HOSTS: &[&str] = &[
    "evil.example",
    "evil.example:80",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil.example#localhost",
    "evil.example/localhost",
    "localhost@evil.example",
    "evil.example@localhost",
    "localhost:80@evil.example",
    "localhost evil.example",
    "localhost,evil.example",
    "localhost:evil",
    "localhost:",
    "localhost:80:80",
    ".localhost",
    "localhost..",
    "127.0.0.1.",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "127.0.0.2",
    "0.0.0.0",
    "0",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::1",
    "::1",
    "[::1]evil",
    "[::1].evil.example",
    "xn--localhst-o1a",
    "LOCALHOST.EVIL",
    "*",
    "",
    "\u{ff4c}ocalhost",
];

#[test]
fn hosts_that_are_names_of_somebody_else() {
    let (case, mut proxy) = open("");
    let session = proxy.http().session.clone().unwrap();
    let body = call_line(7, "put", &json!({}));
    let asked = |head: &str| {
        let framing = format!("connection: close\r\ncontent-length: {}", body.len());
        let request = put_in(&session, &framing, &body);
        exchange(proxy.url(), request.replacen("host: localhost", head, 1))
    };
    for host in FOREIGN_HOSTS {
        let said = asked(&format!("host: {host}"));
        assert!(matches!(statuses(&said)[..], [400 | 403]), "{host}: {said}");
    }
    for head in [
        "host: localhost\r\nhost: evil.example",
        "host: evil.example\r\nhost: localhost",
        "x-forwarded-host: localhost",
        "forwarded: host=localhost",
        "host: evil.example\r\nx-forwarded-host: localhost\r\nx-host: localhost\r\nx-original-host: localhost",
    ] {
        let said = asked(head);
        assert!(matches!(statuses(&said)[..], [400 | 403]), "{head}: {said}");
    }
    // A target with a host of its own does not stand in for the header, nor the older protocol for having none.
    for line in ["POST http://localhost/mcp HTTP/1.1", "POST /mcp HTTP/1.0"] {
        let framing = format!("connection: close\r\ncontent-length: {}", body.len());
        let request = put_in(&session, &framing, &body).replacen("POST /mcp HTTP/1.1", line, 1);
        let said = exchange(proxy.url(), request.replacen("host: localhost", "host: evil.example", 1));
        assert_eq!(statuses(&said), [403], "{line}: {said}");
        let said = exchange(proxy.url(), request.replacen("host: localhost\r\n", "", 1));
        assert!(matches!(statuses(&said)[..], [400 | 403]), "{line}: {said}");
    }
    only_the_last_call_ran(&case, &mut proxy);
}

#[test]
fn whom_a_gatekey_trusts_asked_by_a_page_of_somebody_else() {
    let (_case, config) = guarded();
    let proxy = Proxy::spawn_in(Way::Http, proxy_of(&config));
    let asked = |name: &str, value: &str| {
        let url = proxy.url().replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
        Reply::to(connections().get(url).header(name, value))
    };
    for (name, value) in [("host", "evil.example"), ("origin", "https://evil.example"), ("origin", "null")] {
        let reply = asked(name, value);
        assert!(reply.status == 403 && !reply.body.contains("resource"), "{name}: {value}: {reply:?}");
    }
    assert!(asked("origin", "http://localhost:5173").body.contains("\"resource\""));
}

#[test]
fn origins_that_are_pages_of_somebody_else() {
    let (case, mut proxy) = open("");
    for origin in [
        "null",
        "",
        "http://evil.example",
        "https://evil.example",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example",
        "http://localhost@evil.example",
        "http://localhost:80@evil.example",
        "http://evil.example#http://localhost",
        "http://localhost/x",
        "http://localhost http://evil.example",
        "https://localhost",
        "HTTP://LOCALHOST.EVIL",
        "file://",
        "chrome-extension://abcdefgh",
        "data:",
        "blob:http://localhost",
        "http://[::1].evil.example",
        "http://127.1",
        "http://0.0.0.0",
        "*",
    ] {
        for path in ["/mcp", "/skill/talks/mcp"] {
            let url = proxy.url().replace("/mcp", path);
            let request = in_session(proxy.http(), &call_line(7, "put", &json!({})));
            let reply = Reply::to(request.header("origin", origin));
            assert_eq!(reply.status, 403, "{origin}: {reply:?}");
            let reply = Reply::to(post(&proxy.http().http, &url, INITIALIZE).header("origin", origin));
            assert!(reply.status == 403 && !reply.headers.contains_key("mcp-session-id"), "{origin}: {reply:?}");
        }
    }
    let two =
        in_session(proxy.http(), PING).header("origin", "http://localhost").header("origin", "https://evil.example");
    assert_eq!(Reply::to(two).status, 403);
    only_the_last_call_ran(&case, &mut proxy);
}

#[test]
fn content_types_that_a_page_may_send_without_asking() {
    let (case, mut proxy) = open("");
    let session = proxy.http().session.clone().unwrap();
    let body = call_line(7, "put", &json!({}));
    // A page of this machine's own is let in by its origin, and must not come further than this.
    for kind in [
        "content-type: text/plain",
        "content-type: text/plain;charset=UTF-8",
        "content-type: text/plain; application/json",
        "content-type: text/plain;x=application/json",
        "content-type: application/x-www-form-urlencoded",
        "content-type: multipart/form-data; boundary=application/json",
        "content-type: application/jsonx",
        "content-type: application/json-seq",
        "content-type: text/json",
        "content-type: ",
        "content-type: ,application/json",
        "content-type: text/plain,application/json",
        "content-type: text/plain\r\ncontent-type: application/json",
        "x-content-type: application/json",
    ] {
        let framing = format!("origin: http://localhost:5173\r\nconnection: close\r\ncontent-length: {}", body.len());
        let request = put_in(&session, &framing, &body).replacen("content-type: application/json", kind, 1);
        let said = exchange(proxy.url(), request);
        assert_eq!(statuses(&said), [415], "{kind}: {said}");
    }
    only_the_last_call_ran(&case, &mut proxy);
}

#[test]
fn a_preflight_that_asks_whether_a_page_may() {
    let (_case, proxy) = open("");
    for path in ["/mcp", "/skill/talks/mcp", "/healthz", "/readyz", "/.well-known/oauth-protected-resource"] {
        let url = proxy.url().replace("/mcp", path);
        for origin in ["https://evil.example", "http://localhost:5173", "null"] {
            let asked = proxy.http().http.request(reqwest::Method::OPTIONS, &url).header("origin", origin);
            let asked = asked
                .header("access-control-request-method", "POST")
                .header("access-control-request-headers", "content-type, mcp-session-id")
                .header("access-control-request-private-network", "true");
            let got = proxy.http().http.get(&url).header("origin", origin);
            for reply in [Reply::to(asked), Reply::to(got)] {
                let allows = reply.headers.keys().any(|name| name.as_str().starts_with("access-control-"));
                assert!(!allows, "{path} {origin}: {reply:?}");
            }
        }
    }
}

// Requests that two readers read differently

#[test]
fn a_request_hidden_in_the_body_of_another() {
    let (case, mut proxy) = open("");
    let session = proxy.http().session.clone().unwrap();
    let put = call_line(7, "put", &json!({}));
    let hidden = put_in(&session, &format!("content-length: {}", put.len()), &put);
    let chunked_ping = format!("{:x}\r\n{PING}\r\n0\r\n\r\n", PING.len());
    let n_ping = PING.len();
    for (what, framing, body) in [
        (
            "both lengths, the longer one first",
            format!("content-length: {}\r\ntransfer-encoding: chunked", chunked_ping.len() + hidden.len()),
            format!("{chunked_ping}{hidden}"),
        ),
        (
            "both lengths, the longer one last",
            format!("transfer-encoding: chunked\r\ncontent-length: {}", chunked_ping.len() + hidden.len()),
            format!("{chunked_ping}{hidden}"),
        ),
        (
            "both lengths, the short one",
            "content-length: 4\r\ntransfer-encoding: chunked".to_owned(),
            format!("{chunked_ping}{hidden}"),
        ),
        (
            "an encoding that is none",
            format!("content-length: {n_ping}\r\ntransfer-encoding: xchunked"),
            format!("{PING}{hidden}"),
        ),
        (
            "an encoding behind chunks",
            format!("content-length: {n_ping}\r\ntransfer-encoding: chunked, identity"),
            format!("{PING}{hidden}"),
        ),
        (
            "an encoding with a blank before its colon",
            format!("content-length: {n_ping}\r\ntransfer-encoding : chunked"),
            format!("{PING}{hidden}"),
        ),
        (
            "an encoding on a folded line",
            format!("content-length: {n_ping}\r\ntransfer-encoding:\r\n chunked"),
            format!("{PING}{hidden}"),
        ),
        (
            "an encoding behind a bare line end",
            format!("content-length: {n_ping}\r\nx: y\rtransfer-encoding: chunked"),
            format!("{PING}{hidden}"),
        ),
        (
            "two lengths",
            format!("content-length: {n_ping}\r\ncontent-length: {}", n_ping + hidden.len()),
            format!("{PING}{hidden}"),
        ),
        (
            "two lengths the other way",
            format!("content-length: {}\r\ncontent-length: {n_ping}", n_ping + hidden.len()),
            format!("{PING}{hidden}"),
        ),
        (
            "a list of lengths",
            format!("content-length: {n_ping}, {}", n_ping + hidden.len()),
            format!("{PING}{hidden}"),
        ),
        ("a length with a sign", format!("content-length: +{n_ping}"), format!("{PING}{hidden}")),
        ("a negative length", "content-length: -1".to_owned(), format!("{PING}{hidden}")),
        ("a length in hex", format!("content-length: 0x{n_ping:x}"), format!("{PING}{hidden}")),
        ("a length beyond numbers", "content-length: 99999999999999999999999".to_owned(), format!("{PING}{hidden}")),
        ("a chunk with a negative size", "transfer-encoding: chunked".to_owned(), format!("-1\r\n{hidden}")),
        ("a chunk beyond numbers", "transfer-encoding: chunked".to_owned(), format!("fffffffffffffffff\r\n{hidden}")),
        (
            "a chunk with a sign",
            "transfer-encoding: chunked".to_owned(),
            format!("+{n_ping:x}\r\n{PING}\r\n0\r\n\r\n{hidden}"),
        ),
        (
            "a chunk longer than it says",
            "transfer-encoding: chunked".to_owned(),
            format!("2\r\n{PING}\r\n0\r\n\r\n{hidden}"),
        ),
        (
            "a chunk that ends in a bare line end",
            "transfer-encoding: chunked".to_owned(),
            format!("{n_ping:x}\n{PING}\n0\n\n{hidden}"),
        ),
    ] {
        let said = exchange(proxy.url(), put_in(&session, &framing, &body));
        // At most one answer, then the connection is over: what follows is nobody's.
        assert!(statuses(&said).len() <= 1, "{what}: {said}");
        assert!(!said.contains("\"put\""), "{what}: {said}");
    }
    only_the_last_call_ran(&case, &mut proxy);
}

#[test]
fn heads_that_a_lenient_reader_would_read_otherwise() {
    let (case, mut proxy) = open("");
    let session = proxy.http().session.clone().unwrap();
    let body = call_line(7, "put", &json!({}));
    let framing = format!("connection: close\r\ncontent-length: {}", body.len());
    let good = put_in(&session, &framing, &body);
    for (what, from, to) in [
        ("a NUL in a value", "host: localhost", "host: localhost\0"),
        ("a bare CR in a value", "host: localhost", "host: localhost\rx: y"),
        ("a folded line", "host: localhost", "x: y\r\n host: localhost"),
        ("a blank before a colon", "host: localhost", "host : localhost"),
        ("no colon", "host: localhost", "host localhost"),
        ("a name in odd letters", "host: localhost", "h\u{f6}st: localhost"),
        ("a blank in the target", "POST /mcp ", "POST /mcp /mcp "),
        ("a line end in the target", "POST /mcp ", "POST /m\r\ncp "),
        ("no version", " HTTP/1.1\r\n", "\r\n"),
        ("another version", "HTTP/1.1", "HTTP/9.9"),
        ("another protocol", "HTTP/1.1", "XTTP/1.1"),
        ("a method in small letters", "POST", "post"),
        ("a method that a header overrides", "POST /mcp HTTP/1.1", "PUT /mcp HTTP/1.1\r\nx-http-method-override: POST"),
        ("the newer protocol's beginning", "POST /mcp HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ] {
        let said = exchange(proxy.url(), good.replacen(from, to, 1));
        assert!(statuses(&said).iter().all(|status| *status >= 400), "{what}: {said}");
    }
    // An upgrade that nobody serves is passed over, and what follows is no other protocol.
    let upgrade =
        "connection: close, upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: eA==";
    let said = exchange(proxy.url(), put_in(&session, &format!("{upgrade}\r\ncontent-length: {}", PING.len()), PING));
    assert!(!statuses(&said).contains(&101), "{said}");
    only_the_last_call_ran(&case, &mut proxy);
}

// What dawdles

#[test]
fn connections_that_say_nothing_little_or_half_while_others_are_served() {
    let (case, mut proxy) = open("");
    let url = proxy.url().to_owned();
    let session = proxy.http().session.clone().unwrap();
    let body = call_line(7, "put", &json!({}));
    let half = put_in(&session, &format!("content-length: {}", body.len()), body.get(..20).unwrap());
    let chunk = put_in(&session, "transfer-encoding: chunked", "5\r\n{\"js");
    let silent: Vec<TcpStream> = (0..200).map(|_| connect(&url)).collect();
    let mut dawdling: Vec<(TcpStream, &str, usize)> = Vec::new();
    for number in 0..120 {
        let text = [half.as_str(), chunk.as_str(), "POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-a: "][number % 3];
        dawdling.push((connect(&url), text, 0));
    }
    // A byte of each, then a call of somebody who is in a hurry, and again.
    let mut slowest = Duration::ZERO;
    for round in 0..30 {
        for (stream, text, at) in &mut dawdling {
            let end = (*at + if round < 25 { 1 } else { text.len() }).min(text.len());
            stream.write_all(text.as_bytes().get(*at..end).unwrap_or_default()).ok();
            *at = end;
        }
        let begun = Instant::now();
        assert_eq!(proxy.result("ping", json!({})), json!({}));
        slowest = slowest.max(begun.elapsed());
    }
    assert!(slowest < 2 * SECOND, "{slowest:?}");
    let other = Reply::to(post(&connections(), &url, INITIALIZE));
    assert_eq!(other.status, 200, "there is room for more");
    drop((silent, dawdling));
    only_the_last_call_ran(&case, &mut proxy);
}

#[test]
fn streams_that_are_opened_without_end() {
    let (case, mut proxy) = open("");
    let client = proxy.http();
    // Each takes the place of the one before, so that one session has one.
    let mut streams: Vec<TcpStream> = Vec::new();
    for _ in 0..300 {
        let mut stream = connect(&client.url);
        let session = client.session.as_deref().unwrap();
        let head = format!(
            "GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nmcp-session-id: {session}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        until(&mut stream, ": open");
        streams.push(stream);
    }
    assert_eq!(proxy.result("ping", json!({})), json!({}));
    let last = streams.pop();
    for mut stream in streams {
        until(&mut stream, "0\r\n\r\n");
    }
    drop(last);
    only_the_last_call_ran(&case, &mut proxy);
}
