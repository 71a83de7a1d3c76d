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
    issuer::{Issuer, SigningKey},
    process::proxy_of,
    proxy::{PATIENCE, Proxy, modern_meta, text_of},
    raw::{connect, exchange, statuses, until},
    root, wait_until,
    ways::{Way, in_ways},
};

const SECOND: Duration = Duration::from_secs(1);
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

/// The talking server before a gatekey that asks for tokens.
fn guarded() -> (Case, PathBuf) {
    let case = Case::talks(&["talks"]);
    let config = case.own_config("start-wait-ms = 20000\n[http.auth]\ntokens = \"tokens.json\"");
    (case, config)
}

/// The talking server before a gatekey that serves whoever reaches it, with a client that has everything open.
fn open(top: &str) -> (Case, Proxy) {
    let case = Case::talks(&["talks"]);
    let mut proxy = Proxy::opened(Way::Http, &case.own_config(&format!("start-wait-ms = 20000\n{top}")));
    proxy.load("talks");
    (case, proxy)
}

fn in_session(client: &HttpClient, line: &str) -> reqwest::RequestBuilder {
    client.headed(post(&client.http, &client.url, line), &Value::Null)
}

fn call_line(id: u64, tool: &str, arguments: &Value) -> String {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

/// The call of a session, as bytes of a request whose framing headers the test writes.
fn put_in(session: &str, framing: &str, body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-session-id: {session}\r\n{framing}\r\n\r\n{body}"
    )
}

