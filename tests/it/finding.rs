//! `skill_search`, `tool_describe` by words, and `gatekey eval`: what is found, and who may find it.

use serde_json::{Value, json};

use crate::support::{
    cases::Case,
    proxy::{Proxy, names, run, text_of},
    ways::{Way, in_ways},
};

/// Many skills, of which four are about something; one of those is hidden, and one opens what nobody may call.
fn many_skills(encoder: &str) -> (Case, std::path::PathBuf) {
    let case = Case::new("29");
    let about = [
        ("refunds", "Give a customer money back.", "tags: [shop, money]\n", "# Partial refunds\nAsk for the reason."),
        ("invoices", "Write invoices and remind of unpaid ones.", "tags: [shop]\n", "Vystavení faktur a upomínek."),
        ("payroll", "Pay the customer's refunds to the staff.", "disable-model-invocation: true\n", "x"),
        ("wiper", "Wipe refunds off the disk.", "", "x"),
    ];
    let other = (0..40).map(|n| (format!("other-{n}"), format!("Thing number {n}, which has nothing to do with it.")));
    for (name, description, header, body) in about {
        write(&case, name, description, header, body);
    }
    for (name, description) in other {
        write(&case, &name, &description, "", "Nothing.");
    }
    case.write("map.toml", "version = 1\n[skills]\nrefunds = [\"=read\", \"=write\"]\nwiper = [\"delete\"]\n");
    let config = case
        .own_config("start-wait-ms = 20000\nmaps = [\"map.toml\"]\nskills = [\"skills\"]\ncatalog-budget-tokens = 300");
    let rules = format!("\n[search]\nencoder = \"{encoder}\"\n[[rules]]\ndeny = [\"delete*\"]\n");
    std::fs::write(&config, std::fs::read_to_string(&config).unwrap() + &rules).unwrap();
    (case, config)
}

fn write(case: &Case, name: &str, description: &str, header: &str, body: &str) {
    let text = format!("---\nname: {name}\ndescription: {description}\n{header}---\n{body}\n");
    case.write(&format!("skills/{name}/SKILL.md"), &text);
}

fn search(proxy: &mut Proxy, arguments: Value) -> Vec<String> {
    let found = proxy.call("skill_search", arguments);
    let skills = found["structuredContent"]["skills"].as_array().unwrap_or_else(|| panic!("{found}"));
    skills.iter().map(|skill| skill["name"].as_str().unwrap().to_owned()).collect()
}

