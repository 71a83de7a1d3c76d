//! What rules keep from a caller besides tools: skills, resources and prompts, by every path, in both eras, said or concealed.

use std::time::Duration;

use serde_json::{Value, json};

use super::auth::token;
use crate::support::{
    cases::Case,
    http::{Reply, post},
    process::proxy_of,
    proxy::{Proxy, text_of, upstream_names},
    wait_until,
    ways::{Way, in_ways},
};

const SECOND: Duration = Duration::from_secs(1);
const RULES: &str = "[[rules]]\nroles = [\"clerk\"]\ndeny-skills = [\"hr-*\"]\n\
                     deny-resources = [\"note://hr-*\", \"secret\"]\n[[rules]]\nroles = [\"admin\"]\nallow-skills = [\"*\"]";

/// A talking server with two skills, and a config with these lines.
fn office(more: &str, rules: &str) -> (Case, std::path::PathBuf) {
    let mut case = Case::talks(&["talks"]);
    case.add_args("talks", &["--prompt", "greet", "--prompt", "secret"]);
    for (name, description) in [("desk", "Puts things on the desk."), ("hr-pay", "Says what people are paid.")] {
        let text = format!("---\nname: {name}\ndescription: {description}\n---\nRead [more](references/more.md).\n");
        case.write(&format!("skills/{name}/SKILL.md"), &text);
        case.write(&format!("skills/{name}/references/more.md"), &format!("more of {name}"));
    }
    case.write("map.toml", "version = 1\n[skills]\ndesk = [\"=put\", \"=tell\"]\nhr-pay = [\"=say\"]\n");
    let files = "maps = [\"map.toml\"]\nskills = [\"skills\"]";
    let auth = "[http.auth]\ntokens = \"tokens.json\"";
    let config = case.own_config(&format!("start-wait-ms = 20000\n{files}\n{more}\n{rules}\n{auth}"));
    (case, config)
}

/// The whole answer.
fn answer(proxy: &mut Proxy, method: &str, params: Value) -> Value {
    let id = proxy.ask(method, params);
    proxy.answer_to(id)
}

/// Code of a meta-tool's refusal.
fn code(proxy: &mut Proxy, tool: &str, arguments: Value) -> String {
    proxy.call(tool, arguments)["structuredContent"]["code"].as_str().unwrap_or("none").to_owned()
}

fn check_closed(way: Way, is_concealing: bool) {
    let (_case, config) = office(&format!("conceal = {is_concealing}"), RULES);
    let (ann, root) = (token(&config, "ann", &["--role", "clerk"]), token(&config, "root", &["--role", "admin"]));
    let mut proxy = Proxy::spawn_in(way, proxy_of(&config)).with_bearer(&ann).greeted();
    let mut admin = proxy.another_as(way, &root);
    let said = |plain: &'static str, concealed: &'static str| if is_concealing { concealed } else { plain };

    // Lists.
    for (method, params, hidden, shown) in [
        ("tools/list", json!({}), "hr-pay", "desk"),
        (
            "tools/call",
            json!({"name": "skill_search", "arguments": {"query": "what people are paid, on the desk"}}),
            "hr-pay",
            "desk",
        ),
        ("skills/list", json!({}), "hr-pay", "desk"),
        ("resources/list", json!({}), "hr-pay", "desk"),
        ("prompts/list", json!({}), "secret", "greet"),
    ] {
        let listed = answer(&mut proxy, method, params.clone()).to_string();
        assert!(!listed.contains(hidden) && listed.contains(shown), "{method}: {listed}");
        let whole = answer(&mut admin, method, params).to_string();
        assert!(whole.contains(hidden), "{method}: {whole}");
    }

    // A skill by name.
    for (tool, arguments) in [
        ("skill_load", json!({"name": "hr-pay"})),
        ("skill_read_reference", json!({"skill": "hr-pay", "path": "references/more.md"})),
        ("tool_describe", json!({"skill": "hr-pay"})),
    ] {
        assert_eq!(code(&mut proxy, tool, arguments), said("forbidden", "unknown_skill"), "{tool}");
    }
    let unknown = proxy.call("skill_load", json!({"name": "hr-pai"})).to_string();
    assert!(!unknown.contains("hr-pay"), "it is not what was meant: {unknown}");
    let closed = proxy.call("say", json!({"texts": []}));
    assert_eq!(closed["structuredContent"]["code"], "inactive");
    assert!(!closed.to_string().contains("hr-pay"), "{closed}");
    let described = proxy.call("tool_describe", json!({"names": ["say"]})).to_string();
    assert!(!described.contains("hr-pay"), "{described}");
    // The key that another one was given.
    let key = admin.load("hr-pay")["key"].clone();
    let stolen = json!({"key": key, "name": "say", "arguments": {"texts": []}});
    assert_eq!(code(&mut proxy, "tool_call_write", stolen.clone()), "inactive");
    assert_eq!(text_of(&admin.call("tool_call_write", stolen)), "said");
    let url = proxy.url().replace("/mcp", "/skill/hr-pay/mcp");
    let greeting =
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
    let at = |token: &str| Reply::to(post(&proxy.http().http, &url, greeting).bearer_auth(token)).status;
    assert_eq!([at(&ann), at(&root)], [if is_concealing { 404 } else { 403 }, 200]);

    // What has a URI or is a prompt: as what there is not, where that is concealed.
    let completes = |reference: Value| json!({"ref": reference, "argument": {"name": "x", "value": "v"}});
    let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
    let template = |uri: &str| json!({"type": "ref/resource", "uri": uri});
    let mut about = vec![
        ("resources/read", json!({"uri": "note://hr-1"}), "resource not found"),
        ("resources/read", json!({"uri": "skill://hr-pay/SKILL.md"}), ""),
        ("skills/get", json!({"uri": "skill://hr-pay/SKILL.md"}), ""),
        ("resources/directory/read", json!({"uri": "skill://hr-pay"}), ""),
        ("prompts/get", json!({"name": "secret"}), "unknown prompt: secret"),
        ("completion/complete", completes(prompt("secret")), "unknown reference: secret"),
        ("completion/complete", completes(template("note://hr-1")), "unknown reference: note://hr-1"),
    ];
    if !way.is_modern() {
        about.push(("resources/subscribe", json!({"uri": "note://hr-1"}), "resource not found"));
    }
    for (method, params, concealed) in about {
        let error = answer(&mut proxy, method, params.clone())["error"].clone();
        let (message, code) = (error["message"].as_str().unwrap_or_default(), &error["data"]["code"]);
        if is_concealing {
            assert!(code.is_null() && !message.is_empty() && message.contains(concealed), "{method} {params}: {error}");
        } else {
            assert_eq!(code, "forbidden", "{method} {params}: {error}");
        }
        let allowed = answer(&mut admin, method, params.clone());
        assert!(allowed.get("error").is_none(), "{method} {params}: {allowed}");
    }
    for (method, params) in [
        ("resources/read", json!({"uri": "note://1"})),
        ("resources/read", json!({"uri": "skill://desk/references/more.md"})),
        ("prompts/get", json!({"name": "greet"})),
        ("completion/complete", completes(prompt("greet"))),
    ] {
        let allowed = answer(&mut proxy, method, params.clone());
        assert!(allowed.get("error").is_none(), "{method} {params}: {allowed}");
    }
}

