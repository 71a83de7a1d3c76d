//! Attacks by what is no tool: resources, prompts, completions, tasks, subscriptions and methods of a server's own, where all
//! of it is closed or some of it is forbidden. The server's journal has what is allowed and no trace of the rest.

use std::fs;

use serde_json::{Value, json};

use super::attack_gate::{notify, raw};
use crate::support::{
    cases::{Case, ran},
    proxy::{PATIENCE, Proxy, text_of},
    ways::{Way, in_ways},
};

/// A talking server none of whose tools is open, with this at the top of the config.
fn office(top: &str, rules: &str) -> (Case, std::path::PathBuf) {
    let mut case = Case::talks(&["talks"]);
    case.add_args("talks", &["--prompt", "greet", "--prompt", "secret"]);
    case.write("skills/desk/SKILL.md", "---\nname: desk\ndescription: Puts things on the desk.\n---\nPut.\n");
    case.write("map.toml", "version = 1\n[skills]\ndesk = [\"=put\", \"=tell\", \"=work\"]\n");
    let config = case
        .own_config(&format!("start-wait-ms = 20000\nmaps = [\"map.toml\"]\nskills = [\"skills\"]\n{top}\n{rules}"));
    (case, config)
}

/// Everything but tools that a server may be asked for.
fn beyond_tools(way: Way) -> Vec<(&'static str, Value)> {
    let completes = |reference: Value| json!({"ref": reference, "argument": {"name": "x", "value": "v"}});
    let mut all = vec![
        ("resources/read", json!({"uri": "info://about"})),
        ("resources/read", json!({"uri": "note://7"})),
        ("resources/read", json!({"uri": "x-talks+info://about"})),
        ("resources/directory/read", json!({"uri": "info://about"})),
        ("skills/get", json!({"uri": "skill://talks/x/SKILL.md"})),
        ("prompts/get", json!({"name": "greet"})),
        ("prompts/get", json!({"name": "talks_greet"})),
        ("completion/complete", completes(json!({"type": "ref/prompt", "name": "greet"}))),
        ("completion/complete", completes(json!({"type": "ref/resource", "uri": "note://{id}"}))),
        ("tasks/get", json!({"taskId": "1"})),
        ("tasks/cancel", json!({"taskId": "1"})),
        ("tasks/update", json!({"taskId": "1"})),
        ("own/method", json!({})),
        ("own/method", json!({"_meta": {"gatekey/upstream": "talks"}})),
        ("sampling/createMessage", json!({"messages": []})),
        ("roots/list", json!({})),
        ("", json!({})),
    ];
    if !way.is_modern() {
        all.push(("resources/subscribe", json!({"uri": "info://about"})));
        all.push(("resources/unsubscribe", json!({"uri": "info://about"})));
        all.push(("tasks/result", json!({"taskId": "1"})));
    }
    all
}

in_ways! { [stdio http modern_stdio modern_http]
fn resources_prompts_and_own_methods_of_a_server_that_is_closed_as_a_whole(way: Way) {
    let (case, config) = office("beyond-tools = \"closed\"", "");
    let mut proxy = Proxy::opened(way, &config);
    for (method, member) in [("resources/list", "resources"), ("resources/templates/list", "resourceTemplates"), ("prompts/list", "prompts")] {
        let listed = proxy.result(method, json!({}));
        let own = |entry: &Value| entry["uri"].as_str().is_some_and(|uri| uri.starts_with("skill://"));
        assert!(listed[member].as_array().unwrap().iter().all(own), "{method}: {listed}");
    }
    for (method, params) in beyond_tools(way) {
        let id = proxy.ask(method, params.clone());
        let refused = proxy.answer_to(id);
        assert!(refused["error"].is_object(), "{method} {params}: {refused}");
    }
    for line in [r#"{"jsonrpc":"2.0","method":"notifications/own","params":{"uri":"info://about"}}"#, r#"{"jsonrpc":"2.0","method":"resources/read","params":{"uri":"info://about"}}"#] {
        notify(&mut proxy, way, line);
    }
    if way.is_modern() {
        proxy.ask("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": ["info://about", "note://1"]}}));
        proxy.wait_for("the acknowledgement", PATIENCE, |message| message["method"] == "notifications/subscriptions/acknowledged");
    }
    // Its lists are asked for by us; nothing of what the client named got there.
    proxy.load("desk");
    assert_eq!(text_of(&proxy.call("put", json!({}))), "put");
    let text = fs::read_to_string(case.path("journal-talks.jsonl")).unwrap();
    for trace in ["info://about", "note://", "greet", "own", "taskId", "resources/read", "createMessage", "subscribe\""] {
        assert!(!text.contains(trace), "{trace} in {text}");
    }
    assert_eq!(ran(&case.journal("journal-talks.jsonl")), ["put"]);
}
}

