//! What servers are told of who is asking: headers that each caller brings, logins, tokens for a client with a secret. The
//! server of `tests/cases/vault` knows whose each credential is, and writes down who calls.

use std::{path::PathBuf, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::auth::token;
use crate::support::{
    cases::journal,
    http::{Reply, connections},
    issuer::{Provider, agree},
    process::{gatekey, proxy_of},
    proxy::{PATIENCE, Proxy, text_of},
    root,
    running::Running,
    ways::{Way, in_ways},
};

/// A server with things of users, and a gatekey before it that asks for tokens.
struct Vault {
    scratch: TempDir,
    _server: Running,
    config: PathBuf,
}

impl Vault {
    /// `arguments` are the server's; `upstream` and `top` are lines of the config.
    fn new(arguments: &[&str], upstream: &str, top: &str) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let mut command = Command::new("python3");
        command.arg(root().join("tests/cases/vault/server.py")).args(arguments);
        command.arg("--journal").arg(scratch.path().join("journal.jsonl"));
        let mut server = Running::start(command);
        let port = server.rest_of_line("listening ", 3 * PATIENCE);
        let config = scratch.path().join("gatekey.toml");
        let text = format!(
            "version = 1\nstart-wait-ms = 20000\nsearch.encoder = \"off\"\n{top}\n[http.auth]\ntokens = \"tokens.json\"\n\
             [audit]\nfile = \"audit.jsonl\"\narguments = true\n[upstreams.vault]\nurl = \"http://127.0.0.1:{port}/mcp\"\n{upstream}\n"
        );
        std::fs::write(&config, text).unwrap();
        Self { scratch, _server: server, config }
    }

    fn command(&self) -> Command {
        let mut command = proxy_of(&self.config);
        command.env("XDG_DATA_HOME", self.scratch.path().join("data"));
        command
    }

    fn journal(&self) -> Vec<Value> {
        journal(&self.scratch.path().join("journal.jsonl"))
    }

    /// Users whose calls reached the server.
    fn callers(&self) -> Vec<String> {
        let calls = self.journal().into_iter().filter(|note| note["method"] == "tools/call");
        calls.map(|note| note["user"].as_str().unwrap_or_default().to_owned()).collect()
    }

    fn audit(&self) -> Vec<Value> {
        journal(&self.scratch.path().join("audit.jsonl"))
    }

    /// Begins `gatekey login vault`; returns the page to go to.
    fn begin_login(&self, more: &[&str]) -> (Running, String) {
        let mut command = gatekey();
        command.env("XDG_DATA_HOME", self.scratch.path().join("data"));
        command.args(["login", "vault", "--config"]).arg(&self.config).args(more);
        let mut running = Running::start(command);
        let page = running.rest_of_line("  http", 2 * PATIENCE);
        (running, format!("http{page}"))
    }

    /// A user logs in at the authorization server for a caller of ours.
    fn log_in(&self, user: &str, more: &[&str]) {
        let (mut running, page) = self.begin_login(more);
        let back = Reply::to(connections().get(agree(&page, user)));
        let status = running.end(PATIENCE).expect("it ends");
        assert!(status.success(), "{}", running.said());
        assert_eq!((back.status, back.body.as_str()), (200, "You are logged in. You can close this page."));
    }
}

/// A client of a running gatekey with a token of this principal.
fn client(vault: &Vault, way: Way, first: &Proxy, name: &str) -> Proxy {
    first.another_at(way, first.url().to_owned()).with_bearer(&token(&vault.config, name, &[]))
}

fn whoami(proxy: &mut Proxy) -> String {
    text_of(&proxy.call("whoami", json!({}))).to_owned()
}

const KEYS: [&str; 8] =
    ["--header", "X-Key", "--key", "ann=key-of-ann", "--key", "bob=key-of-bob", "--key", "service=key-of-service"];
const BY_HEADER: &str = "headers = { X-Key = \"key-of-service\" }\ncaller-headers = { X-Key = \"X-Vault-Key\" }";

