//! Who may come over HTTP: tokens that are made, shown once and revoked; sessions, keys and streams of one caller in the
//! hands of another; and how much each may ask for.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};

use crate::support::{
    cases::{Case, ran},
    comes_true,
    http::{HttpClient, Reply, Stream, connections, post, wait},
    process::{proxy_of, run},
    proxy::{PATIENCE, Proxy, modern_meta, text_of},
    wait_until,
    ways::{Way, in_ways},
};

const SECOND: Duration = Duration::from_secs(1);
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

/// Makes a token with `gatekey token add`.
pub(crate) fn token(config: &Path, name: &str, more: &[&str]) -> String {
    let config = config.to_str().unwrap();
    let arguments = [&["token", "add", name, "--config", config], more].concat();
    let (code, stdout, stderr) = run(arguments);
    assert_eq!(code, 0, "{stderr}");
    stdout.trim_end().to_owned()
}

fn revoke(config: &Path, named: &str) {
    let (code, _, stderr) = run(["token", "revoke", named, "--config", config.to_str().unwrap()]);
    assert_eq!(code, 0, "{stderr}");
}

/// The talking server before a gatekey that asks for tokens, with these lines in its config besides.
fn guarded(more: &str) -> (Case, std::path::PathBuf) {
    let case = Case::talks(&["talks"]);
    let top = format!("start-wait-ms = 20000\n{more}\n[http.auth]\ntokens = \"tokens.json\"");
    let config = case.own_config(&top);
    (case, config)
}

/// A running one, whose first client comes with a token of `ann`.
fn of_ann(more: &str) -> (Case, std::path::PathBuf, Proxy) {
    let (case, config) = guarded(more);
    let ann = token(&config, "ann", &[]);
    let mut proxy = Proxy::spawn_in(Way::Http, proxy_of(&config)).with_bearer(&ann).greeted();
    proxy.load("talks");
    (case, config, proxy)
}

fn status(request: reqwest::RequestBuilder) -> u16 {
    Reply::to(request).status
}

/// A request in the session of a client.
fn in_session(client: &HttpClient, line: &str) -> reqwest::RequestBuilder {
    client.headed(post(&client.http, &client.url, line), &Value::Null)
}

// Who is let in

#[test]
fn a_request_without_a_token_is_told_where_to_get_one() {
    let (_case, _config, proxy) = of_ann("");
    let http = connections();
    let origin = proxy.url().trim_end_matches("/mcp").to_owned();
    for path in ["/mcp", "/skill/talks/mcp", "/skill/none/mcp"] {
        let url = format!("{origin}{path}");
        for request in [post(&http, &url, INITIALIZE), http.get(&url), http.delete(&url), http.put(&url)] {
            let reply = Reply::to(request);
            let metadata = format!("{origin}/.well-known/oauth-protected-resource{path}");
            assert_eq!(reply.status, 401, "{path}");
            assert_eq!(reply.header("www-authenticate"), format!("Bearer resource_metadata=\"{metadata}\""));
            let told = Reply::to(http.get(metadata));
            assert_eq!((told.status, &told.json()["resource"]), (200, &json!(url)));
        }
    }
    for (path, expected) in [
        ("/healthz", 200),
        ("/readyz", 200),
        ("/.well-known/oauth-protected-resource", 200),
        ("/.well-known/oauth-protected-resource/other", 404),
    ] {
        assert_eq!(status(http.get(format!("{origin}{path}"))), expected, "{path}");
    }
}