in_ways! { [modern_stdio modern_http]
fn news_of_a_resource_of_a_server_that_is_closed_as_a_whole(way: Way) {
    let (case, config) = office("beyond-tools = \"closed\"", "");
    let mut proxy = Proxy::opened(way, &config);
    proxy.ask("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": ["info://about"], "promptsListChanged": true}}));
    proxy.wait_for("the acknowledgement", PATIENCE, |message| message["method"] == "notifications/subscriptions/acknowledged");
    proxy.load("desk");
    for (method, params) in [("notifications/resources/updated", json!({"uri": "info://about"})), ("notifications/prompts/list_changed", json!({}))] {
        assert_eq!(text_of(&proxy.call("tell", json!({"method": method, "params": params}))), "told");
    }
    proxy.wait_for("what comes after it", PATIENCE, |message| message["method"] == "notifications/prompts/list_changed");
    assert!(!proxy.raw.iter().any(|line| line.contains("resources/updated")), "{:?}", proxy.raw);
    let text = fs::read_to_string(case.path("journal-talks.jsonl")).unwrap();
    assert!(!text.contains("resources/subscribe"), "{text}");
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn a_completion_that_names_two_things(way: Way) {
    let (case, config) = office("", "[[rules]]\ndeny-resources = [\"note://hr-*\", \"secret\"]");
    let mut proxy = Proxy::opened(way, &config);
    let argument = r#""argument":{"name":"x","value":"v"}"#;
    for (number, reference) in [
        r#"{"type":"ref/prompt","name":"secret"}"#,
        r#"{"type":"ref/prompt","name":"greet","name":"secret"}"#,
        r#"{"type":"ref/prompt","name":"secret","name":"greet"}"#,
        r#"{"type":"ref/prompt","name":"greet","Name":"secret"}"#,
        r#"{"type":"ref/prompt","name":"greet","n\u0061me":"secret"}"#,
        r#"{"type":"ref/resource","name":"greet","uri":"note://hr-1"}"#,
        r#"{"type":"ref/resource","uri":"note://hr-1","name":"greet"}"#,
        r#"{"type":"ref/prompt","uri":"note://1","name":"secret"}"#,
        r#"{"type":"ref/resource","uri":"note://1","URI":"note://hr-1"}"#,
        r#"{"type":"ref/prompt","type":"ref/resource","name":"greet","uri":"note://hr-1"}"#,
    ].iter().enumerate() {
        let params = format!(r#"{{"ref":{reference},{argument}}}"#);
        let refused = raw(&mut proxy, way, 1_000 + number as u64, "completion/complete", &params, "");
        assert!(refused["error"].is_object(), "{reference}: {refused}");
    }
    let allowed = proxy.result("completion/complete", json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "x", "value": "v"}}));
    assert_eq!(allowed["completion"]["values"], json!(["talks|greet|v"]));
    let asked = case.journal("journal-talks.jsonl").into_iter().filter(|message| message["method"] == "completion/complete").count();
    let text = fs::read_to_string(case.path("journal-talks.jsonl")).unwrap();
    assert!(asked == 1 && !text.contains("hr-1") && !text.contains("secret"), "{text}");
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn a_forbidden_resource_or_prompt_by_two_names_at_once(way: Way) {
    let (case, config) = office("", "[[rules]]\ndeny-resources = [\"note://hr-*\", \"secret\"]");
    let mut proxy = Proxy::opened(way, &config);
    for (number, (method, params)) in [
        ("resources/read", r#"{"uri":"note://1","uri":"note://hr-1"}"#),
        ("resources/read", r#"{"uri":"note://hr-1","uri":"note://1"}"#),
        ("resources/read", r#"{"uri":"note://1","URI":"note://hr-1"}"#),
        ("resources/read", r#"{"uri":"note://1","ur\u0069":"note://hr-1"}"#),
        ("resources/read", r#"{"uri":["note://hr-1"]}"#),
        ("prompts/get", r#"{"name":"greet","name":"secret"}"#),
        ("prompts/get", r#"{"name":"greet","Name":"secret"}"#),
        ("prompts/get", r#"{"name":{"name":"secret"}}"#),
    ].iter().enumerate() {
        for (place, named) in ["note://1", "note://hr-1", "greet", "secret"].iter().enumerate() {
            let id = 1_000 + 4 * number as u64 + place as u64;
            let refused = raw(&mut proxy, way, id, method, params, named);
            assert!(refused["error"].is_object(), "{method} {params}: {refused}");
        }
    }
    assert_eq!(proxy.result("resources/read", json!({"uri": "note://1"}))["contents"][0]["text"], "talks note 1");
    let text = fs::read_to_string(case.path("journal-talks.jsonl")).unwrap();
    assert!(!text.contains("hr-1") && !text.contains("secret"), "{text}");
}
}
