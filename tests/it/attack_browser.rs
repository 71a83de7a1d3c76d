//! Attacks from a page in a real browser: whatever the page is and whatever it tries, no call of it reaches a server, and it
//! reads nothing. The browser is Chromium as an npm package brings it; `tests/real` says more.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{
    cases::{Case, ran},
    http::Reply,
    installed,
    proxy::{Proxy, text_of},
    root,
    ways::Way,
};

const SCRIPT: &str = include_str!("../real/attack_page.js");
/// A name that the attacker has, and lets lead to this machine.
const EVIL: &str = "evil.example";

/// The attacker's own web server: it allows everything to everybody, and sends on to its target.
struct Page {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Page {
    fn serve(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let page = Self { port: listener.local_addr().unwrap().port(), asked: Arc::default() };
        let (target, asked) = (target.to_owned(), Arc::clone(&page.asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (target, asked) = (target.clone(), Arc::clone(&asked));
                std::thread::spawn(move || answer(stream, &target, &asked));
            }
        });
        page
    }

    fn url(&self, host: &str) -> String {
        format!("http://{host}:{}", self.port)
    }
}

fn answer(mut stream: TcpStream, target: &str, asked: &Mutex<Vec<String>>) {
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let line: Vec<&str> = head.split(' ').take(2).collect();
    asked.lock().unwrap().push(line.join(" "));
    let (status, more, body) = match (line[0], line[1]) {
        ("OPTIONS", _) => ("204 No Content", String::new(), ""),
        (_, "/own") => ("200 OK", String::new(), "own"),
        // Method and body stay.
        (_, "/to-target") => ("307 Temporary Redirect", format!("location: {target}\r\n"), ""),
        _ => ("200 OK", "content-type: text/html\r\n".to_owned(), "<!doctype html><title>a page</title><body>"),
    };
    let allowed = "access-control-allow-origin: *\r\naccess-control-allow-methods: *\r\naccess-control-allow-headers: *\r\naccess-control-allow-private-network: true\r\n";
    let head =
        format!("HTTP/1.1 {status}\r\n{allowed}{more}connection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).ok();
    // What else was sent is read, lest the answer is lost with it.
    let mut rest = [0; 4096];
    while matches!(stream.read(&mut rest), Ok(1..)) {}
}

/// Tries everything in a page of the browser; returns what came of each attempt.
fn attack(page: &str, target: &str, own: &str, session: &str) -> BTreeMap<String, String> {
    let script = format!("const [TARGET, OWN, SESSION] = {};\n{SCRIPT}", json!([target, own, session]));
    serde_json::from_value(in_page(page, &script)).unwrap()
}

/// Runs a script in a page of the browser; returns its result.
fn in_page(page: &str, script: &str) -> Value {
    let scratch = tempfile::tempdir().unwrap();
    let mut command = Command::new(installed().join("bin/node"));
    command.arg(root().join("tests/real/browser.mjs")).arg(installed()).arg(scratch.path()).arg(page);
    command.arg(format!("MAP {EVIL} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"));
    let mut browser = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    browser.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = browser.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// A gatekey with everything open to a session whose id the page knows.
fn open() -> (Case, Proxy) {
    let case = Case::talks(&["talks"]);
    let mut proxy = Proxy::opened(Way::Http, &case.own_config("start-wait-ms = 20000"));
    proxy.load("talks");
    (case, proxy)
}

/// Nothing that the page tried came through, and what it could read are refusals.
fn nothing_came_of(outcomes: &BTreeMap<String, String>, case: &Case, proxy: &mut Proxy) {
    assert!(outcomes.len() > 35, "{outcomes:#?}");
    for (attempt, outcome) in outcomes.iter().filter(|(attempt, _)| *attempt != "own page") {
        // Of its own name it may read that it is refused.
        let is_refusal =
            ["refused", "nothing came", "opaque 0 ", "basic 403 this host is not served", "loaded ", "sent "];
        assert!(is_refusal.iter().any(|start| outcome.starts_with(start)), "{attempt}: {outcome}");
        let has_read =
            ["jsonrpc", "session", "\"put\"", "talks", "event:", "data:"].iter().any(|part| outcome.contains(part));
        assert!(!has_read, "{attempt}: {outcome}");
    }
    // The session is there still, and its owner's call is the first that the server sees.
    assert_eq!(text_of(&proxy.call("put", json!({"from": "its owner"}))), "put");
    let journal = case.journal("journal-talks.jsonl");
    assert_eq!(ran(&journal), ["put"]);
    let calls: Vec<&Value> = journal.iter().filter(|message| message["method"] == "tools/call").collect();
    assert!(calls.len() == 1 && calls[0]["params"]["arguments"] == json!({"from": "its owner"}), "{calls:?}");
    let log = proxy.stderr();
    assert!(!log.contains("a page"), "{log}");
}

/// The browser asked gatekey, and not only itself: what is unread is an answer.
fn was_asked(outcomes: &BTreeMap<String, String>) {
    for attempt in ["fetch: plain text, unread", "fetch: JSON, unread", "fetch: no type, unread", "fetch: kept alive"] {
        assert_eq!(outcomes[attempt], "opaque 0 ", "{attempt}");
    }
}

#[test]
fn a_page_that_may_does_what_the_others_try() {
    let (case, proxy) = open();
    let session = proxy.http().session.clone().unwrap();
    // The endpoint's own name is no attacker's; a page there shows that an attempt that is let in is seen.
    let own = proxy.url().replace("127.0.0.1", "localhost");
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "put", "arguments": {"from": "a page"}}});
    let headers = json!({"content-type": "application/json", "accept": "application/json, text/event-stream", "mcp-session-id": session});
    let options = json!({"method": "POST", "headers": headers, "body": call.to_string()});
    let script = format!("const r = await fetch({}, {options}); return r.status + ' ' + await r.text();", json!(own));
    let said = in_page(&own.replace("/mcp", "/healthz"), &script);
    assert!(said.as_str().unwrap().starts_with("200 ") && said.as_str().unwrap().contains("\"put\""), "{said}");
    assert_eq!(ran(&case.journal("journal-talks.jsonl")), ["put"]);
}