fn check_two_users(way: Way, era: &str) {
    let rules = "maps = [\"map.toml\"]\n[principals]\nann = {}\nbob = {}\n[[rules]]\nprincipals = [\"bob\"]\ndeny = [\"withdraw\"]";
    let vault = Vault::new(&[&KEYS[..], &["--era", era]].concat(), BY_HEADER, rules);
    std::fs::write(vault.scratch.path().join("map.toml"), "version = 1\nalways = [\"whoami\", \"withdraw\"]\n")
        .unwrap();
    let tokens = ["ann", "bob"].map(|name| token(&vault.config, name, &[]));
    let first = Proxy::spawn_in(way, vault.command()).with_bearer(&tokens[0]).bringing("X-Vault-Key", "key-of-ann");
    let second = first.another_at(way, first.url().to_owned()).with_bearer(&tokens[1]);
    let mut users = [("ann", first.greeted()), ("bob", second.bringing("X-Vault-Key", "key-of-bob").greeted())];

    // Rights first: each list is the caller's own.
    for (name, proxy) in &mut users {
        let names: Vec<String> = proxy.list().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        assert!(names.iter().any(|tool| tool == "whoami"), "{names:?}");
        assert_eq!(names.iter().any(|tool| tool == "withdraw"), *name == "ann", "{names:?}");
    }

    // 200 calls of each at once.
    let mut asked: Vec<[u64; 2]> = Vec::new();
    for n in 0..200 {
        asked.push(users.each_mut().map(|(_, proxy)| match n % 3 {
            0 => proxy.ask("tools/call", json!({"name": "whoami", "arguments": {}})),
            1 => proxy.ask("tools/call", json!({"name": "whoami_deep", "arguments": {}})),
            _ => proxy.ask("resources/read", json!({"uri": "vault://mine"})),
        }));
    }
    for ids in asked {
        for ((name, proxy), id) in users.iter_mut().zip(ids) {
            let answer = proxy.answer_within(id, 6 * PATIENCE);
            let result = &answer["result"];
            let text = if result["contents"].is_array() {
                &result["contents"][0]["text"]
            } else {
                &result["content"][0]["text"]
            };
            assert!([json!(name), json!(format!("of {name}"))].contains(text), "{name}: {answer}");
            let structured = &result["structuredContent"]["user"];
            assert!(structured.is_null() || structured == name, "{name}: {answer}");
        }
    }
    // Nobody else's unasked message came to either of them.
    for (name, proxy) in &mut users {
        let other = if *name == "ann" { "bob" } else { "ann" };
        assert_eq!(proxy.count(|message| message.to_string().contains(other)), 0);
    }

    let journal = vault.journal();
    assert_eq!(journal.iter().filter(|note| !note["crossed"].is_null()).count(), 0, "no session was shared");
    let of = |user: &str, method: &str| {
        journal.iter().filter(|note| note["user"] == user && note["method"] == method).count()
    };
    for user in ["ann", "bob"] {
        assert_eq!((of(user, "tools/call"), of(user, "resources/read")), (134, 66), "{user}");
        assert_eq!(of(user, "tools/list"), 0, "the list is the service's");
    }
    assert_eq!(
        (of("service", "tools/call"), of("service", "resources/read")),
        (0, 0),
        "nobody goes by the service's right"
    );
    assert!(of("service", "tools/list") > 0);

    // What is written down says whose each call was, and no credential.
    let calls: Vec<Value> = vault.audit().into_iter().filter(|record| record["event"] == "call").collect();
    for user in ["ann", "bob"] {
        assert_eq!(calls.iter().filter(|record| record["principal"] == user).count(), 134, "{user}");
    }
    let written = std::fs::read_to_string(vault.scratch.path().join("audit.jsonl")).unwrap() + &users[0].1.stderr();
    for secret in ["key-of-ann", "key-of-bob", "key-of-service"].into_iter().chain(tokens.iter().map(String::as_str)) {
        assert!(!written.contains(secret), "{secret} is written down");
    }
}

in_ways! { [http modern_http]
fn two_users_with_credentials_of_their_own_never_meet(way: Way) {
    check_two_users(way, "legacy");
}
}

in_ways! { [http modern_http]
fn two_users_of_a_modern_server_never_meet(way: Way) {
    check_two_users(way, "modern");
}
}

