//! Attacks on the gate: every way that somebody may try to a tool that is closed to them, or to what is forbidden. Each ends
//! with a call that is allowed, and with what the server's journal has: that call and no other.

use std::fs;

use serde_json::{Value, json};

use super::auth::token;
use crate::support::{
    cases::{Case, called, ran},
    desk::Desk,
    http::{Reply, post},
    process::proxy_of,
    proxy::{PATIENCE, Proxy, modern_meta, text_of, upstream_names},
    raw::{exchange, statuses},
    wait_until,
    ways::{Way, in_ways},
};

/// The tool that stays closed: `beta` opens it, and nobody loads that.
const CLOSED: &str = "b_get";
/// Spellings that somebody, or a reader that is not strict, may take for the closed tool.
const SPELLINGS: &[&str] = &[
    "B_GET",
    "B_get",
    "b_get ",
    " b_get",
    "\tb_get",
    "b_get\n",
    "b_get\r\n",
    "b_get\u{0}",
    "b_get\u{0}a_get",
    "a_get\u{0}b_get",
    "b_\u{200b}get",
    "\u{feff}b_get",
    "\u{202e}teg_b",
    "b_gеt",
    "ｂ_get",
    "b＿get",
    "b_get\u{301}",
    "many/b_get",
    "many:b_get",
    "many.b_get",
    "many__b_get",
    "many_b_get",
    "mcp__gatekey__b_get",
    "=b_get",
    "b_*",
    "*",
    "b_",
    "a_get,b_get",
    "a_get b_get",
    "a_get/../b_get",
    "../b_get",
    "b%5fget",
    "b_get%00",
    "b\\u005fget",
    "b_get?",
    "b_get;",
    "\"b_get\"",
];

/// The desk with a client that has loaded `alpha`; returns its key as well.
fn opened(way: Way) -> (Desk, Proxy, Value) {
    let desk = Desk::new();
    let (proxy, key) = client_of(&desk, way);
    (desk, proxy, key)
}

fn client_of(desk: &Desk, way: Way) -> (Proxy, Value) {
    let mut proxy = Proxy::spawn_in(way, proxy_of(&desk.path("gatekey.toml"))).greeted();
    let key = proxy.load("alpha")["key"].clone();
    (proxy, key)
}

/// The server's journal has one call, which is allowed and made here, and no trace of the closed tool in any message.
fn nothing_got_through(desk: &Desk, proxy: &mut Proxy) {
    assert_eq!(text_of(&proxy.call("a_get", json!({"n": 1}))), "ok:a_get");
    let text = fs::read_to_string(desk.journal_file()).unwrap();
    assert_eq!(called(&desk.journal()), ["a_get"], "{text}");
    assert!(!text.contains(CLOSED), "{text}");
}

