//! Everything that is no tool, between clients and servers: resources, prompts, completions, what servers tell, and what
//! they ask of clients. The server of `tests/cases/talks` does what it is told.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    cases::Case,
    proxy::{PATIENCE, Proxy, text_of},
    running::Running,
    wait_until,
    ways::{Way, in_ways},
};

const SECOND: Duration = Duration::from_secs(1);
const ORIGIN: &str = "gatekey/upstream";

/// What is listed under `member`, without what is ours.
fn listed(proxy: &mut Proxy, method: &str, member: &str) -> Vec<Value> {
    let result = proxy.result(method, json!({}));
    let all = result[member].as_array().cloned().unwrap_or_default();
    all.into_iter().filter(|entry| !entry["uri"].as_str().is_some_and(|uri| uri.starts_with("skill://"))).collect()
}

fn read(proxy: &mut Proxy, uri: &str) -> Value {
    let id = proxy.ask("resources/read", json!({"uri": uri}));
    proxy.answer_to(id)
}

// 24 — two upstreams with the same resource URI

in_ways! { [stdio http modern_stdio modern_http]
fn resources_with_the_same_uri_are_apart_and_read_from_their_own_upstream(way: Way) {
    let case = Case::new("24");
    // On a busy machine a server may need longer than clients are made to wait.
    let mut proxy = Proxy::opened(way, &case.own_config("start-wait-ms = 20000"));
    let resources = listed(&mut proxy, "resources/list", "resources");
    let uris: std::collections::BTreeSet<&str> = resources.iter().filter_map(|entry| entry["uri"].as_str()).collect();
    assert_eq!((resources.len(), uris.len()), (10, 10), "{resources:?}");
    for resource in &resources {
        let (uri, upstream) = (resource["uri"].as_str().unwrap(), resource["_meta"][ORIGIN].as_str().unwrap());
        let original = resource["name"].as_str().unwrap();
        // The one that stands first in the config keeps its URIs.
        let expected = if upstream == "alpha" { original.to_owned() } else { format!("x-beta+{original}") };
        assert_eq!(uri, expected);
        let content = read(&mut proxy, uri)["result"]["contents"][0].clone();
        assert_eq!((&content["text"], &content["uri"]), (&json!(format!("{upstream} has {original}")), &json!(uri)));
        let journal = case.journal(&format!("journal-{upstream}.jsonl"));
        let asked = journal.iter().rfind(|message| message["method"] == "resources/read").unwrap();
        assert_eq!(asked["params"]["uri"], original, "the upstream is asked by its own URI");
    }
    let templates = listed(&mut proxy, "resources/templates/list", "resourceTemplates");
    let whose: Vec<(&Value, &Value)> =
        templates.iter().map(|entry| (&entry["uriTemplate"], &entry["_meta"][ORIGIN])).collect();
    let expected = [("note://{id}", "alpha"), ("x-beta+note://{id}", "beta")].map(|(uri, name)| (json!(uri), json!(name)));
    assert_eq!(whose, [(&expected[0].0, &expected[0].1), (&expected[1].0, &expected[1].1)]);
    for (uri, text) in [("note://7", "alpha note 7"), ("x-beta+note://7", "beta note 7")] {
        let content = read(&mut proxy, uri)["result"]["contents"][0].clone();
        assert_eq!((&content["text"], &content["uri"]), (&json!(text), &json!(uri)));
    }
    let n_reads = || {
        let journals = ["alpha", "beta"].map(|name| case.journal(&format!("journal-{name}.jsonl")));
        journals.concat().iter().filter(|message| message["method"] == "resources/read").count()
    };
    let before = n_reads();
    let error = read(&mut proxy, "nobody://has/this")["error"].clone();
    assert_eq!(error["code"], if way.is_modern() { -32602 } else { -32002 }, "{error}");
    assert_eq!(n_reads(), before, "no upstream is asked for what none can have");
}
}

// What upstreams ask and tell. A session that can be asked has connections of its own.

/// A gatekey before the talking server as `one`, over stdio or HTTP.
fn before(is_remote: bool) -> (Case, Option<Running>, std::path::PathBuf) {
    let mut case = Case::talks(&["one"]);
    let server = is_remote.then(|| case.over_http("one"));
    let config = case.own_config("start-wait-ms = 20000");
    (case, server, config)
}

/// A session of a client that can be asked, with everything open.
fn askable(beside: &Proxy) -> Proxy {
    let mut proxy = beside.another_at(Way::Http, beside.url().to_owned());
    proxy.initialize_as(&json!({"sampling": {}, "elicitation": {}, "roots": {}}));
    proxy.load("one");
    proxy
}

