//! Cases of `tests/cases` about what servers and clients write arriving as it was written, whatever it is. Judged on raw
//! text: a tree would round numbers and mend what is broken.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use data_encoding::{BASE64, HEXLOWER};
use serde_json::{Value, json, value::RawValue};
use sha2::{Digest as _, Sha256};

use crate::support::{
    cases::Case,
    proxy::{Proxy, modern_meta, names, raw_member, text_of},
    wait_until,
    ways::in_ways,
};

const SECOND: Duration = Duration::from_secs(1);

/// The members of a JSON object as they were written.
fn raw_members(object: &str) -> BTreeMap<String, Box<RawValue>> {
    serde_json::from_str(object).unwrap()
}

/// The same JSON without blanks between its tokens; every token stays as it was written.
fn compact(json: &str) -> String {
    let (mut in_text, mut is_escaped) = (false, false);
    let is_kept = |c: &char| {
        let was_in_text = in_text;
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => in_text = !in_text,
            _ => {}
        }
        was_in_text || !c.is_ascii_whitespace()
    };
    json.chars().filter(is_kept).collect()
}

/// How often a server was greeted, by its journal: once for each start.
fn n_starts(case: &Case) -> usize {
    case.journal("journal.jsonl").iter().filter(|message| message["method"] == "initialize").count()
}

// 08 — schemas

in_ways! { [stdio http modern_stdio modern_http]
fn schemas_arrive_as_their_server_wrote_them_in_the_list_and_in_descriptions(way: Way) {
    let case = Case::new("08");
    let mut proxy = case.start_in(way);
    let key = proxy.load("forms")["key"].clone();
    let file = std::fs::read_to_string(case.folder.join("expected-schemas.json")).unwrap();
    let expected = raw_members(&file);
    let arguments = json!({"names": expected.keys().collect::<Vec<_>>(), "key": key});
    let described = proxy.raw_call("tool_describe", &arguments.to_string());
    let text = serde_json::from_str::<Value>(&described).unwrap();
    let mut lists = vec![raw_member(&described, "structuredContent").to_owned()];
    // What a modern client lists does not depend on what it opened.
    if !way.is_modern() {
        lists.push(proxy.raw_result("tools/list", "{}"));
    }
    for list in &lists {
        let definitions: Vec<&RawValue> = serde_json::from_str(raw_member(list, "tools")).unwrap();
        for (tool, schemas) in &expected {
            let name = json!(tool).to_string();
            let is_it = |definition: &&str| raw_member(definition, "name") == name;
            let definition =
                definitions.iter().map(|raw| raw.get()).find(is_it).unwrap_or_else(|| panic!("{tool} is there"));
            for (member, expected) in raw_members(schemas.get()) {
                assert_eq!(compact(raw_member(definition, &member)), compact(expected.get()), "{member} of {tool}");
            }
            assert!(text_of(&text).contains(definition), "{tool} is described as it is listed");
        }
    }
    let submit: Value = proxy.definitions(&["forms"]).into_iter().find(|tool| tool["name"] == "submit").unwrap();
    let reference = &submit["inputSchema"]["properties"]["rows"]["items"]["$ref"];
    let target = submit["inputSchema"].pointer(reference.as_str().unwrap().trim_start_matches('#'));
    assert!(target.is_some_and(|row| row["properties"]["parent"]["$ref"] == *reference), "{reference} is there");
}
}

// 09 — structured results

in_ways! { [stdio http]
fn results_are_passed_on_whether_or_not_they_fit_their_output_schema(way: Way) {
    let case = Case::new("09");
    let mut proxy = case.start_in(way);
    let key = proxy.load("data")["key"].clone();
    let with_schema: Vec<Value> = proxy.list().into_iter().filter(|tool| tool.get("outputSchema").is_some()).collect();
    assert_eq!(names(&with_schema), ["both", "empty_content", "failed", "list_value", "off_schema", "text_only"]);
    for tool in &with_schema {
        let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]});
        assert_eq!(tool["outputSchema"], schema, "{tool}");
    }
    let file = std::fs::read_to_string(case.folder.join("expected-results.json")).unwrap();
    let results = raw_members(&file);
    assert_eq!(results.len(), 7);
    for (tool, expected) in results {
        let expected = compact(expected.get());
        let by_name = proxy.raw_result("tools/call", &json!({"name": tool, "arguments": {}}).to_string());
        assert_eq!(compact(&by_name), expected, "{tool}");
        let arguments = json!({"key": key, "name": tool, "arguments": {}});
        let params = json!({"name": "tool_call_write", "arguments": arguments, "_meta": modern_meta()});
        let by_key = proxy.raw_result("tools/call", &params.to_string());
        assert_eq!(compact(&by_key), expected.replacen('{', r#"{"resultType":"complete","#, 1), "{tool} by key");
    }
}
}

// 20 — big results

/// Calls `shot` and returns the id of the request.
fn ask_shot(proxy: &mut Proxy, kib: usize) -> u64 {
    proxy.ask("tools/call", json!({"name": "shot", "arguments": {"kib": kib}}))
}

/// An answer of `shot` has an image of this many KiB and the digest of its bytes.
fn assert_shot(answer: &Value, kib: usize) {
    let content = &answer["result"]["content"];
    let image = BASE64.decode(content[0]["data"].as_str().unwrap_or_default().as_bytes()).unwrap();
    assert_eq!(image.len(), kib << 10);
    assert_eq!(content[1]["text"], HEXLOWER.encode(&Sha256::digest(&image)), "{kib} KiB");
}

fn memory_kib(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
}