#[test]
fn tokens_that_are_made_up_expired_or_revoked_are_refused_alike_and_those_in_addresses_unread() {
    let (_case, config, proxy) = of_ann("");
    let (short, gone) = (token(&config, "bob", &["--expires", "1s"]), token(&config, "carl", &[]));
    let ann = proxy.http().bearer.clone().unwrap();
    revoke(&config, "carl");
    let (http, url) = (connections(), proxy.url());
    let shown = |token: &str| Reply::to(post(&http, url, INITIALIZE).bearer_auth(token));
    wait_until("it expires", 5 * SECOND, || shown(&short).status == 401);
    let refused = |token: &str| {
        let reply = shown(token);
        (reply.status, reply.header("www-authenticate").to_owned(), reply.body)
    };
    let first = refused(&gone);
    assert_eq!(first.0, 401);
    assert!(first.1.starts_with("Bearer error=\"invalid_token\", resource_metadata="), "{first:?}");
    let (longer, cut) = (format!("{ann}A"), ann.get(..ann.len() - 1).unwrap());
    let huge = format!("gk_{}", "A".repeat(20_000));
    for token in [&*short, &longer, cut, "gk_", "x", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", &ann.to_lowercase(), &huge] {
        assert_eq!(refused(token), first, "{token}");
    }
    let mut in_address = reqwest::Url::parse(url).unwrap();
    in_address.set_query(Some(&format!("access_token={ann}")));
    for request in [
        post(&http, in_address.as_str(), INITIALIZE),
        post(&http, in_address.as_str(), INITIALIZE).bearer_auth(&ann),
        post(&http, url, INITIALIZE).bearer_auth(&ann).header("authorization", format!("Bearer {ann}")),
    ] {
        let reply = Reply::to(request);
        assert_eq!(reply.status, 400);
        assert!(reply.header("www-authenticate").starts_with("Bearer error=\"invalid_request\""), "{reply:?}");
    }
    assert_eq!(status(post(&http, url, INITIALIZE).header("authorization", format!("Basic {ann}"))), 401);
    assert_eq!(shown(&ann).status, 200);
    let said = proxy.stderr();
    assert!([&ann, &short, &gone].iter().all(|token| !said.contains(token.as_str())), "no token is logged");
}

#[test]
fn a_token_is_shown_once_and_kept_as_a_digest_in_a_file_for_its_owner_only() {
    let (case, config) = guarded("");
    let (first, second) = (token(&config, "ann", &["--role", "viewer"]), token(&config, "ann", &["--expires", "30d"]));
    assert!(first.starts_with("gk_") && first.len() == 46 && first != second, "{first}");
    let kept = std::fs::read_to_string(case.path("tokens.json")).unwrap();
    assert!(!kept.contains(&first) && !kept.contains(&second), "{kept}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |name: &str| std::fs::metadata(case.path(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode("tokens.json"), 0o600);
        std::fs::set_permissions(case.path("tokens.json"), std::fs::Permissions::from_mode(0o644)).unwrap();
        token(&config, "bob", &[]);
        assert_eq!(mode("tokens.json"), 0o600, "whatever it was before");
    }
    let path = config.to_str().unwrap();
    let (code, stdout, _) = run(["token", "list", "--json", "--config", path]);
    let listed: Value = serde_json::from_str(&stdout).unwrap();
    let tokens = listed["data"]["tokens"].as_array().unwrap();
    assert_eq!((code, &listed["kind"], tokens.len()), (0, &json!("token.list"), 3));
    assert_eq!((&tokens[0]["name"], &tokens[0]["roles"]), (&json!("ann"), &json!(["viewer"])));
    let written: Value = serde_json::from_str(&kept).unwrap();
    let digest = written["tokens"][0]["sha256"].as_str().unwrap();
    let start = digest.get(..8).unwrap();
    assert!(!stdout.contains(digest) && stdout.contains(start), "digests are not shown in full");
    let (_, table, _) = run(["token", "list", "--config", path]);
    assert!(table.lines().nth(1).unwrap().contains("viewer") && !table.contains(start), "{table}");
    revoke(&config, tokens[1]["id"].as_str().unwrap());
    revoke(&config, "ann");
    let (code, ..) = run(["token", "revoke", "ann", "--config", path]);
    assert_eq!(code, 1, "there is none any more");
}

