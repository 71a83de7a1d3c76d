//! Case 29 of `tests/cases`: what is hidden is closed, by every path, in every era and over every transport.

use serde_json::json;

use crate::support::{
    cases::{Case, called, journal},
    proxy::{Proxy, names, run, text_of, upstream_names},
    ways::{Way, in_ways},
};

const FILES_MAP: &str = "version = 1\n[skills]\nreader = [\"=read\"]\nwriter = [\"=read\", \"=write\"]\n";

fn files_case() -> (Case, std::path::PathBuf) {
    let case = Case::new("29");
    case.write("map.toml", FILES_MAP);
    let config = case.own_config(&format!(
        "start-wait-ms = 20000\nmaps = [\"map.toml\"]\nskills = [{}]",
        json!(case.folder.join("skills"))
    ));
    (case, config)
}

/// Spellings of closed tools that somebody may try.
const SPELLINGS: &[&str] = &[
    "write",
    "delete",
    "delete_all",
    "DELETE",
    "delete ",
    " delete",
    "delete\t",
    "dеlete",
    "ｄelete",
    "files/delete",
    "files_delete",
    "files__delete",
    "mcp__files__delete",
    "read\u{0}",
    "",
];

in_ways! { [stdio http]
fn a_closed_tool_cannot_be_called_by_any_path_in_any_era(way: Way) {
    let (case, config) = files_case();
    let mut proxy = Proxy::opened(way, &config);
    assert_eq!(upstream_names(&proxy.list()), [""; 0]);
    let key = proxy.load("reader")["key"].as_str().unwrap().to_owned();
    assert_eq!(upstream_names(&proxy.list()), ["read"]);
    for spelling in SPELLINGS {
        let dispatched = json!({"key": key, "name": spelling, "arguments": {}});
        let mut results = vec![proxy.call(spelling, json!({})), proxy.modern_call(spelling, json!({}))];
        for meta_tool in ["tool_call_read", "tool_call_write"] {
            results.push(proxy.call(meta_tool, dispatched.clone()));
            results.push(proxy.modern_call(meta_tool, dispatched.clone()));
        }
        for result in results {
            assert_eq!(result["isError"], true, "{spelling:?}: {result}");
            let code = result["structuredContent"]["code"].as_str().unwrap_or_default();
            assert!(["not_found", "inactive", "invalid_arguments"].contains(&code), "{spelling:?}: {result}");
        }
        let described = proxy.call("tool_describe", json!({"names": [spelling], "key": key}));
        assert_eq!(described["structuredContent"]["tools"], json!([]), "{spelling:?}");
    }
    // The same without any key, and with keys that were made up.
    for key in [json!(null), json!(""), json!("writer.aaaaaa"), json!("writer"), json!(key.replace("reader", "writer"))]
    {
        for result in [
            proxy.modern_call("read", json!({})),
            proxy.modern_call("tool_call_write", json!({"key": key, "name": "write"})),
            proxy.call("tool_call_write", json!({"key": key, "name": "write"})),
        ] {
            assert_eq!(result["structuredContent"]["code"], "inactive", "{key}: {result}");
        }
    }
    for (method, params) in [
        ("resources/read", json!({"uri": "file:///secret.txt"})),
        ("prompts/get", json!({"name": "wipe"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "wipe"}, "argument": {"name": "x", "value": "d"}}),
        ),
        ("files/delete", json!({})),
    ] {
        // What is no tool can be read; what it does to tools shows in the journal below.
        let id = proxy.ask(method, params);
        let answer = proxy.answer_to(id);
        assert!(method != "files/delete" || answer["error"].is_object(), "{answer}");
    }
    let found = proxy.call("tool_describe", json!({"query": "delete write file"}));
    assert_eq!(
        names(found["structuredContent"]["tools"].as_array().unwrap()),
        ["read"],
        "search shows open tools only"
    );
    assert_eq!(called(&case.journal("journal.jsonl")), [""; 0]);
    assert_eq!(text_of(&proxy.call("read", json!({}))), "ok:read");
    let by_key = proxy.modern_call("tool_call_write", json!({"key": key, "name": "read"}));
    assert_eq!(text_of(&by_key), "ok:read");
    assert_eq!(called(&case.journal("journal.jsonl")), ["read", "read"]);
}
}