in_ways! { [stdio http modern_stdio modern_http]
fn megabytes_arrive_whole_both_ways_and_their_memory_is_given_back(way: Way) {
    let case = Case::new("20");
    let mut proxy = case.start_in(way);
    proxy.load("camera");
    let before = memory_kib(proxy.pid());
    for kib in [1, 63, 64, 65, 1024, 6144] {
        let id = ask_shot(&mut proxy, kib);
        assert_shot(&proxy.answer_to(id), kib);
    }
    let data = "0123456789abcdef".repeat(1 << 18);
    let swallowed = proxy.call("swallow", json!({"data": data}));
    assert_eq!(text_of(&swallowed), format!("{} {}", 4 << 20, HEXLOWER.encode(&Sha256::digest(&data))));

    let first = ask_shot(&mut proxy, 6144);
    let small = ask_shot(&mut proxy, 1);
    let second = ask_shot(&mut proxy, 6144);
    // Alone on the machine the small one takes a few milliseconds.
    assert_shot(&proxy.answer_within(small, 3 * SECOND), 1);
    for big in [first, second] {
        assert_shot(&proxy.answer_to(big), 6144);
    }
    wait_until("the memory is given back", 5 * SECOND, || memory_kib(proxy.pid()) < before + (100 << 10));
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn a_message_over_the_limit_costs_its_own_request_and_is_told_with_its_size(way: Way) {
    let mut case = Case::new("20");
    let journal = case.path("journal.jsonl");
    case.add_args("camera", &["--journal", journal.to_str().unwrap()]);
    let mut proxy = Proxy::opened(way, &case.own_config("start-wait-ms = 20000\nline-limit-bytes = 1048576"));
    proxy.load("camera");
    // Four thirds of a MiB in Base64, and what stands around it.
    let result = proxy.call("shot", json!({"kib": 1024}));
    assert_eq!((&result["isError"], &result["structuredContent"]["code"]), (&json!(true), &json!("unavailable")));
    let size = text_of(&result).split(' ').find_map(|word| word.parse::<usize>().ok());
    assert!(size.is_some_and(|size| (1_398_104..1_398_504).contains(&size)), "{result}");
    // Over HTTP a status says it, see `http.rs`.
    if !way.is_http() {
        let id = proxy.ask("tools/call", json!({"name": "swallow", "arguments": {"data": "x".repeat(1 << 20)}}));
        let refused = proxy.answer_to(id);
        let size = refused["error"]["data"]["size_bytes"].as_u64();
        // A modern request says more of itself.
        assert!(size.is_some_and(|size| (1_048_576..1_049_176).contains(&size)), "{refused}");
    }
    let id = ask_shot(&mut proxy, 700);
    assert_shot(&proxy.answer_to(id), 700);
    assert_eq!(n_starts(&case), 1);
}
}

// 21 — characters

in_ways! { [stdio http modern_stdio modern_http]
fn characters_arrive_whole_however_their_bytes_are_split(way: Way) {
    let mut case = Case::new("21");
    let journal = case.path("journal.jsonl");
    case.add_args("poet", &["--journal", journal.to_str().unwrap()]);
    let mut proxy = case.start_in(way);
    proxy.load("poet");
    let expected = std::fs::read_to_string(case.folder.join("expected.txt")).unwrap();
    assert_eq!(text_of(&proxy.call("verse", json!({}))), expected);
    assert_eq!(text_of(&proxy.call("echo", json!({"text": expected}))), expected);
    let asked = Instant::now();
    let lone = proxy.raw_call("lone", "{}");
    assert!(asked.elapsed() < 2 * SECOND);
    assert_eq!(raw_member(&lone, "content"), r#"[{"type":"text","text":"half \ud83d here"}]"#);
    assert_eq!(text_of(&proxy.call("verse", json!({}))), expected);
    assert_eq!(n_starts(&case), 1);

    // Texts of ours are cut at a limit, in the middle of anything.
    for start in 0..4 {
        let text = format!("{}{}", "x".repeat(start), expected.repeat(40));
        for (tool, arguments) in [
            ("tool_describe", json!({"query": text})),
            ("tool_describe", json!({"names": [text]})),
            ("skill_load", json!({"name": text})),
            (&text, json!({})),
        ] {
            let answered = proxy.call(tool, arguments);
            assert!(answered["content"][0]["text"].is_string(), "{answered}");
        }
    }
    assert_eq!(names(&proxy.definitions(&["poet"])), ["echo", "lone", "verse"]);
    assert!(!proxy.stderr().contains("panicked"), "{}", proxy.stderr());
}
}

// 22 — numbers

in_ways! { [stdio http modern_stdio modern_http]
fn numbers_keep_their_digits_in_results_in_arguments_and_as_ids(way: Way) {
    let case = Case::new("22");
    let mut proxy = case.start_in(way);
    let key = proxy.load("ledger")["key"].clone();
    let file = |name: &str| std::fs::read_to_string(case.folder.join(name)).unwrap().trim().to_owned();
    let numbers = proxy.raw_call("numbers", "{}");
    assert_eq!(raw_member(&numbers, "structuredContent"), file("numbers.json"));

    let arguments = file("arguments.json");
    let by_key = format!(r#"{{"key":{key},"name":"seen","arguments":{arguments}}}"#);
    for (tool, arguments_of) in [("seen", &arguments), ("tool_call_write", &by_key)] {
        let seen: Value = serde_json::from_str(&proxy.raw_call(tool, arguments_of)).unwrap();
        assert_eq!(text_of(&seen), format!("\"arguments\":{arguments}}}}}"));
    }

    let asked = Instant::now();
    let result = proxy.raw_call_as("9007199254740993", "deep", "{}");
    assert!(asked.elapsed() < 2 * SECOND);
    let deep = format!(r#"{{"d":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    assert_eq!(raw_member(&result, "structuredContent"), deep);
    assert_eq!(proxy.raw_call("numbers", "{}"), numbers, "the server lives");
}
}