in_ways! { [http modern_http]
fn what_a_rule_keeps_from_a_role_is_forbidden_by_every_path(way: Way) {
    check_closed(way, false);
}
}

in_ways! { [http modern_http]
fn what_is_concealed_is_as_what_there_is_not_by_every_path(way: Way) {
    check_closed(way, true);
}
}

in_ways! { [http modern_http]
fn nobody_hears_of_changes_of_what_they_may_not_know(way: Way) {
    let (_case, config) = office("", RULES);
    let ann = token(&config, "ann", &["--role", "clerk"]);
    let mut proxy = Proxy::spawn_in(way, proxy_of(&config)).with_bearer(&ann).greeted();
    proxy.load("desk");
    if way.is_modern() {
        let uris = json!({"resourceSubscriptions": ["note://hr-1", "note://1"]});
        proxy.ask("subscriptions/listen", json!({"notifications": uris}));
        proxy.wait_for("the acknowledgement", 5 * SECOND, |message| {
            message["method"] == "notifications/subscriptions/acknowledged"
        });
    } else {
        proxy.result("resources/subscribe", json!({"uri": "note://1"}));
        answer(&mut proxy, "resources/subscribe", json!({"uri": "note://hr-1"}));
    }
    for uri in ["note://hr-1", "note://1"] {
        let told = json!({"method": "notifications/resources/updated", "params": {"uri": uri}});
        assert_eq!(text_of(&proxy.call("tell", told)), "told");
    }
    let is_update = |message: &Value| message["method"] == "notifications/resources/updated";
    let first = proxy.wait_for("an update", 5 * SECOND, is_update);
    assert_eq!(first["params"]["uri"], "note://1");
}
}

in_ways! { [http modern_http]
fn a_rule_that_comes_later_closes_a_skill_that_is_loaded(way: Way) {
    let (case, config) = office("", "");
    let ann = token(&config, "ann", &[]);
    let mut proxy = Proxy::spawn_in(way, proxy_of(&config)).with_bearer(&ann).greeted();
    let key = proxy.load("hr-pay")["key"].clone();
    assert_eq!(text_of(&proxy.call("say", json!({"texts": []}))), "said");
    let text = std::fs::read_to_string(&config).unwrap();
    case.write("gatekey.toml", &format!("{text}\n[[rules]]\ndeny-skills = [\"hr-pay\"]\n"));
    wait_until("the rule holds", 10 * SECOND, || code(&mut proxy, "skill_load", json!({"name": "hr-pay"})) == "forbidden");
    let keyed = json!({"key": key, "name": "say", "arguments": {"texts": []}});
    assert_eq!(code(&mut proxy, "say", json!({"texts": []})), "inactive");
    assert_eq!(code(&mut proxy, "tool_call_write", keyed), "inactive");
    assert_eq!(upstream_names(&proxy.list()), [""; 0]);
}
}