in_ways! { [http modern_http]
fn who_brings_no_credential_or_a_wrong_one_does_not_go_by_another_one(way: Way) {
    let vault = Vault::new(&KEYS, BY_HEADER, "");
    let ann = token(&vault.config, "ann", &[]);
    let mut proxy = Proxy::spawn_in(way, vault.command()).with_bearer(&ann).greeted();
    proxy.load("vault");
    let refused = proxy.call("whoami", json!({}));
    assert_eq!((&refused["isError"], &refused["structuredContent"]["code"]), (&json!(true), &json!("credential_missing")));
    assert!(text_of(&refused).contains("`X-Vault-Key`"), "{refused}");
    let id = proxy.ask("resources/read", json!({"uri": "vault://mine"}));
    assert_eq!(proxy.answer_to(id)["error"]["data"]["code"], "credential_missing");
    let codes: Vec<Value> = vault.audit().iter().filter(|record| record["event"] == "refused").map(|record| record["code"].clone()).collect();
    assert_eq!(codes, [json!("credential_missing"), json!("credential_missing")]);

    // One that the server does not know, and one that came twice.
    for values in [&["key-of-nobody"][..], &["key-of-ann", "key-of-bob"]] {
        let mut other = client(&vault, way, &proxy, "ann");
        for value in values {
            other = other.bringing("X-Vault-Key", value);
        }
        let mut other = other.greeted();
        other.load("vault");
        let refused = other.call("whoami", json!({}));
        assert_eq!(refused["structuredContent"]["code"], "credential_missing", "{values:?}: {refused}");
        assert!(!text_of(&refused).contains("key-of"), "{refused}");
    }
    assert_eq!(vault.callers(), Vec::<String>::new());

    let mut known = client(&vault, way, &proxy, "ann").bringing("X-Vault-Key", "key-of-ann").greeted();
    known.load("vault");
    assert_eq!(whoami(&mut known), "ann");
}
}

#[test]
fn a_caller_who_brings_a_new_credential_is_known_by_that() {
    let vault = Vault::new(&[&KEYS[..], &["--key", "ann=next-key-of-ann"]].concat(), BY_HEADER, "");
    let ann = token(&vault.config, "ann", &[]);
    let first = Proxy::spawn_in(Way::Http, vault.command()).with_bearer(&ann).bringing("X-Vault-Key", "key-of-ann");
    let mut first = first.greeted();
    first.load("vault");
    assert_eq!(whoami(&mut first), "ann");
    first.call("withdraw", json!({}));
    assert_eq!(first.call("whoami", json!({}))["isError"], true);
    let mut next = client(&vault, Way::Http, &first, "ann").bringing("X-Vault-Key", "next-key-of-ann").greeted();
    next.load("vault");
    assert_eq!(whoami(&mut next), "ann");
}