in_ways! { [stdio http modern_stdio modern_http]
fn a_skill_is_found_by_what_it_is_for_by_those_who_may_know_it(way: Way) {
    let (_case, config) = many_skills("off");
    let mut proxy = Proxy::opened(way, &config);
    assert!(names(&proxy.list()).contains(&"skill_search"), "the catalogue has no room for all");
    assert_eq!(search(&mut proxy, json!({"query": "a customer wants his money back"})), ["refunds"]);
    assert_eq!(search(&mut proxy, json!({"query": "partial refunding"})), ["refunds"], "neither hidden nor forbidden");
    assert_eq!(search(&mut proxy, json!({"query": "vystaveni faktury"})), ["invoices"], "without diacritics");
    assert_eq!(search(&mut proxy, json!({"query": "thing number", "top_k": 3})), ["other-0", "other-1", "other-2"]);
    assert_eq!(search(&mut proxy, json!({"query": "invoices refund", "tags": ["money"]})), ["refunds"]);
    assert_eq!(search(&mut proxy, json!({"query": "zzz"})), [""; 0]);
    let found = proxy.call("skill_search", json!({"query": "unpaid invoices", "why": true}));
    let first = &found["structuredContent"]["skills"][0];
    assert_eq!(first["why"]["fields"], json!(["name", "description"]), "{found}");
    assert_eq!((&first["why"]["meaning"], &found["structuredContent"]["found_by"]), (&Value::Null, &json!("words")));
    let found = proxy.call("skill_search", json!({"query": "refund"}));
    let first = &found["structuredContent"]["skills"][0];
    assert_eq!((&first["opens"], &first["origin"]), (&json!(2), &json!("folder")), "{found}");
    assert!(text_of(&found).contains("- refunds: Give a customer money back."), "{found}");
    let wrong = proxy.call("skill_search", json!({}));
    assert_eq!(wrong["structuredContent"]["code"], "invalid_arguments");
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn a_skill_is_found_by_what_it_means_in_another_language_once_the_encoder_knows_it(way: Way) {
    let (_case, config) = many_skills("embedded");
    let mut proxy = Proxy::opened(way, &config);
    // Until then it is found by words, which is said.
    loop {
        let found = proxy.call("skill_search", json!({"query": "invoice", "why": true}));
        match found["structuredContent"]["found_by"].as_str().unwrap() {
            "words, meaning of some" => continue,
            by => assert_eq!(by, "words and meaning"),
        }
        let first = &found["structuredContent"]["skills"][0];
        assert_eq!(first["name"], "invoices");
        assert!(first["why"]["words"].as_f64().unwrap() > 0.0 && first["why"]["meaning"].as_f64().unwrap() > 0.0);
        break;
    }
    for (query, expected) in [
        ("vrátit zákazníkovi peníze", "refunds"),
        ("wystaw rachunek i przypomnij o niezapłaconych", "invoices"),
        ("把钱退给顾客", "refunds"),
    ] {
        let found = proxy.call("skill_search", json!({"query": query}));
        // Of so few words in a foreign language it may not be sure, which does not change what is nearest.
        let first = ["skills", "nearest"].iter().find_map(|list| found["structuredContent"][list][0]["name"].as_str());
        assert_eq!(first, Some(expected), "{query}: {found}");
    }
    let far = proxy.call("skill_search", json!({"query": "photosynthesis of deep sea algae under blue light"}));
    let far = &far["structuredContent"];
    assert_eq!((far["skills"].as_array().unwrap().len(), far["nearest"].as_array().unwrap().len()), (0, 2), "{far}");
}
}

#[test]
fn without_a_readable_encoder_that_is_said_once_and_words_are_left() {
    let (case, config) = many_skills("nothing.gguf");
    case.write("nothing.gguf", "no weights");
    let mut proxy = Proxy::opened(Way::Stdio, &config);
    let query = json!({"query": "a customer wants his money back", "why": true});
    // Until it has tried to read it, it may yet come.
    while proxy.call("skill_search", query.clone())["structuredContent"]["found_by"] != "words" {}
    assert_eq!(search(&mut proxy, query), ["refunds"]);
    let said = proxy.stderr();
    assert_eq!(said.matches("there is no encoder").count(), 1, "{said}");
    assert!(said.contains("it is no GGUF file of version 3"), "{said}");
}

in_ways! { [stdio modern_http]
fn an_open_tool_is_found_by_words_and_a_closed_one_is_named_with_its_skill(way: Way) {
    let (_case, config) = many_skills("off");
    let mut proxy = Proxy::opened(way, &config);
    let found = proxy.call("tool_describe", json!({"query": "write a file"}));
    let closed: Vec<(&str, &str)> = found["structuredContent"]["not_described"]
        .as_array()
        .unwrap()
        .iter()
        .map(|closed| (closed["tool"].as_str().unwrap(), closed["skill"].as_str().unwrap()))
        .collect();
    assert_eq!(closed, [("write", "refunds"), ("read", "refunds")], "{found}");
    assert_eq!(found["structuredContent"]["tools"], json!([]), "closed tools are not described");
    let key = proxy.load("refunds")["key"].as_str().unwrap().to_owned();
    for (query, expected) in [("write files", &["write", "read"][..]), ("delete", &[]), ("nothing of it", &[])] {
        let found = proxy.call("tool_describe", json!({"query": query, "key": key}));
        assert_eq!(names(found["structuredContent"]["tools"].as_array().unwrap()), expected, "{query}");
        assert_eq!(found["structuredContent"]["not_described"], json!([]), "{query}: what nobody can open is not named");
    }
}
}

in_ways! { [stdio modern_http]
fn tools_are_found_by_regular_expressions(way: Way) {
    let (_case, config) = many_skills("off");
    let mut proxy = Proxy::opened(way, &config);
    let found = proxy.call("tool_describe", json!({"regex": "^(re|wri)"}));
    assert_eq!(found["structuredContent"]["not_described"].as_array().unwrap().len(), 2, "{found}");
    let key = proxy.load("refunds")["key"].as_str().unwrap().to_owned();
    let found = proxy.call("tool_describe", json!({"regex": "^WRI|nothing", "key": key}));
    assert_eq!(names(found["structuredContent"]["tools"].as_array().unwrap()), ["write"]);
    let found = proxy.call("tool_describe", json!({"regex": "delete", "key": key}));
    assert_eq!(found["structuredContent"], json!({"tools": [], "not_described": []}), "what nobody can open");
    let wrong = proxy.call("tool_describe", json!({"regex": "(", "key": key}));
    assert_eq!(wrong["structuredContent"]["code"], "invalid_arguments", "{wrong}");
    let large = proxy.call("tool_describe", json!({"regex": "(x{1000}){1000}", "key": key}));
    assert_eq!(large["structuredContent"]["code"], "invalid_arguments", "{large}");
}
}

in_ways! { [stdio modern_http]
fn of_two_that_fit_alike_the_one_that_was_of_use_comes_first(way: Way) {
    let (case, config) = many_skills("off");
    for name in ["twin-a", "twin-b"] {
        write(&case, name, "Keep the diary of a lighthouse.", "", "x");
    }
    case.write("map.toml", "version = 1\n[skills]\ntwin-a = [\"=read\"]\ntwin-b = [\"=read\"]\n");
    let mut proxy = Proxy::opened(way, &config);
    let query = json!({"query": "lighthouse diary", "why": true});
    assert_eq!(search(&mut proxy, query.clone()), ["twin-a", "twin-b"]);
    let key = proxy.load("twin-b")["key"].as_str().unwrap().to_owned();
    let use_of = |proxy: &mut Proxy| proxy.call("skill_search", query.clone())["structuredContent"]["skills"][0]["why"]["use"].as_f64().unwrap();
    let before = use_of(&mut proxy);
    assert_eq!(before, if way == Way::Stdio { 0.1 } else { 0.0 }, "loaded in this session, or of no use yet");
    let read = proxy.call("tool_call_write", json!({"name": "read", "key": key, "arguments": {}}));
    assert_ne!(read["isError"], true, "{read}");
    assert_eq!(search(&mut proxy, query.clone()), ["twin-b", "twin-a"]);
    assert!(use_of(&mut proxy) > before);
    assert_eq!(search(&mut proxy, json!({"query": "money back, not a diary"}))[0], "refunds", "a clear match stays first");
}
}

#[test]
fn a_short_catalogue_needs_no_search() {
    let (case, _) = many_skills("off");
    let members =
        "start-wait-ms = 20000\nsearch.encoder = \"off\"\nskills = [\"skills\"]\ncatalog-budget-tokens = 100000";
    let config = case.own_config(members);
    let mut proxy = Proxy::opened(Way::Stdio, &config);
    assert!(!names(&proxy.list()).contains(&"skill_search"));
    assert_eq!(search(&mut proxy, json!({"query": "money back"})), ["refunds"], "it is there all the same");
}

#[test]
fn a_set_of_questions_is_measured() {
    let (case, _) = many_skills("off");
    let set = case.write(
        "set.jsonl",
        concat!(
            r#"{"query": "money back", "gold": ["refunds"], "lang": "en"}"#,
            "\n\n",
            r#"{"query": "upomínky", "gold": ["invoices"], "lang": "cs"}"#,
            "\n",
            r#"{"query": "refunds", "gold": ["invoices", "wiper"], "lang": "en"}"#,
            "\n",
            r#"{"query": "zzz", "gold": []}"#,
            "\n",
            r#"{"query": "money", "gold": []}"#,
        ),
    );
    let skills = case.path("skills");
    let (code, stdout, stderr) =
        run(["eval", set.to_str().unwrap(), "--skills", skills.to_str().unwrap(), "--lexical", "--json"]);
    assert_eq!(code, 0, "{stderr}");
    let data = serde_json::from_str::<Value>(&stdout).unwrap()["data"].take();
    let hit_1 = [&data["hit_1"], &data["languages"]["en"]["hit_1"], &data["languages"]["cs"]["hit_1"]];
    assert_eq!(hit_1, [0.3333, 0.5, 0.0]);
    // `wiper` is second to `refunds`, `upomínky` and `upomínek` share no stem, and `invoices` has no word of the third.
    assert_eq!((&data["recall_5"], &data["mrr_10"], &data["queries"]), (&json!(0.5), &json!(0.5), &json!(3)));
    let no_answer = &data["no_answer"];
    let counts =
        ["queries", "recognised", "answerable", "false_alarms"].map(|count| no_answer[count].as_u64().unwrap());
    assert_eq!(counts, [2, 1, 3, 1], "{no_answer}");
    assert_eq!(data["confusions"], json!([{"right": "invoices", "found": "refunds", "queries": 1}]));
    let config = case.write("only-skills.toml", "version = 1\nskills = [\"skills\"]\n[search]\nencoder = \"off\"\n");
    let (code, stdout, stderr) = run(["eval", set.to_str().unwrap(), "--config", config.to_str().unwrap(), "--json"]);
    assert_eq!(code, 0, "no upstream is needed: {stderr}");
    assert_eq!(serde_json::from_str::<Value>(&stdout).unwrap()["data"], data);
    case.write("set.jsonl", r#"{"query": "x", "gold": ["nobody"]}"#);
    let (code, _, stderr) = run(["eval", set.to_str().unwrap(), "--skills", skills.to_str().unwrap()]);
    assert!(code == 2 && stderr.contains("`nobody`"), "{code} {stderr}");
}