/// Lets the server ask something that names `whom`, whose session then has the question.
fn begin(proxy: &mut Proxy, method: &str, whom: &str) -> u64 {
    let params = json!({"message": whom, "messages": [], "maxTokens": 1});
    proxy.ask("tools/call", json!({"name": "ask", "arguments": {"method": method, "params": params}}))
}

/// Answers the question that came, which must be for `whom`; returns what the server got.
fn finish(proxy: &mut Proxy, id: u64, method: &str, whom: &str) -> Value {
    let question = proxy.wait_for("a question", PATIENCE, |message| message["method"] == method);
    assert_eq!(question["params"]["message"], whom);
    proxy.send(json!({"id": question["id"], "result": {"by": whom}}));
    let said = proxy.answer_to(id);
    serde_json::from_str(text_of(&said["result"])).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn two_sessions_are_asked_at_once(is_remote: bool) {
    let (_case, _server, config) = before(is_remote);
    let nobody = Proxy::opened(Way::Http, &config);
    let (mut ann, mut bob) = (askable(&nobody), askable(&nobody));
    // Of a server over stdio nobody knows that it asks before it has.
    let id = begin(&mut ann, "roots/list", "ann");
    assert_eq!(finish(&mut ann, id, "roots/list", "ann")["result"]["by"], "ann");
    for method in ["sampling/createMessage", "elicitation/create"] {
        let ids = [begin(&mut ann, method, "ann"), begin(&mut bob, method, "bob")];
        assert_eq!(finish(&mut bob, ids[1], method, "bob")["result"]["by"], "bob");
        assert_eq!(finish(&mut ann, ids[0], method, "ann")["result"]["by"], "ann");
    }
    for session in [&ann, &bob] {
        let n_questions =
            session.raw.iter().filter(|line| line.contains("\"method\"") && line.contains("sampling")).count();
        assert_eq!(n_questions, 1, "{:?}", session.raw);
    }
}

#[test]
fn a_question_reaches_the_session_that_caused_it_and_no_other() {
    two_sessions_are_asked_at_once(false);
}

#[test]
fn a_question_of_a_server_over_http_reaches_the_session_that_caused_it_and_no_other() {
    two_sessions_are_asked_at_once(true);
}

in_ways! { [stdio http]
fn a_client_that_cannot_be_asked_is_not_asked(way: Way) {
    for is_remote in [false, true] {
        let (_case, _server, config) = before(is_remote);
        let mut proxy = Proxy::opened(way, &config);
        proxy.load("one");
        let id = begin(&mut proxy, "sampling/createMessage", "nobody");
        let got: Value = serde_json::from_str(text_of(&proxy.answer_to(id)["result"])).unwrap();
        assert_eq!(got["error"]["code"], -32601, "{got}");
        assert_eq!(proxy.count(|message| message["method"] == "sampling/createMessage"), 0);
    }
}
}

/// Waits for what a server told.
fn told(proxy: &mut Proxy, method: &str) -> Value {
    proxy.wait_for(method, 5 * SECOND, |message| message["method"] == method)["params"].clone()
}

#[test]
fn changes_of_a_resource_reach_those_who_subscribed_under_the_uri_they_know() {
    let case = Case::talks(&["one", "two"]);
    let mut ann = Proxy::opened(Way::Http, &case.own_config("start-wait-ms = 20000"));
    let mut bob = ann.another(Way::Http);
    for skill in ["one", "two"] {
        ann.load(skill);
    }
    let updated = "notifications/resources/updated";
    ann.result("resources/subscribe", json!({"uri": "x-two+info://about"}));
    bob.result("resources/subscribe", json!({"uri": "info://about"}));
    let change = json!({"method": updated, "params": {"uri": "info://about"}});
    ann.call("two_tell", change.clone());
    assert_eq!(told(&mut ann, updated)["uri"], "x-two+info://about");
    ann.call("tell", change.clone());
    assert_eq!(told(&mut bob, updated)["uri"], "info://about");
    ann.result("resources/unsubscribe", json!({"uri": "x-two+info://about"}));
    ann.call("two_tell", change.clone());
    ann.call("tell", change);
    assert_eq!(told(&mut bob, updated)["uri"], "info://about");
    for session in [&mut ann, &mut bob] {
        assert_eq!(session.count(|message| message["method"] == updated), 0, "nothing else was told");
    }
    let asked = case.journal("journal-two.jsonl");
    let asked = asked.iter().find(|message| message["method"] == "resources/subscribe").unwrap();
    assert_eq!(asked["params"]["uri"], "info://about", "the upstream is asked by its own URI");
}

#[test]
fn news_of_lists_reach_every_session() {
    for is_remote in [false, true] {
        let (case, _server, config) = before(is_remote);
        let mut ann = Proxy::opened(Way::Http, &config);
        ann.load("one");
        let mut bob = ann.another(Way::Http);
        if is_remote {
            wait_until("gatekey listens to the server", PATIENCE, || {
                case.journal("journal-one.jsonl").iter().any(|note| note["listening"] == true)
            });
        }
        for list in ["prompts", "resources"] {
            let method = format!("notifications/{list}/list_changed");
            ann.call("tell", json!({"method": method}));
            told(&mut ann, &method);
            told(&mut bob, &method);
        }
    }
}

in_ways! { [stdio http]
fn an_upstream_that_starts_late_is_news_of_what_it_has(way: Way) {
    let mut case = Case::talks(&["one", "two"]);
    case.add_args("two", &["--init-delay", "2"]);
    let mut proxy = Proxy::opened(way, &case.own_config("start-wait-ms = 0"));
    proxy.load("one");
    assert_eq!(listed(&mut proxy, "prompts/list", "prompts").len(), 1);
    assert_eq!(listed(&mut proxy, "resources/list", "resources").len(), 2);
    let methods = ["prompts", "resources"].map(|list| format!("notifications/{list}/list_changed"));
    // The first one may have been news as well.
    for method in &methods {
        for _ in 0..proxy.count(|message| message["method"] == *method) {
            told(&mut proxy, method);
        }
    }
    for method in &methods {
        proxy.wait_for("news", PATIENCE, |message| message["method"] == *method);
    }
    assert_eq!(listed(&mut proxy, "prompts/list", "prompts").len(), 2);
    assert_eq!(listed(&mut proxy, "resources/list", "resources").len(), 4);
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn prompts_and_completions_go_to_their_own_upstream_with_arguments_unchanged(way: Way) {
    // The separator of other proxies inside names.
    let mut case = Case::talks(&["my__srv", "my", "my_"]);
    for (server, prompts) in [("my__srv", &["do__it"][..]), ("my", &["srv__do__it", "_do"]), ("my_", &["do"])] {
        for prompt in prompts {
            case.add_args(server, &["--prompt", prompt]);
        }
    }
    let mut proxy = Proxy::opened(way, &case.own_config("start-wait-ms = 20000"));
    let prompts = listed(&mut proxy, "prompts/list", "prompts");
    let names: Vec<&str> = prompts.iter().filter_map(|prompt| prompt["name"].as_str()).collect();
    assert_eq!(names, ["do__it", "srv__do__it", "_do", "do"]);
    for prompt in &prompts {
        let (name, owner) = (prompt["name"].as_str().unwrap(), prompt["_meta"][ORIGIN].as_str().unwrap());
        let got = proxy.result("prompts/get", json!({"name": name, "arguments": {"x": "é \" 1.0"}}));
        let arguments = "{\"x\": \"\\u00e9 \\\" 1.0\"}";
        assert_eq!(got["messages"][0]["content"]["text"], format!("{owner}|{name}|{arguments}"));
        let about = json!({"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": "x", "value": "v"}});
        let completed = proxy.result("completion/complete", about);
        assert_eq!(completed["completion"]["values"], json!([format!("{owner}|{name}|v")]));
    }
    let about = json!({"ref": {"type": "ref/resource", "uri": "x-my+note://{id}"}, "argument": {"name": "id", "value": "v"}});
    let completed = proxy.result("completion/complete", about);
    assert_eq!(completed["completion"]["values"], json!(["my|note://{id}|v"]));
}
}

#[test]
fn each_session_gets_the_log_messages_of_the_severity_that_it_asked_for() {
    let (_case, _server, config) = before(false);
    let mut ann = Proxy::opened(Way::Http, &config);
    let mut bob = ann.another(Way::Http);
    ann.load("one");
    ann.result("logging/setLevel", json!({"level": "error"}));
    bob.result("logging/setLevel", json!({"level": "debug"}));
    for (level, text) in [("info", "by the way"), ("error", "it broke")] {
        ann.call("say", json!({"texts": [text], "level": level, "later": true}));
        // In their order, so that what one gets and the other does not is seen.
        assert_eq!(told(&mut bob, "notifications/message")["data"], text);
    }
    assert_eq!(told(&mut ann, "notifications/message")["data"], "it broke");
}