in_ways! { [http modern_http]
fn each_user_logs_in_and_is_known_by_that(way: Way) {
    let provider = Provider::start(0);
    let vault = Vault::new(&["--issuer", &provider.url], "[upstreams.vault.oauth]\nper-caller = true\nscopes = [\"openid\"]\nclient-id = \"gate\"\nclient-secret = \"any\"", "");
    vault.log_in("listing", &[]);
    vault.log_in("ann@example.com", &["--as", "ann"]);
    let file = vault.scratch.path().join("data/gatekey/logins.json");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let tokens = ["ann", "bob"].map(|name| token(&vault.config, name, &[]));
    let mut ann = Proxy::spawn_in(way, vault.command()).with_bearer(&tokens[0]).greeted();
    let mut bob = ann.another_as(way, &tokens[1]);
    ann.load("vault");
    bob.load("vault");
    assert_eq!(whoami(&mut ann), "ann@example.com");
    let refused = bob.call("whoami", json!({}));
    assert_eq!(refused["structuredContent"]["code"], "credential_missing");
    assert!(text_of(&refused).contains("`gatekey login vault --as bob`"), "{refused}");
    assert_eq!(vault.callers(), ["ann@example.com"], "bob goes by nobody else's login");

    // He tries some more, logs in, and is known at once.
    for _ in 0..3 {
        whoami(&mut bob);
    }
    vault.log_in("bob@example.com", &["--as", "bob"]);
    assert_eq!(whoami(&mut bob), "bob@example.com");
    assert_eq!(whoami(&mut ann), "ann@example.com");

    // A token that the server does not take any more is renewed, and the call is made once.
    ann.call("withdraw", json!({}));
    assert_eq!(whoami(&mut ann), "ann@example.com");
    let withdrawn = vault.journal().iter().filter(|note| note["params"]["name"] == "withdraw").count();
    assert_eq!(withdrawn, 1);

    // A login that is taken back at the authorization server is over, and says what to do.
    assert_eq!(Reply::to(connections().post(format!("{}/users/ann@example.com/revoke-tokens", provider.url))).status, 204);
    let over = ann.call("whoami", json!({}));
    assert!(text_of(&over).contains("login is over") || text_of(&over).contains("HTTP status 401"), "{over}");
    assert_eq!(over["structuredContent"]["code"], "credential_missing");
    assert!(!text_of(&over).contains("effect"), "nothing was done: {over}");
    assert_eq!(whoami(&mut bob), "bob@example.com");

    let kept = std::fs::read_to_string(&file).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    let written = std::fs::read_to_string(vault.scratch.path().join("audit.jsonl")).unwrap() + &ann.stderr();
    let secrets = kept["logins"].as_array().unwrap().iter().flat_map(|login| {
        ["access_token", "refresh_token"].map(|name| login["credentials"]["token_response"][name].as_str())
    });
    for secret in secrets.flatten() {
        assert!(!written.contains(secret), "a token is written down");
    }
}
}