/// Only the call that is allowed, and made here, has run.
fn only_the_last_call_ran(case: &Case, proxy: &mut Proxy) {
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
fn log_is_clean(said: &str) {
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

// Tokens: what `auth.rs` and `auth_jwt.rs` leave out

#[test]
fn a_token_in_any_place_but_its_own() {
    let (case, config) = guarded();
    let ann = token(&config, "ann", &[]);
    let mut proxy = Proxy::spawn_in(Way::Http, proxy_of(&config)).with_bearer(&ann).greeted();
    proxy.load("talks");
    let session = proxy.http().session.clone().unwrap();
    let put = call_line(7, "put", &json!({"access_token": ann, "_meta": {"authorization": format!("Bearer {ann}")}}));
    for (name, value) in [
        ("cookie", format!("access_token={ann}; authorization=Bearer {ann}")),
        ("x-api-key", ann.clone()),
        ("x-access-token", ann.clone()),
        ("x-forwarded-authorization", format!("Bearer {ann}")),
        ("proxy-authorization", format!("Bearer {ann}")),
        ("x-forwarded-user", "ann".to_owned()),
        ("x-remote-user", "ann".to_owned()),
        ("sec-websocket-protocol", format!("bearer, {ann}")),
        ("authorization", ann.clone()),
        ("authorization", format!("Basic {ann}")),
        ("authorization", format!("Bearer: {ann}")),
        ("authorization", format!("Bearer Bearer {ann}")),
        ("authorization", format!("Bearer {ann} {ann}")),
        ("authorization", format!("Bearer {ann},Bearer {ann}")),
        ("authorization", format!("Bearer token=\"{ann}\"")),
        ("authorization", format!("Bearer\t{ann}")),
    ] {
        let request = post(&connections(), proxy.url(), &put).header("mcp-session-id", &session).header(name, &value);
        let reply = Reply::to(request);
        assert_eq!(reply.status, 401, "{name}: {value}: {reply:?}");
    }
    for query in [
        format!("token={ann}"),
        format!("authorization=Bearer%20{ann}"),
        format!("Access_Token={ann}"),
        format!("x=1&access%5ftoken={ann}"),
    ] {
        let url = format!("{}?{query}", proxy.url());
        let reply = Reply::to(post(&connections(), &url, &put).header("mcp-session-id", &session));
        assert!([400, 401].contains(&reply.status), "{query}: {reply:?}");
    }
    only_the_last_call_ran(&case, &mut proxy);
    assert!(!proxy.stderr().contains(&ann), "it is in no log");
}

#[test]
fn a_jwt_that_says_where_its_key_is() {
    let (own, evil) = (SigningKey::new("one"), SigningKey::new("one"));
    let (issuer, theirs) = (Issuer::start(&[&own]), Issuer::start(&[&evil]));
    let case = Case::talks(&["talks"]);
    let table = format!("[http.auth.issuers.corp]\nissuer = {}", json!(issuer.url));
    let proxy = Proxy::spawn_in(Way::Http, proxy_of(&case.own_config(&format!("start-wait-ms = 20000\n{table}"))));
    let claims = issuer.claims("ann", proxy.url());
    let shown = |token: &str| Reply::to(post(&connections(), proxy.url(), INITIALIZE).bearer_auth(token)).status;
    assert_eq!(shown(&own.sign(&claims)), 200);
    let keys = format!("{}/keys", theirs.url);
    for (member, value) in [
        ("jku", json!(keys)),
        ("x5u", json!(keys)),
        ("jwk", evil.public()),
        ("x5c", json!(["MIIB"])),
        ("kid", json!(keys)),
        ("kid", json!("../../../../dev/null")),
        ("kid", json!("one' OR '1'='1")),
        ("kid", json!("one\u{0}")),
        ("kid", json!("x".repeat(8_000))),
        ("kid", json!(7)),
        ("kid", json!(["one"])),
        ("typ", json!("JWE")),
        ("cty", json!("JWT")),
        ("b64", json!(false)),
        ("crit", json!(["b64"])),
        ("alg", json!("es256")),
        ("alg", json!(["ES256"])),
        ("zip", json!("DEF")),
    ] {
        let mut header = evil.header();
        header[member] = value.clone();
        assert_eq!(shown(&evil.sign_as(&header, &claims)), 401, "{member}: {value}");
    }
    let mut of_them = claims.clone();
    of_them["iss"] = json!(theirs.url);
    for issuer in [
        json!(theirs.url),
        json!([issuer.url, theirs.url]),
        json!({"url": issuer.url}),
        json!(format!("{}#{}", issuer.url, theirs.url)),
    ] {
        of_them["iss"] = issuer;
        assert_eq!(shown(&evil.sign(&of_them)), 401, "{of_them}");
    }
    assert_eq!(theirs.n_asked(), 0, "nobody asks where a token says");
}

#[test]
fn a_jwt_whose_audience_or_times_are_nearly_right() {
    let key = SigningKey::new("one");
    let issuer = Issuer::start(&[&key]);
    let case = Case::talks(&["talks"]);
    let table = format!("[http.auth.issuers.corp]\nissuer = {}", json!(issuer.url));
    let proxy = Proxy::spawn_in(Way::Http, proxy_of(&case.own_config(&format!("start-wait-ms = 20000\n{table}"))));
    let good = issuer.claims("ann", proxy.url());
    let shown =
        |claims: &Value| Reply::to(post(&connections(), proxy.url(), INITIALIZE).bearer_auth(key.sign(claims))).status;
    assert_eq!(shown(&good), 200);
    let url = proxy.url();
    let elsewhere = url.replace("127.0.0.1", "127.0.0.1.evil.example");
    for (member, value) in [
        ("aud", json!(url.to_uppercase())),
        ("aud", json!(format!("{url}/"))),
        ("aud", json!(format!("{url}?"))),
        ("aud", json!(format!("{url}#"))),
        ("aud", json!(url.replace("http://", "https://"))),
        ("aud", json!(url.replace("http://", "http://ann@"))),
        ("aud", json!(url.trim_end_matches("/mcp"))),
        ("aud", json!(elsewhere)),
        ("aud", json!(format!(" {url}"))),
        ("aud", json!([[url]])),
        ("aud", json!({"0": url})),
        ("aud", json!([])),
        ("aud", json!("*")),
        ("aud", Value::Null),
        ("exp", json!("9999999999")),
        ("exp", json!(-1)),
        ("exp", json!(0)),
        ("exp", json!(true)),
        ("exp", json!([9_999_999_999_u64])),
        ("nbf", json!(9_999_999_999_u64)),
        ("nbf", json!("tomorrow")),
        ("sub", json!("")),
        ("sub", json!(["ann"])),
        ("sub", json!("x".repeat(5_000))),
        ("sub", json!("ann\u{0}")),
        ("sub", json!("\u{1b}[31mann")),
    ] {
        let mut claims = good.clone();
        claims[member] = value.clone();
        assert_eq!(shown(&claims), 401, "{member}: {value}");
    }
    log_is_clean(&proxy.stderr());
}

#[test]
fn many_wrong_tokens_beside_a_right_one() {
    let (case, config) = guarded();
    let ann = token(&config, "ann", &[]);
    let mut proxy = Proxy::spawn_in(Way::Http, proxy_of(&config)).with_bearer(&ann).greeted();
    proxy.load("talks");
    let http = connections();
    let begun = Instant::now();
    for number in 0..300_u32 {
        let guess = format!("gk_{:0>43}", number.wrapping_mul(2_654_435_761));
        assert_eq!(Reply::to(post(&http, proxy.url(), INITIALIZE).bearer_auth(guess)).status, 401);
    }
    assert!(begun.elapsed() < 5 * SECOND, "nobody is held up: {:?}", begun.elapsed());
    wait_until("the right one is served", SECOND, || Reply::to(in_session(proxy.http(), PING)).status == 200);
    only_the_last_call_ran(&case, &mut proxy);
}