in_ways! { [http modern_http]
fn a_closed_tool_is_closed_at_the_endpoint_of_a_skill_too(way: Way) {
    let (case, config) = files_case();
    let whole = Proxy::opened(Way::Http, &config);
    let mut proxy = whole.another_at(way, whole.url().replace("/mcp", "/skill/reader/mcp")).greeted();
    assert_eq!(upstream_names(&proxy.list()), ["read"]);
    for spelling in SPELLINGS {
        let result = proxy.call(spelling, json!({}));
        assert_eq!(result["isError"], true, "{spelling:?}: {result}");
        let described = proxy.call("tool_describe", json!({"names": [spelling]}));
        assert_eq!(described["structuredContent"]["tools"], json!([]), "{spelling:?}");
    }
    assert_eq!(text_of(&proxy.call("read", json!({}))), "ok:read");
    assert_eq!(called(&case.journal("journal.jsonl")), ["read"]);
}
}

in_ways! { [stdio http]
fn loading_and_unloading_reach_this_session_at_once_and_no_other(way: Way) {
    let (case, config) = files_case();
    let mut reader = Proxy::opened(way, &config);
    reader.list();
    reader.load("reader");
    reader.list();
    let mut writer = if way.is_http() { reader.another(way) } else { Proxy::opened(way, &config) };
    writer.list();
    let load = writer.ask("tools/call", json!({"name": "skill_load", "arguments": {"name": "writer"}}));
    writer.answer_to(load);
    // On the raw lines the notice stands before the answer.
    let notice =
        writer.raw.iter().position(|line| line.contains("notifications/tools/list_changed")).expect("a notice came");
    let answer = writer.raw.iter().position(|line| line.contains("\"skill\":\"writer\"")).expect("the answer came");
    assert!(notice < answer, "{:?}", writer.raw);
    assert_eq!(upstream_names(&writer.list()), ["read", "write"]);
    assert_eq!(text_of(&writer.call("write", json!({}))), "ok:write");
    assert_eq!(reader.call("write", json!({}))["structuredContent"]["code"], "inactive");

    let unloaded = writer.call("skill_unload", json!({"name": "writer"}));
    assert_eq!(unloaded["structuredContent"]["was_loaded"], true);
    assert_eq!(writer.call("write", json!({}))["structuredContent"]["skill"], "writer");
    assert_eq!(upstream_names(&writer.list()), [""; 0]);
    assert_eq!(text_of(&reader.call("read", json!({}))), "ok:read");
    assert_eq!(called(&journal(&case.path("journal.jsonl"))), ["write", "read"]);
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn the_gate_stays_closed_where_skills_or_maps_cannot_be_read(way: Way) {
    for top in [
        "maps = [\"map.toml\"]\nskills = [\"no-such-folder\"]",
        "maps = [\"no-such-map.toml\"]\nskills = []",
        "maps = [\"broken.toml\"]\nskills = []",
    ] {
        let case = Case::new("29");
        case.write("map.toml", FILES_MAP);
        case.write("broken.toml", "version = 1\n[skills]\nreader = [\"\"]\nalways = [\"*\"\n");
        let config = case.own_config(top);
        let mut proxy = Proxy::opened(way, &config);
        assert_eq!(upstream_names(&proxy.list()), [""; 0], "{top}");
        for tool in ["read", "write", "delete"] {
            assert_eq!(proxy.call(tool, json!({}))["isError"], true, "{top}");
        }
        let loaded = proxy.call("skill_load", json!({"name": "reader"}));
        assert_eq!(loaded["structuredContent"]["code"], "unknown_skill", "{top}");
        assert_eq!(called(&case.journal("journal.jsonl")), [""; 0]);
        let (code, ..) = run(["check", "--config", config.to_str().unwrap()]);
        assert_eq!(code, 3, "{top}");
    }
}
}