#[test]
fn a_login_ends_only_by_who_came_back_from_the_page() {
    let vault = Vault::new(&["--own"], "[upstreams.vault.oauth]\nscopes = [\"read\"]", "");
    let (mut running, page) = vault.begin_login(&[]);
    let redirect = reqwest::Url::parse(&page).unwrap();
    let redirect = redirect.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap().1.into_owned();
    let base = redirect.strip_suffix("/callback").unwrap().to_owned();
    for (path, status) in [
        ("/", 404),
        ("/callback", 404),
        ("/callback?code=forged&state=forged", 400),
        ("/callback?error=access_denied&state=forged", 400),
    ] {
        assert_eq!(Reply::to(connections().get(format!("{base}{path}"))).status, status, "{path}");
    }
    let state = reqwest::Url::parse(&page).unwrap();
    let state = state.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    let refused = format!("{redirect}?error=access_denied&error_description=%1b[31mno&state={state}");
    assert_eq!(Reply::to(connections().get(refused)).status, 400);
    let status = running.end(PATIENCE).expect("it ends");
    let said = running.said();
    assert_eq!(status.code(), Some(4), "{said}");
    assert!(said.contains("access_denied") && !said.contains('\u{1b}'), "{said}");
    assert!(!vault.scratch.path().join("data/gatekey/logins.json").exists());

    // Logged in by a client that registered itself and asked for nothing but what the config says, and for this server.
    vault.log_in("ann", &[]);
    let journal = vault.journal();
    let noted = |name: &str| journal.iter().rev().map(|note| &note[name]).find(|note| !note.is_null()).unwrap();
    assert_eq!(noted("registered")["token_endpoint_auth_method"], "none");
    let asked = noted("authorize");
    assert_eq!((&asked["code_challenge_method"], &asked["scope"]), (&json!("S256"), &json!("read offline_access")));
    assert!(asked["resource"].as_str().is_some_and(|url| url.ends_with("/mcp")), "{asked}");
    let mut proxy = Proxy::spawn_in(Way::Http, vault.command()).with_bearer(&token(&vault.config, "x", &[])).greeted();
    proxy.load("vault");
    // Refresh tokens are good once, and many calls find at once that the access token is not.
    for _ in 0..2 {
        proxy.call("withdraw", json!({}));
        let ids = [(); 20].map(|()| proxy.ask("tools/call", json!({"name": "whoami", "arguments": {}})));
        for id in ids {
            assert_eq!(text_of(&proxy.answer_to(id)["result"]), "ann");
        }
    }
    assert_eq!(vault.journal().iter().filter(|note| note["token"] == "refresh_token").count(), 2);

    // And out again.
    let out = || {
        let mut command = gatekey();
        command.env("XDG_DATA_HOME", vault.scratch.path().join("data"));
        let output = command.args(["logout", "vault", "--config"]).arg(&vault.config).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert!(out().1.contains("forgotten"));
    assert_eq!(out(), (Some(0), "nobody was logged in\n".into()));
}

#[test]
fn a_client_with_a_secret_gets_its_tokens_and_the_next_one_when_one_is_refused() {
    let upstream = "[upstreams.vault.oauth]\ngrant = \"client\"\nclient-id = \"gate\"\nclient-secret = \"${SECRET}\"\nscopes = [\"read\"]";
    let vault = Vault::new(&["--own", "--client", "gate:s3cr3t"], upstream, "");
    let ann = token(&vault.config, "ann", &[]);
    let mut command = vault.command();
    command.env("SECRET", "s3cr3t");
    let mut proxy = Proxy::spawn_in(Way::Http, command).with_bearer(&ann).greeted();
    proxy.load("vault");
    assert_eq!(whoami(&mut proxy), "client");
    proxy.call("withdraw", json!({}));
    // Many find out at once, and one new token is got for all.
    let ids: Vec<u64> = (0..20).map(|_| proxy.ask("tools/call", json!({"name": "whoami", "arguments": {}}))).collect();
    for id in ids {
        assert_eq!(text_of(&proxy.answer_to(id)["result"]), "client");
    }
    let journal = vault.journal();
    let got: Vec<&Value> = journal.iter().filter(|note| !note["token"].is_null()).collect();
    assert_eq!(got.len(), 2, "{got:?}");
    assert!(got.iter().all(|note| note["token"] == "client_credentials" && note["scope"] == "read"), "{got:?}");
    assert!(got.iter().all(|note| note["resource"].as_str().is_some_and(|url| url.ends_with("/mcp"))), "{got:?}");
    assert!(!proxy.stderr().contains("s3cr3t"));

    // A client that the server may ask has a connection of its own, by the same right.
    let mut asked = client(&vault, Way::Http, &proxy, "ann");
    asked.initialize_as(&json!({"elicitation": {}}));
    asked.load("vault");
    assert_eq!(whoami(&mut asked), "client");
    let journal = vault.journal();
    let greetings = |member: &str| journal.iter().filter(|note| note[member] == "initialize").count();
    assert_eq!((greetings("method"), greetings("refused")), (2, 0), "that of all, and the client's own");
}

#[test]
fn what_the_config_asks_of_callers_must_make_sense() {
    let scratch = tempfile::tempdir().unwrap();
    let config = scratch.path().join("gatekey.toml");
    for (lines, said) in [
        ("url = \"http://h/mcp\"\ncaller-headers = { X-Key = \"Authorization\" }", "meant for gatekey"),
        ("url = \"http://h/mcp\"\ncaller-headers = { Mcp-Session-Id = \"X-Id\" }", "set by gatekey"),
        ("url = \"http://h/mcp\"\ncaller-headers = { X-Key = \"Host\" }", "set by gatekey"),
        ("url = \"http://h/mcp\"\ncaller-headers = { \"X Key\" = \"X-Key\" }", "no header's name"),
        ("command = \"x\"\ncaller-headers = { X-Key = \"X-Key\" }", "over HTTP"),
        ("command = \"x\"\noauth = {}", "over HTTP"),
        ("url = \"http://h/mcp\"\noauth = { client-secret = \"x\" }", "`client-id`"),
        ("url = \"http://h/mcp\"\noauth = { grant = \"client\", client-id = \"x\" }", "`client-secret`"),
        ("url = \"http://h/mcp\"\noauth = {}\nheaders = { authorization = \"x\" }", "`Authorization`"),
        (
            "url = \"http://h/mcp\"\noauth = { per-caller = true }\ncaller-headers = { X-Key = \"X-Key\" }",
            "either bring headers or log in",
        ),
    ] {
        std::fs::write(&config, format!("version = 1\n[upstreams.a]\n{lines}\n")).unwrap();
        let output = gatekey().args(["check", "--config"]).arg(&config).output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(shown.contains(said), "{lines}: {shown}");
    }
}