#[test]
fn a_name_or_role_that_could_be_taken_for_something_else_is_refused() {
    let (case, config) = guarded("[[rules]]\nroles = [\"viewer\"]\nallow = [\"put\"]");
    for name in ["corp:ann", "", " ann", "ann\n", "a\u{1b}[31m", "x\r\nset-cookie: a=b", &"x".repeat(300)] {
        let (code, stdout, _) = run(["token", "add", name, "--config", config.to_str().unwrap()]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{name:?}");
    }
    // A slip of the pen would give more rights than it means.
    for arguments in [&["ann"][..], &["ann", "--role", "viewr"], &["ann", "--role", "viewer,admin"]] {
        let (code, ..) = run([&["token", "add", "--config", config.to_str().unwrap()], arguments].concat());
        assert_eq!(code, 2, "{arguments:?}");
    }
    assert!(!case.path("tokens.json").exists());
    token(&config, "ann", &["--role", "viewer"]);
    for (text, expected) in [("{", 3), (r#"{"version":2,"tokens":[]}"#, 3)] {
        case.write("tokens.json", text);
        let mut command = proxy_of(&config);
        let output = command.args(["--http", "127.0.0.1:0"]).output().unwrap();
        assert_eq!(output.status.code(), Some(expected), "{text}");
    }
}

#[test]
fn an_address_that_others_reach_is_not_served_without_asking_who_they_are() {
    let case = Case::talks(&["talks"]);
    let listen = |config: &Path, more: &[&str]| {
        let mut command = proxy_of(config);
        command.args(["--http", "0.0.0.0:0"]).args(more);
        command
    };
    let open = case.own_config("start-wait-ms = 20000");
    let refused = listen(&open, &[]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("hint: ") && said.contains("--unauthenticated-network"), "{said}");
    let reached = |command: std::process::Command| {
        let (process, ..) = crate::support::process::Process::spawn(command);
        let url = process.url(PATIENCE).replace("0.0.0.0", "127.0.0.1");
        status(post(&connections(), &url, INITIALIZE))
    };
    assert_eq!(reached(listen(&open, &["--unauthenticated-network"])), 200);
    let (_case, guarded) = guarded("");
    assert_eq!(reached(listen(&guarded, &[])), 401);
    // Who is calling is said once.
    let both = proxy_of(&guarded).args(["--http", "127.0.0.1:0", "--as", "ann"]).output().unwrap();
    assert_eq!(both.status.code(), Some(2));
}

in_ways! { [http modern_http]
fn what_lets_a_client_in_reaches_no_upstream(way: Way) {
    let mut case = Case::talks(&["talks"]);
    let server = case.over_http("talks");
    let config = case.own_config("start-wait-ms = 20000\n[http.auth]\ntokens = \"tokens.json\"");
    let ann = token(&config, "ann", &[]);
    let mut proxy = Proxy::spawn_in(way, proxy_of(&config)).with_bearer(&ann).greeted();
    proxy.load("talks");
    assert_eq!(text_of(&proxy.call("put", json!({}))), "put");
    proxy.result("resources/read", json!({"uri": "info://about"}));
    let journal = std::fs::read_to_string(case.path("journal-talks.jsonl")).unwrap();
    assert!(journal.contains("info://about") && journal.to_lowercase().contains("content-type"), "{journal}");
    assert!(!journal.to_lowercase().contains("authorization") && !journal.contains(&ann), "{journal}");
    drop(server);
}
}

// What one caller has, in the hands of another

#[test]
fn a_session_in_the_hands_of_another_caller_is_none() {
    let (_case, config, mut ann) = of_ann("");
    let bob = token(&config, "bob", &[]);
    let stolen = ann.http().session.clone().unwrap();
    let mut call = Stream::open(in_session(
        ann.http(),
        &json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "work", "arguments": {"steps": 4},
            "_meta": {"progressToken": "t"}}})
        .to_string(),
    ));
    let event = call.next_id().unwrap().id.unwrap();
    let (http, url) = (connections(), ann.url().to_owned());
    for id in [&stolen, "made-up"] {
        let with = |request: reqwest::RequestBuilder| {
            let reply = Reply::to(request.header("mcp-session-id", id).bearer_auth(&bob));
            (reply.status, reply.body)
        };
        let unknown = with(post(&http, &url, PING));
        assert!(unknown.0 == 404 && unknown.1.contains("there is no such session"), "{unknown:?}");
        let get = || http.get(&url).header("accept", "text/event-stream");
        assert_eq!(with(get()), unknown);
        assert_eq!(with(get().header("last-event-id", &event)), unknown);
        assert_eq!(with(http.delete(&url)), unknown);
    }
    let last = std::iter::from_fn(|| call.next()).last().unwrap().1;
    assert_eq!(text_of(&last["result"]), "worked");
    assert_eq!(ann.result("ping", json!({})), json!({}));
    // Another token of the same caller is as good.
    let second = token(&config, "ann", &[]);
    assert_eq!(status(post(&http, &url, PING).header("mcp-session-id", &stolen).bearer_auth(second)), 200);
}