#[test]
fn a_page_of_this_machine_at_another_port() {
    let (case, mut proxy) = open();
    let page = Page::serve(proxy.url());
    for host in ["127.0.0.1", "localhost"] {
        let own = page.url(host);
        let session = proxy.http().session.clone().unwrap();
        let outcomes = attack(&own, proxy.url(), &own, &session);
        assert_eq!(outcomes["own page"], "basic 200 own");
        // It asks whether it may, and is not told that it may.
        assert_eq!(outcomes["fetch: a call"], "refused: TypeError");
        assert_eq!(outcomes["socket"], "refused: an error event");
        was_asked(&outcomes);
        if host == "localhost" {
            nothing_came_of(&outcomes, &case, &mut proxy);
        }
    }
    assert!(page.asked.lock().unwrap().iter().filter(|asked| *asked == "POST /to-target").count() >= 4);
}

#[test]
fn a_page_of_another_host() {
    let (case, mut proxy) = open();
    let page = Page::serve(proxy.url());
    let own = page.url(EVIL);
    let session = proxy.http().session.clone().unwrap();
    let outcomes = attack(&own, proxy.url(), &own, &session);
    assert_eq!(outcomes["own page"], "basic 200 own");
    was_asked(&outcomes);
    nothing_came_of(&outcomes, &case, &mut proxy);
}

#[test]
fn a_page_without_an_origin() {
    let (case, mut proxy) = open();
    let page = Page::serve(proxy.url());
    let session = proxy.http().session.clone().unwrap();
    let outcomes = attack("data:text/html,<body>", proxy.url(), &page.url("127.0.0.1"), &session);
    assert_eq!(outcomes["own page"], "cors 200 own");
    was_asked(&outcomes);
    nothing_came_of(&outcomes, &case, &mut proxy);
}

#[test]
fn a_page_whose_own_name_leads_here_by_now() {
    let (case, mut proxy) = open();
    let page = Page::serve(proxy.url());
    let session = proxy.http().session.clone().unwrap();
    // After the name was bound anew the page has the endpoint's own host and port, and may do all that its own pages may.
    let target = proxy.url().replace("127.0.0.1", EVIL);
    let outcomes = attack(&target.replace("/mcp", "/healthz"), &target, &page.url("127.0.0.1"), &session);
    assert_eq!(outcomes["own page"], "cors 200 own");
    let refusal = "basic 403 this host is not served; `allowed-hosts` names those that are";
    for attempt in
        ["fetch: a call", "fetch: a call in a session", "fetch: an end of a session", "xhr: a call", "worker"]
    {
        assert_eq!(outcomes[attempt], refusal, "{attempt}");
    }
    nothing_came_of(&outcomes, &case, &mut proxy);
    // By its right name the same session is served.
    let client = proxy.http();
    assert_eq!(Reply::to(client.headed(client.http.delete(&client.url), &Value::Null)).status, 200);
}