/// The code of a refusal; a JSON-RPC error counts as one.
fn refusal(answer: &Value) -> String {
    let error = &answer["error"];
    if error.is_object() {
        return error["code"].to_string();
    }
    let result = &answer["result"];
    assert_eq!(result["isError"], true, "{answer}");
    result["structuredContent"]["code"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// The whole answer to a call.
fn answer(proxy: &mut Proxy, tool: &str, arguments: Value) -> Value {
    let id = proxy.ask("tools/call", json!({"name": tool, "arguments": arguments}));
    proxy.answer_to(id)
}

/// Sends a request whose params are written as they are; the headers over HTTP say that it is about `named`.
pub(crate) fn raw(proxy: &mut Proxy, way: Way, id: u64, method: &str, params: &str, named: &str) -> Value {
    let rest = params.strip_prefix('{').unwrap();
    let (params, meta) = match way.is_modern() {
        true => (format!(r#"{{"_meta":{},{rest}"#, modern_meta()), modern_meta()),
        false => (params.to_owned(), json!({})),
    };
    let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{},"params":{params}}}"#, json!(method));
    let headers = json!({"id": id, "method": method, "params": {"name": named, "uri": named, "_meta": meta}});
    proxy.send_as(&line, &headers);
    proxy.wait_for(&line, PATIENCE, |message| message["id"] == id && message.get("method").is_none())
}

/// Sends a notification as it is written; over HTTP, in the newer era, with what that needs.
pub(crate) fn notify(proxy: &mut Proxy, way: Way, line: &str) {
    let meta = if way.is_modern() { modern_meta() } else { json!({}) };
    let message: Value = serde_json::from_str(line).unwrap_or_default();
    proxy.send_as(line, &json!({"method": message["method"], "params": {"name": CLOSED, "_meta": meta}}));
}

// Names

in_ways! { [stdio http modern_stdio modern_http]
fn a_closed_tool_by_its_plain_name(way: Way) {
    let (desk, mut proxy, _) = opened(way);
    let refused = answer(&mut proxy, CLOSED, json!({"n": 1}));
    assert_eq!(refusal(&refused), "inactive");
    assert!(text_of(&refused["result"]).contains("\"beta\""), "it says what to do: {refused}");
    nothing_got_through(&desk, &mut proxy);
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn a_closed_tool_by_names_that_look_like_it(way: Way) {
    let (desk, mut proxy, key) = opened(way);
    for spelling in SPELLINGS {
        assert_ne!(refusal(&answer(&mut proxy, spelling, json!({"n": 1}))), "", "{spelling:?}");
        for by in ["tool_call_read", "tool_call_write"] {
            let arguments = json!({"key": key, "name": spelling, "arguments": {"n": 1}});
            assert_ne!(refusal(&answer(&mut proxy, by, arguments)), "", "{spelling:?}");
        }
    }
    nothing_got_through(&desk, &mut proxy);
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn two_names_in_one_call(way: Way) {
    let (desk, mut proxy, _) = opened(way);
    let pairs = [
        r#""name":"free_get","name":"b_get""#,
        r#""name":"b_get","name":"free_get""#,
        r#""name":"a_get","n\u0061me":"b_get""#,
        r#""name":"a_get","Name":"b_get""#,
        r#""NAME":"b_get","name":"a_get""#,
        r#""name":"a_get","name\u0000":"b_get""#,
        r#""name":"a_get","nam\u212a":"b_get","name":"b_get""#,
        r#""name":"b_get\u0000","name":"a_get""#,
    ];
    for (number, pair) in pairs.iter().enumerate() {
        for (place, named) in ["a_get", CLOSED].iter().enumerate() {
            let params = format!(r#"{{{pair},"arguments":{{"n":1}}}}"#);
            let id = 1_000 + 2 * number as u64 + place as u64;
            assert_ne!(refusal(&raw(&mut proxy, way, id, "tools/call", &params, named)), "", "{pair}");
        }
    }
    nothing_got_through(&desk, &mut proxy);
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn two_names_in_one_dispatched_call(way: Way) {
    let (desk, mut proxy, key) = opened(way);
    let forms = [
        format!(r#"{{"key":{key},"name":"b_get","name":"b_get"}}"#),
        format!(r#"{{"key":{key},"tool":"b_get"}}"#),
        format!(r#"{{"key":{key},"n\u0061me":"b_get","arguments":{{"n":1}}}}"#),
        json!(format!(r#"{{"key":{key},"name":"b_get","arguments":{{"n":1}}}}"#)).to_string(),
        format!(r#"{{"key":{key},"name":["a_get","b_get"]}}"#),
        format!(r#"{{"key":{key},"name":{{"name":"b_get"}}}}"#),
        format!(r#"{{"key":{key},"name":"tool_call_write","arguments":{{"key":{key},"name":"b_get"}}}}"#),
        format!(r#"{{"key":{key},"name":"tool_call_read","arguments":{{"name":"b_get","arguments":{{}}}}}}"#),
    ];
    for (number, form) in forms.iter().enumerate() {
        for by in ["tool_call_read", "tool_call_write"] {
            let id = 1_000 + 2 * number as u64 + u64::from(by == "tool_call_read");
            let params = format!(r#"{{"name":"{by}","arguments":{form}}}"#);
            assert_ne!(refusal(&raw(&mut proxy, way, id, "tools/call", &params, by)), "", "{form}");
        }
    }
    nothing_got_through(&desk, &mut proxy);
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn a_name_that_is_no_text(way: Way) {
    let (desk, mut proxy, _) = opened(way);
    for (number, name) in ["7", "null", "true", r#"["b_get"]"#, r#"{"name":"b_get"}"#, r#""\ud800b_get""#, "1e400"].iter().enumerate() {
        let params = format!(r#"{{"name":{name},"arguments":{{"n":1}}}}"#);
        let refused = raw(&mut proxy, way, 1_000 + number as u64, "tools/call", &params, CLOSED);
        assert!(refused["error"].is_object(), "{name}: {refused}");
    }
    nothing_got_through(&desk, &mut proxy);
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn the_closed_tools_name_in_arguments_and_meta_of_an_open_one(way: Way) {
    let (desk, mut proxy, key) = opened(way);
    let inner = json!({"n": 1, "name": "other", "key": key, "tool": "other", "arguments": {"name": "other"}});
    let mut params = json!({"name": "a_get", "arguments": inner, "_meta": {"gatekey/upstream": "many", "name": "other"}});
    if way.is_modern() {
        params = json!({"name": "tool_call_read", "arguments": {"key": key, "name": "a_get", "arguments": inner},
            "_meta": {"gatekey/upstream": "many", "name": "other"}});
    }
    assert_eq!(text_of(&proxy.result("tools/call", params)), "ok:a_get");
    let journal = desk.journal();
    let call = journal.iter().find(|message| message["method"] == "tools/call").unwrap();
    assert_eq!((&call["params"]["name"], &call["params"]["arguments"]), (&json!("a_get"), &inner));
    for meta in [json!({"gatekey/upstream": "many"}), json!({"gatekey/skill": "beta"}), json!({"key": key})] {
        let id = proxy.ask("tools/call", json!({"name": CLOSED, "arguments": {"n": 1}, "_meta": meta}));
        assert_eq!(refusal(&proxy.answer_to(id)), "inactive", "{meta}");
    }
    assert_eq!(called(&desk.journal()), ["a_get"]);
}
}

// Messages

in_ways! { [stdio http modern_stdio modern_http]
fn calls_in_a_batch(way: Way) {
    let (desk, mut proxy, _) = opened(way);
    let call = json!({"jsonrpc": "2.0", "id": 900, "method": "tools/call", "params": {"name": CLOSED, "arguments": {"n": 1}, "_meta": modern_meta()}});
    let open = json!({"jsonrpc": "2.0", "id": 901, "method": "tools/call", "params": {"name": "free_get", "arguments": {}}});
    for batch in [json!([call]), json!([open, call]), json!([[call]]), json!([])] {
        // Over HTTP what is no request is posted at once, and its answer comes like any other.
        proxy.send_as(&batch.to_string(), &json!({"params": {"name": CLOSED}}));
        let refused = proxy.wait_for("a refusal", PATIENCE, |message| message["id"].is_null() && message["error"].is_object());
        assert_eq!(refused["error"]["code"], -32600, "{batch}");
    }
    nothing_got_through(&desk, &mut proxy);
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn a_call_that_wants_no_answer(way: Way) {
    let (desk, mut proxy, key) = opened(way);
    for params in [
        json!({"name": CLOSED, "arguments": {"n": 1}, "_meta": modern_meta()}),
        json!({"name": "tool_call_read", "arguments": {"key": key, "name": CLOSED, "arguments": {"n": 1}}}),
    ] {
        for method in ["tools/call", "tools\\/call", "Tools/Call", "tools/call ", "call"] {
            for id in ["", r#","id":null"#] {
                let line = format!(r#"{{"jsonrpc":"2.0"{id},"method":"{method}","params":{params}}}"#);
                notify(&mut proxy, way, &line);
            }
        }
    }
    nothing_got_through(&desk, &mut proxy);
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn a_call_behind_members_in_other_case(way: Way) {
    let (desk, mut proxy, _) = opened(way);
    let params = json!({"name": CLOSED, "arguments": {"n": 1}, "_meta": modern_meta()});
    // Readers that fold case take the last one.
    for line in [
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","METHOD":"tools/call","ID":7,"params":{params}}}"#),
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","Method":"tools/call","Id":8,"Params":{params}}}"#),
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","param\u017f":{params},"Method":"tools/call","ID":9}}"#),
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/roots/list_changed","Method":"tools/call","ID":9,"params":{params}}}"#),
    ] {
        notify(&mut proxy, way, &line);
    }
    for (id, more) in [(1_001, r#""Method":"tools/call""#), (1_002, r#""METHOD":"tools/call","Params":{"name":"b_get"}"#)] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"no/such",{more},"params":{params}}}"#);
        proxy.send_as(&line, &json!({"id": id, "method": "no/such", "params": {"_meta": modern_meta()}}));
        let refused = proxy.wait_for("a refusal", PATIENCE, |message| message["error"].is_object());
        assert!(refused["result"].is_null(), "{refused}");
    }
    nothing_got_through(&desk, &mut proxy);
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn methods_that_a_lenient_server_takes_for_a_call(way: Way) {
    // Methods that are not known go to the only server there is, for whom something of it is open.
    let (desk, mut proxy, _) = opened_always(way);
    for (number, method) in
        ["Tools/Call", "TOOLS/CALL", "tools/call ", " tools/call", "tools/call\u{a0}", "tools/call\0", "tools/call\n", "tools//call", "tools/call/", "tools/Call2", "tools\u{2215}call"]
            .iter()
            .enumerate()
    {
        let params = format!(r#"{{"name":"{CLOSED}","arguments":{{"n":1}}}}"#);
        if way == Way::ModernHttp && !method.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            // No header can say it as it is, and a body without its header is refused.
            continue;
        }
        let refused = raw(&mut proxy, way, 1_000 + number as u64, method, &params, CLOSED);
        assert!(refused["error"].is_object(), "{method:?}: {refused}");
    }
    nothing_got_through(&desk, &mut proxy);
}
}

/// The desk with a tool that is always open.
fn opened_always(way: Way) -> (Desk, Proxy, Value) {
    let desk = Desk::new();
    desk.write("map.toml", "version = 1\nalways = [\"free_\"]\n[skills]\nalpha = [\"a_\"]\nbeta = [\"b_\"]\n");
    let (proxy, key) = client_of(&desk, way);
    (desk, proxy, key)
}

in_ways! { [stdio http]
fn a_call_within_an_answer_to_the_servers_question(way: Way) {
    let case = Case::talks(&["talks"]);
    case.write("map.toml", "version = 1\n[skills]\ndesk = [\"=ask\"]\n");
    case.write("skills/desk/SKILL.md", "---\nname: desk\ndescription: Asks.\n---\nAsk.\n");
    let config = case.own_config("start-wait-ms = 20000\nmaps = [\"map.toml\"]\nskills = [\"skills\"]");
    let mut proxy = Proxy::spawn_in(way, proxy_of(&config));
    proxy.initialize_as(&json!({"roots": {}}));
    proxy.load("desk");
    for (more, is_taken) in [(r#","METHOD":"tools/call","Params":{"name":"put","arguments":{}}"#, false), ("", true)] {
        let id = proxy.ask("tools/call", json!({"name": "ask", "arguments": {"method": "roots/list"}}));
        let question = proxy.wait_for("the question", PATIENCE, |message| message["method"] == "roots/list");
        proxy.send_raw(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[]}}{more}}}"#, question["id"]));
        if !is_taken {
            proxy.send_raw(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[]}}}}"#, question["id"]));
        }
        assert!(text_of(&proxy.answer_to(id)["result"]).contains("roots"));
    }
    assert_eq!(ran(&case.journal("journal-talks.jsonl")), ["ask", "ask"]);
    let text = fs::read_to_string(case.path("journal-talks.jsonl")).unwrap();
    assert!(!text.contains("METHOD") && !text.contains("\"put\""), "{text}");
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn notifications_of_ones_own_to_a_server_that_is_closed(way: Way) {
    let case = Case::talks(&["one", "two"]);
    case.write("map.toml", "version = 1\nalways = [\"=put\"]\n[skills]\n");
    let mut proxy = Proxy::opened(way, &case.own_config("start-wait-ms = 20000\nmaps = [\"map.toml\"]"));
    proxy.list();
    for method in ["notifications/own", "notifications/roots/list_changed"] {
        let params = json!({"x": CLOSED, "_meta": if way.is_modern() { modern_meta() } else { json!({}) }});
        notify(&mut proxy, way, &format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params},"more":1}}"#));
    }
    assert_eq!(text_of(&proxy.call("put", json!({}))), "put");
    let told = |name: &str| -> Vec<Value> {
        let journal = case.journal(&format!("journal-{name}.jsonl"));
        let told = journal.into_iter().filter(|message| message.get("id").is_none() && message["params"]["x"] == CLOSED);
        told.map(|message| json!([message["method"], message["more"]])).collect()
    };
    let (own, roots) = (json!(["notifications/own", null]), json!(["notifications/roots/list_changed", null]));
    assert_eq!(told("one"), [own, roots.clone()]);
    wait_until("the other one has it", PATIENCE, || told("two") == [roots.clone()]);
}
}

// Keys

in_ways! { [stdio http modern_stdio modern_http]
fn keys_that_are_for_another_skill_or_for_none(way: Way) {
    let (desk, mut proxy, key) = opened(way);
    let key = key.as_str().unwrap().to_owned();
    let digest = key.rsplit('.').next().unwrap().to_owned();
    for invented in [
        json!(null),
        json!(""),
        json!(" "),
        json!(key),
        json!(format!("beta.{digest}")),
        json!(format!("Beta.{digest}")),
        json!(key.to_uppercase()),
        json!(format!("{key}.beta")),
        json!(format!("beta.{key}")),
        json!(format!("alpha.beta.{digest}")),
        json!("beta"),
        json!("beta."),
        json!(".aaaaaa"),
        json!("beta.aaaaaa"),
        json!("beta.AAAAAA"),
        json!("beta.\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}"),
        json!(format!("{key}\nbeta.{digest}")),
        json!([key]),
        json!({"skill": "beta"}),
        json!(7),
        json!(true),
        json!("x".repeat(100_000)),
    ] {
        for by in ["tool_call_read", "tool_call_write"] {
            let refused = answer(&mut proxy, by, json!({"key": invented, "name": CLOSED, "arguments": {"n": 1}}));
            assert_eq!(refusal(&refused), "inactive", "{invented}");
        }
        let described = proxy.call("tool_describe", json!({"names": [CLOSED], "key": invented}));
        assert_eq!(described["structuredContent"]["tools"], json!([]), "{invented}: {described}");
    }
    nothing_got_through(&desk, &mut proxy);
}
}

in_ways! { [modern_stdio modern_http]
fn guessing_many_keys(way: Way) {
    let (desk, mut proxy, _) = opened(way);
    // Some of the 2^30 there are; none must be better than another, and nobody is slowed down or locked out by them.
    let letters: Vec<char> = "abcdefghijklmnopqrstuvwxyz234567".chars().collect();
    let asked: Vec<u64> = (0..600_u64)
        .map(|number| {
            let mut rest = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let digest: String = (0..6).map(|_| { rest = rest.rotate_left(5); letters[(rest % 32) as usize] }).collect();
            let arguments = json!({"key": format!("beta.{digest}"), "name": CLOSED, "arguments": {"n": 1}});
            proxy.ask("tools/call", json!({"name": "tool_call_read", "arguments": arguments}))
        })
        .collect();
    for id in asked {
        let refused = proxy.answer_to(id);
        assert_eq!(refusal(&refused), "inactive", "{refused}");
        assert!(!refused.to_string().contains("beta."), "no answer says more of a key: {refused}");
    }
    nothing_got_through(&desk, &mut proxy);
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn a_key_from_before_the_map_changed(way: Way) {
    let (desk, mut proxy, key) = opened(way);
    desk.put("map.toml", "version = 1\n[skills]\nalpha = [\"=a_get\"]\nbeta = [\"b_\", \"a_put\"]\n");
    let stale = json!({"key": key, "name": "a_get", "arguments": {"n": 1}});
    wait_until("the map is read", PATIENCE, || answer(&mut proxy, "tool_call_read", stale.clone())["result"]["isError"] == true);
    let n_before = called(&desk.journal()).len();
    for tool in ["a_get", "a_put", CLOSED] {
        let refused = answer(&mut proxy, "tool_call_write", json!({"key": key, "name": tool, "arguments": {"n": 1}}));
        assert_eq!(refusal(&refused), "inactive", "{tool}");
    }
    let fresh = proxy.load("alpha")["key"].clone();
    assert_ne!(fresh, key);
    let refused = answer(&mut proxy, "tool_call_write", json!({"key": fresh, "name": "a_put", "arguments": {"n": 1}}));
    assert_eq!(refusal(&refused), "inactive", "what the map took away is closed by the new key too");
    assert_eq!(called(&desk.journal()).len(), n_before);
    assert_eq!(text_of(&answer(&mut proxy, "tool_call_read", json!({"key": fresh, "name": "a_get", "arguments": {"n": 1}}))["result"]), "ok:a_get");
    assert!(!fs::read_to_string(desk.journal_file()).unwrap().contains(CLOSED));
}
}

in_ways! { [http modern_http]
fn a_key_replayed_by_another_caller_and_after_a_restart(way: Way) {
    let desk = Desk::new();
    let config = desk.config("[http.auth]\ntokens = \"tokens.json\"\n");
    let tokens = ["ann", "ann:", "bob"].map(|name| if name.ends_with(':') { String::new() } else { token(&config, name, &[]) });
    let mut bob = Proxy::spawn_in(way, proxy_of(&config)).with_bearer(&tokens[2]).greeted();
    let mut ann = bob.another_as(way, &tokens[0]);
    let key = ann.load("beta")["key"].clone();
    bob.load("alpha");
    let call = json!({"key": key, "name": CLOSED, "arguments": {"n": 1}});
    for by in ["tool_call_read", "tool_call_write"] {
        assert_eq!(refusal(&answer(&mut bob, by, call.clone())), "inactive");
    }
    nothing_got_through(&desk, &mut bob);
    assert_eq!(text_of(&answer(&mut ann, "tool_call_read", call.clone())["result"]), "ok:b_get", "its owner");
    // Another secret, as every start has that is given none.
    let text = fs::read_to_string(&config).unwrap().replace("key-secret = \"s\"\n", "");
    fs::write(&config, text).unwrap();
    let mut again = Proxy::spawn_in(way, proxy_of(&config)).with_bearer(&tokens[0]).greeted();
    assert_eq!(refusal(&answer(&mut again, "tool_call_read", call)), "inactive");
    assert_eq!(called(&desk.journal()), ["a_get", CLOSED]);
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn the_core_skill_as_a_key_to_others(way: Way) {
    let desk = Desk::new();
    desk.write("map.toml", "version = 1\ncore-skill = \"alpha\"\n[skills]\nalpha = [\"a_\"]\nbeta = [\"b_\"]\n");
    let (mut proxy, key) = client_of(&desk, way);
    for by in ["tool_call_read", "tool_call_write"] {
        for key in [key.clone(), Value::Null, json!("alpha")] {
            let refused = answer(&mut proxy, by, json!({"key": key, "name": CLOSED, "arguments": {"n": 1}}));
            assert_eq!(refusal(&refused), "inactive");
        }
    }
    assert_eq!(refusal(&answer(&mut proxy, CLOSED, json!({"n": 1}))), "inactive");
    nothing_got_through(&desk, &mut proxy);
}
}

in_ways! { [stdio http]
fn an_unload_and_a_call_sent_together(way: Way) {
    let (desk, mut proxy, key) = opened(way);
    for _ in 0..10 {
        proxy.load("beta");
        let unload = proxy.ask("tools/call", json!({"name": "skill_unload", "arguments": {"name": "beta"}}));
        // Over HTTP requests that are sent together have no order; there the call comes when the unload is answered.
        if way.is_http() {
            proxy.answer_to(unload);
        }
        let call = proxy.ask("tools/call", json!({"name": CLOSED, "arguments": {"n": 1}}));
        let by_key = proxy.ask("tools/call", json!({"name": "tool_call_read", "arguments": {"key": key, "name": CLOSED, "arguments": {"n": 1}}}));
        for id in [call, by_key] {
            assert_eq!(refusal(&proxy.answer_to(id)), "inactive");
        }
    }
    nothing_got_through(&desk, &mut proxy);
}
}

in_ways! { [stdio http]
fn what_one_era_opened_used_in_the_other(way: Way) {
    // A legacy session on whose connection somebody sends requests of the newer era, where nothing is remembered.
    let (desk, mut proxy, _) = opened(way);
    let refused = proxy.modern_call("a_put", json!({"n": 1}));
    assert_eq!(refused["structuredContent"]["code"], "inactive", "{refused}");
    let listed = proxy.result("tools/list", json!({"_meta": modern_meta()}));
    assert_eq!(upstream_names(listed["tools"].as_array().unwrap()), [""; 0]);
    nothing_got_through(&desk, &mut proxy);
}
}

// What is said of closed tools

in_ways! { [stdio http modern_stdio modern_http]
fn a_closed_tools_definition_by_search_and_description(way: Way) {
    let (desk, mut proxy, key) = opened(way);
    let listed = proxy.list();
    assert!(!upstream_names(&listed).contains(&CLOSED));
    for arguments in [
        json!({"names": [CLOSED]}),
        json!({"names": [CLOSED], "key": key}),
        json!({"names": ["a_get", CLOSED], "key": key}),
        json!({"names": SPELLINGS, "key": key}),
        json!({"names": CLOSED}),
        json!({"query": "reads b_get", "key": key}),
        json!({"regex": ".*", "key": key}),
        json!({"regex": "(?i)B_GET", "key": key}),
        json!({"regex": "^(a|b)_", "key": key}),
    ] {
        let described = proxy.call("tool_describe", arguments.clone());
        let tools = described["structuredContent"]["tools"].as_array().cloned().unwrap_or_default();
        assert!(tools.iter().all(|tool| tool["name"] != CLOSED), "{arguments}: {described}");
        assert!(!described.to_string().contains("inputSchema\":{\"type\":\"object\",\"properties\":{\"b"), "{described}");
    }
    nothing_got_through(&desk, &mut proxy);
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn a_forbidden_tool_by_every_path_and_no_hint_of_it_where_it_is_concealed(way: Way) {
    let desk = Desk::new();
    desk.config_with(
        "maps = [\"map.toml\"]\nskills = [\"skills\"]\nconceal = true",
        "[[rules]]\ndeny = [\"b_*\"]\n",
    );
    let (mut proxy, key) = client_of(&desk, way);
    let mut said = vec![json!(proxy.list())];
    for (tool, arguments) in [
        (CLOSED, json!({"n": 1})),
        ("tool_call_read", json!({"key": key, "name": CLOSED, "arguments": {"n": 1}})),
        ("tool_call_read", json!({"name": CLOSED, "arguments": {"n": 1}})),
        ("tool_call_write", json!({"key": "beta.aaaaaa", "name": CLOSED, "arguments": {"n": 1}})),
        ("skill_load", json!({"name": "beta"})),
    ] {
        let refused = answer(&mut proxy, tool, arguments.clone());
        assert!(["not_found", "unknown_skill"].contains(&&*refusal(&refused)), "{tool} {arguments}: {refused}");
    }
    for (tool, arguments) in [
        ("tool_describe", json!({"names": ["b_gett", "b_put", CLOSED]})),
        ("tool_describe", json!({"regex": "get"})),
        ("tool_describe", json!({"query": "reads get"})),
        ("skill_search", json!({"query": "berries wash reads get"})),
        ("b_ge", json!({})),
    ] {
        said.push(answer(&mut proxy, tool, arguments));
    }
    let mut said = json!(said).to_string();
    // What the caller said itself is no news.
    for own in ["`b_gett`", "`b_put`", "`b_get`", "`b_ge`"] {
        said = said.replace(own, "");
    }
    assert!(!said.contains("reads b_get") && !said.contains("beta") && !said.contains("berries"), "{said}");
    nothing_got_through(&desk, &mut proxy);
}
}

// Endpoints of skills

in_ways! { [http modern_http]
fn another_skills_tools_at_the_endpoint_of_one(way: Way) {
    let desk = Desk::new();
    let whole = Proxy::spawn_in(Way::Http, proxy_of(&desk.path("gatekey.toml"))).greeted();
    let mut proxy = whole.another_at(way, whole.url().replace("/mcp", "/skill/alpha/mcp")).greeted();
    proxy.load("alpha");
    for spelling in SPELLINGS.iter().chain(&[CLOSED]) {
        assert_ne!(refusal(&answer(&mut proxy, spelling, json!({"n": 1}))), "", "{spelling:?}");
    }
    assert_eq!(refusal(&answer(&mut proxy, "tool_call_read", json!({"name": CLOSED, "arguments": {"n": 1}}))), "inactive");
    nothing_got_through(&desk, &mut proxy);
}
}

#[test]
fn endpoints_whose_path_is_spelled_in_odd_ways() {
    let desk = Desk::new();
    let proxy = Proxy::spawn_in(Way::Http, proxy_of(&desk.config("[[rules]]\ndeny-skills = [\"beta\"]\n"))).greeted();
    let greeting =
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
    for (path, expected) in [
        ("/skill/alpha/mcp", 200),
        ("/skill/beta/mcp", 403),
        ("/skill/%62eta/mcp", 403),
        ("/skill/bet%61/mcp", 403),
        ("/skill/BETA/mcp", 404),
        ("/skill/beta%20/mcp", 404),
        ("/skill/beta%00/mcp", 404),
        ("/skill/beta%2f/mcp", 404),
        ("/skill/alpha%2f..%2fbeta/mcp", 404),
        ("/skill/alpha/../beta/mcp", 404),
        ("/skill/alpha/mcp/../../beta/mcp", 404),
        ("/skill/%2e%2e/mcp", 404),
        ("/skill/../mcp", 404),
        ("/skill/alpha%2fmcp", 404),
        ("/skill//beta/mcp", 404),
        ("/skill/beta/mcp/", 404),
        ("/skill/beta;x/mcp", 404),
        ("/skill/%ff/mcp", 400),
        ("//mcp", 404),
        ("/mcp%00", 404),
        ("/MCP", 404),
        ("http://evil.example/skill/beta/mcp", 403),
    ] {
        let head = "host: localhost\r\nconnection: close\r\ncontent-type: application/json\r\naccept: application/json";
        let size = greeting.len();
        let said = exchange(
            proxy.url(),
            format!("POST {path} HTTP/1.1\r\n{head}\r\ncontent-length: {size}\r\n\r\n{greeting}"),
        );
        assert_eq!(statuses(&said), [expected], "{path}: {said}");
    }
    assert_eq!(called(&desk.journal()), [""; 0]);
}

#[test]
fn headers_that_name_another_tool_than_the_body() {
    let (desk, mut proxy, key) = opened(Way::ModernHttp);
    let client = proxy.http();
    let dispatched = json!({"name": "tool_call_read", "arguments": {"key": key, "name": CLOSED, "arguments": {"n": 1}}, "_meta": modern_meta()});
    let direct = json!({"name": CLOSED, "arguments": {"n": 1}, "_meta": modern_meta()});
    for (params, method, name) in [
        (&direct, "tools/call", "a_get"),
        (&direct, "tools/list", CLOSED),
        (&direct, "ping", CLOSED),
        (&direct, "tools/call", "a_get, b_get"),
        (&direct, "tools/call", "=?base64?YV9nZXQ=?="),
        (&dispatched, "tools/call", "a_get"),
        (&dispatched, "tools/call", CLOSED),
    ] {
        let line = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string();
        let request = post(&client.http, &client.url, &line).header("mcp-protocol-version", "2026-07-28");
        let reply = Reply::to(request.header("mcp-method", method).header("mcp-name", name));
        assert_eq!(reply.status, 400, "{method} {name}: {reply:?}");
    }
    // The name twice, each time another one.
    let line = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": direct}).to_string();
    let request = post(&client.http, &client.url, &line)
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call");
    assert_eq!(Reply::to(request.header("mcp-name", "a_get").header("mcp-name", CLOSED)).status, 400);
    nothing_got_through(&desk, &mut proxy);
}