#[test]
fn a_key_in_the_hands_of_another_caller_opens_nothing() {
    let (case, config, ann) = of_ann("");
    let bob = token(&config, "bob", &[]);
    let mut ann = ann.another_as(Way::ModernHttp, &ann.http().bearer.clone().unwrap());
    let mut bob = ann.another_as(Way::ModernHttp, &bob);
    let key = ann.load("talks")["key"].clone();
    let call = json!({"key": key, "name": "put", "arguments": {}});
    let stolen = bob.call("tool_call_write", call.clone());
    assert_eq!(stolen["structuredContent"]["code"], "inactive");
    assert_eq!(ran(&case.journal("journal-talks.jsonl")), [""; 0]);
    assert_eq!(text_of(&ann.call("tool_call_write", call)), "put");
}

#[test]
fn a_call_that_waits_for_input_goes_on_for_its_own_caller_only() {
    let case = Case::new("asker");
    let config = case.own_config("start-wait-ms = 20000\n[http.auth]\ntokens = \"tokens.json\"");
    let [ann, bob] = ["ann", "bob"].map(|name| token(&config, name, &[]));
    let proxy = Proxy::spawn_in(Way::ModernHttp, proxy_of(&config));
    let mut clients = [&ann, &bob].map(|token| proxy.another_as(Way::ModernHttp, token));
    let keys = clients.each_mut().map(|client| client.load("asker")["key"].clone());
    let ask = |client: &mut Proxy, key: &Value, more: Value| {
        let arguments = json!({"key": key, "name": "ask", "arguments": {}});
        let mut params = json!({"name": "tool_call_write", "arguments": arguments});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let id = client.ask("tools/call", params);
        client.answer_to(id)
    };
    let asked = ask(&mut clients[0], &keys[0], json!({}));
    let state = asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{asked}")).to_owned();
    assert!(state.ends_with(".signed:\u{2603}:1e400"), "{state}");
    let goes_on = |state: &str| json!({"requestState": state, "inputResponses": {"who": {"action": "accept", "content": {"name": "Eve"}}}});
    for forged in [&*state, "signed:\u{2603}:1e400", "x.signed:\u{2603}:1e400", ""] {
        let refused = ask(&mut clients[1], &keys[1], goes_on(forged));
        assert_eq!(refused["error"]["code"], -32602, "{forged}: {refused}");
    }
    let answered = ask(&mut clients[0], &keys[0], goes_on(&state));
    assert_eq!(text_of(&answered["result"]), "hello Eve", "{answered}");
}

#[test]
fn a_revoked_token_ends_its_sessions_streams_and_calls_and_no_others() {
    let (case, config, mut ann) = of_ann("");
    let mut bob = ann.another_as(Way::Http, &token(&config, "bob", &[]));
    let journal = || case.journal("journal-talks.jsonl");
    let token = ann.http().bearer.clone().unwrap();
    let listen = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
        "params": {"notifications": {"toolsListChanged": true}, "_meta": modern_meta()}});
    let modern = ann.another_as(Way::ModernHttp, &token);
    let client = modern.http();
    let mut listening = Stream::open(client.headed(post(&client.http, &client.url, &listen.to_string()), &listen));
    listening.next().unwrap();
    let mut unasked = Stream::open(ann.http().get());
    wait("it is open", unasked.next_event());
    ann.ask("tools/call", json!({"name": "nap", "arguments": {"seconds": 30}}));
    wait_until("the nap begins", 5 * SECOND, || ran(&journal()) == ["nap"]);
    revoke(&config, "ann");
    assert_eq!(status(in_session(ann.http(), PING)), 401, "at once");
    let is_cancelled = || journal().iter().any(|message| message["method"] == "notifications/cancelled");
    assert!(comes_true(2 * SECOND, is_cancelled), "the call is given up");
    assert_eq!((unasked.next(), listening.next()), (None, None), "the streams end");
    assert_eq!(bob.result("ping", json!({})), json!({}));
    // The session is gone also for a new token of the same caller.
    let again = self::token(&config, "ann", &[]);
    let session = ann.http().session.clone().unwrap();
    let request = post(&connections(), ann.url(), PING).header("mcp-session-id", session).bearer_auth(again);
    assert_eq!(status(request), 404);
}

#[test]
fn a_file_of_tokens_that_breaks_stays_as_it_was_and_one_that_is_gone_lets_nobody_in() {
    let (case, _config, proxy) = of_ann("");
    let ping = || status(in_session(proxy.http(), PING));
    let kept = std::fs::read(case.path("tokens.json")).unwrap();
    case.write("tokens.json", "{ half of ");
    assert_eq!(ping(), 200);
    std::fs::write(case.path("tokens.json"), &kept).unwrap();
    assert_eq!(ping(), 200);
    std::fs::remove_file(case.path("tokens.json")).unwrap();
    assert_eq!(ping(), 401);
}

#[test]
fn a_session_ends_for_a_caller_whose_roles_change() {
    let (case, config, mut proxy) = of_ann("");
    let text = std::fs::read_to_string(&config).unwrap();
    case.write("gatekey.toml", &format!("{text}\n[principals.ann]\nroles = [\"viewer\"]\n"));
    let ping = || status(in_session(proxy.http(), PING));
    wait_until("the session is none any more", 10 * SECOND, || ping() == 404);
    proxy.initialize();
    assert_eq!(status(in_session(proxy.http(), PING)), 200);
}

// How much a caller may ask for

#[test]
fn a_caller_that_asks_for_too_much_is_told_when_to_come_again_and_others_are_not() {
    let limits = "[http.limits]\ncalls-per-minute = 4\n[principals.root]\ncalls-per-minute = 100";
    let (_case, config) = guarded(limits);
    let tokens = ["ann", "bob", "root"].map(|name| token(&config, name, &[]));
    let proxy = Proxy::spawn_in(Way::Http, proxy_of(&config));
    let (http, url) = (connections(), proxy.url());
    let ask = |token: &str| Reply::to(post(&http, url, INITIALIZE).bearer_auth(token));
    for _ in 0..4 {
        assert_eq!(ask(&tokens[0]).status, 200);
    }
    let refused = ask(&tokens[0]);
    let seconds: u64 = refused.header("retry-after").parse().unwrap();
    assert!(refused.status == 429 && (1..=15).contains(&seconds), "{refused:?}");
    assert_eq!((&refused.json()["id"], ask(&tokens[1]).status), (&json!(1), 200));
    for _ in 0..10 {
        assert_eq!(ask(&tokens[2]).status, 200);
    }
}

#[test]
fn calls_at_once_are_counted_until_they_end_and_giving_one_up_makes_room() {
    let (case, _config, mut proxy) = of_ann("[http.limits]\ncalls-at-once = 1");
    let journal = || case.journal("journal-talks.jsonl");
    let nap = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params":
        {"name": "nap", "arguments": {"seconds": 30}}});
    let stream = Stream::open(in_session(proxy.http(), &nap.to_string()));
    wait_until("the nap begins", 5 * SECOND, || ran(&journal()) == ["nap"]);
    let ping = || status(in_session(proxy.http(), PING));
    assert_eq!(ping(), 429);
    // Whoever hangs up does not make room: the call goes on, for the answer to be fetched later.
    drop(stream);
    assert_eq!(ping(), 429);
    proxy.cancel(7, "enough");
    let ping = || status(in_session(proxy.http(), PING));
    wait_until("there is room", 5 * SECOND, || ping() == 200);
    assert_eq!(proxy.result("ping", json!({})), json!({}));
}

in_ways! { [http modern_http]
fn a_task_is_of_use_to_whoever_began_it(way: Way) {
    let mut case = Case::of_server("jobs");
    if way.is_modern() {
        case.add_args("jobs", &["--era", "modern"]);
    }
    let config = case.own_config("start-wait-ms = 20000\n[http.auth]\ntokens = \"tokens.json\"");
    let (ann, bob) = (token(&config, "ann", &[]), token(&config, "bob", &[]));
    let mut ann = Proxy::spawn_in(way, proxy_of(&config)).with_bearer(&ann).greeted();
    let mut bob = ann.another_as(way, &bob);
    ann.load("jobs");
    bob.load("jobs");
    let start = |proxy: &mut Proxy| {
        let mut params = json!({"name": "start", "arguments": {}, "task": {"ttl": 60_000}});
        if way.is_modern() {
            params["_meta"] = modern_meta();
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        }
        let begun = proxy.result("tools/call", params);
        begun.pointer("/task/taskId").or(begun.get("taskId")).unwrap_or_else(|| panic!("{begun}")).as_str().unwrap().to_owned()
    };
    let (of_ann, of_bob) = (start(&mut ann), start(&mut bob));
    assert_ne!(of_ann, of_bob);
    let methods: &[&str] =
        if way.is_modern() { &["tasks/get", "tasks/cancel", "tasks/update"] } else { &["tasks/get", "tasks/result", "tasks/cancel"] };
    let n_reached = || case.journal("journal-jobs.jsonl").iter().filter(|note| note.to_string().contains("tasks/")).count();
    for method in methods {
        for (proxy, foreign) in [(&mut ann, &of_bob), (&mut bob, &of_ann)] {
            let before = n_reached();
            let id = proxy.ask(method, json!({"taskId": foreign}));
            let answer = proxy.answer_to(id);
            assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("unknown task")), "{method}: {answer}");
            assert_eq!(n_reached(), before, "{method}");
        }
    }
    for (proxy, own) in [(&mut ann, &of_ann), (&mut bob, &of_bob)] {
        assert_eq!(proxy.result("tasks/get", json!({"taskId": own}))["status"], "working");
        if !way.is_modern() {
            let listed = proxy.result("tasks/list", json!({}));
            let ids: Vec<&str> = listed["tasks"].as_array().unwrap().iter().map(|task| task["taskId"].as_str().unwrap()).collect();
            assert_eq!(ids, [own.as_str()]);
        }
    }
    // What becomes of bob's is told to nobody else.
    bob.call("finish", json!({}));
    assert_eq!(bob.result("tasks/get", json!({"taskId": of_bob}))["status"], "completed");
    ann.result("tasks/get", json!({"taskId": of_ann}));
    assert_eq!(ann.count(|message| message.to_string().contains(&of_bob)), 0);
}
}

#[test]
fn one_caller_leaves_sessions_for_the_others() {
    let (_case, config) = guarded("http.sessions = 20");
    let (ann, bob) = (token(&config, "ann", &[]), token(&config, "bob", &[]));
    let proxy = Proxy::spawn_in(Way::Http, proxy_of(&config));
    let http = connections();
    let open = |token: &str| status(post(&http, proxy.url(), INITIALIZE).bearer_auth(token));
    assert_eq!([open(&ann), open(&ann), open(&ann), open(&ann)], [200, 200, 503, 503]);
    assert_eq!([open(&bob), open(&bob), open(&bob)], [200, 200, 503]);
}

#[test]
fn check_says_why_nobody_could_come() {
    let (case, config) = guarded("");
    let codes = || {
        let (_, stdout, _) = run(["check", "--json", "--config", config.to_str().unwrap()]);
        let found: Value = serde_json::from_str(&stdout).unwrap();
        let codes =
            found["diagnostics"].as_array().unwrap().iter().map(|found| found["code"].as_str().unwrap().to_owned());
        codes.filter(|code| code.starts_with("auth-")).collect::<Vec<_>>()
    };
    assert_eq!(codes(), ["auth-nobody"]);
    token(&config, "ann", &[]);
    assert_eq!(codes(), [""; 0]);
    case.write("tokens.json", "{");
    assert_eq!(codes(), ["auth-unusable"]);

    let text = std::fs::read_to_string(&config).unwrap();
    let issuer = "[http.auth.issuers.corp]\nissuer = \"https://id.example\"\nca-file = \"corp.pem\"\n";
    std::fs::write(&config, text.replace("tokens = \"tokens.json\"", "tokens = \"none.json\"\n") + issuer).unwrap();
    assert_eq!(codes(), ["auth-unusable"], "the certificates are not there");
}
