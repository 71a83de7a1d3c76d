//! Cases of `tests/cases` about files as people write them: skills and variables.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{
    cases::{Case, open_all},
    process::proxy_of,
    proxy::{PATIENCE, Proxy, gatekey, names, run, text_of},
    wait_until,
    ways::{Way, in_ways},
};

// 25, 26 — skills as they are found

/// `gatekey skills list --json` over the case's skills: name → (description, allowed tools).
fn skills_of(case: &Case) -> (Vec<(String, String, Value)>, Vec<Value>) {
    let folder = case.folder.join("skills");
    let config =
        case.own_config(&format!("skills = [{}]\n[upstreams.none]\ncommand = \"no-such-program-here\"", json!(folder)));
    let (code, stdout, stderr) = run(["skills", "list", "--json", "--config", config.to_str().unwrap()]);
    assert_eq!(code, 4, "its only upstream is missing: {stderr}");
    let envelope: Value = serde_json::from_str(&stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let skills = envelope["data"].as_array().into_iter().flatten().filter(|skill| skill["origin"] == "folder");
    let skills =
        skills.map(|skill| (text(&skill["name"]), text(&skill["description"]), skill["allowed_tools"].clone()));
    (skills.collect(), envelope["diagnostics"].as_array().cloned().unwrap_or_default())
}

#[test]
fn prose_that_is_not_yaml_is_recovered_with_its_restriction_or_refused_with_its_place() {
    let case = Case::new("25");
    let (skills, findings) = skills_of(&case);
    assert!(skills.iter().any(|(name, _, allowed)| name == "plain" && allowed.is_null()));
    for (name, description, allowed) in skills.iter().filter(|(name, ..)| name != "plain") {
        assert_eq!(*allowed, json!(["alpha/read"]), "{name}");
        let file = std::fs::read_to_string(case.folder.join("skills").join(name).join("SKILL.md")).unwrap();
        let meant = file.lines().find_map(|line| line.strip_prefix("description: ")).unwrap();
        // A blank and `#` start a comment in YAML, so that description ends there.
        let meant = meant.split(" #").next().unwrap();
        assert_eq!(description, meant, "{name}");
    }
    for name in ["colon", "colon-list", "at-start", "star", "backtick", "bracket", "quote-mid", "percent", "hash"] {
        assert!(skills.iter().any(|(known, ..)| known == name), "{name} is recovered");
    }
    for name in ["tab", "dup", "unclosed"] {
        assert!(skills.iter().all(|(known, ..)| known != name), "{name} is refused");
        let is_its = |finding: &&Value| {
            finding["at"]["file"].as_str().is_some_and(|file| file.ends_with(&format!("{name}/SKILL.md")))
        };
        let finding = findings.iter().find(is_its).unwrap_or_else(|| panic!("{name} has a finding"));
        assert!(finding["at"]["line"].as_u64().is_some_and(|line| line > 0), "{finding}");
    }
}

#[test]
fn skills_saved_by_other_editors_load_alike_and_are_not_changed() {
    let case = Case::new("26");
    let bytes_of = |name: &str| std::fs::read(case.folder.join("skills").join(name).join("SKILL.md")).unwrap();
    let all: Vec<String> = std::fs::read_dir(case.folder.join("skills"))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let before: Vec<Vec<u8>> = all.iter().map(|name| bytes_of(name)).collect();
    let (skills, findings) = skills_of(&case);
    for name in
        ["lf", "crlf", "bom", "bom-crlf", "mixed", "no-final-newline", "header-only", "trailing-blanks", "rule-in-body"]
    {
        let found = skills.iter().find(|(known, ..)| known == name).unwrap_or_else(|| panic!("{name} is loaded"));
        assert_eq!((found.1.as_str(), &found.2), ("Saved with another editor", &json!(["alpha/read"])), "{name}");
    }
    for name in ["cr", "dots-end", "blank-first", "utf16"] {
        match skills.iter().find(|(known, ..)| known == name) {
            Some(found) => assert_eq!(
                (found.1.as_str(), &found.2),
                ("Saved with another editor", &json!(["alpha/read"])),
                "{name}"
            ),
            None => assert!(
                findings.iter().any(|finding| finding["at"]["file"].as_str().is_some_and(|file| file.contains(name))),
                "{name}"
            ),
        }
    }
    let config = case.path("gatekey.toml");
    let (_, body, _) = run(["skills", "show", "rule-in-body", "--config", config.to_str().unwrap()]);
    assert!(body.starts_with("# Body") && body.trim_end().ends_with("---\nend"), "{body}");
    assert_eq!(all.iter().map(|name| bytes_of(name)).collect::<Vec<_>>(), before, "no file is changed");
}

/// Loads every skill of the case, each of which a map gives all tools of `alpha`: name → what it opens, and its playbook.
/// A skill that is not there was refused.
fn opened_by_skills(number: &str, way: Way) -> BTreeMap<String, (Vec<String>, String)> {
    let mut case = Case::new(number);
    let server = Case::new("29").folder.join("server.py");
    let alpha = json!({"command": "python3", "args": [server, "--journal", case.path("journal.jsonl")]});
    case.servers.insert("alpha".into(), alpha);
    let folder = case.folder.join("skills");
    let entries = std::fs::read_dir(&folder).unwrap().flatten();
    let mut skills: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    // A session keeps what it opened, so the one without a restriction comes last.
    skills.sort_by_key(|name| (name == "plain", name.clone()));
    let opens_all: String = skills.iter().map(|name| format!("{name} = [\"alpha:*\"]\n")).collect();
    case.write("map.toml", &format!("version = 1\n[skills]\n{opens_all}"));
    let top = format!("start-wait-ms = 20000\nmaps = [\"map.toml\"]\nskills = [{}]", json!(folder));
    let mut proxy = Proxy::opened(way, &case.own_config(&top));
    let mut opened = BTreeMap::new();
    for name in skills {
        let result = proxy.call("skill_load", json!({"name": name}));
        let loaded = &result["structuredContent"];
        if result["isError"] == true {
            assert_eq!(loaded["code"], "unknown_skill", "{name}: {result}");
            continue;
        }
        let tools: Vec<String> = names(loaded["tools"].as_array().unwrap()).into_iter().map(str::to_owned).collect();
        let mut by_key = |tool: &str| {
            let called = proxy.call("tool_call_write", json!({"key": loaded["key"], "name": tool}));
            text_of(&called) == format!("ok:{tool}")
        };
        let works = ["read", "delete"].map(|tool| (by_key(tool), tools.iter().any(|opened| opened == tool)));
        assert!(works.iter().all(|(works, is_opened)| works == is_opened), "{name}: {works:?}");
        opened.insert(name, (tools, loaded["body"].as_str().unwrap().to_owned()));
    }
    opened
}

in_ways! { [stdio http modern_stdio modern_http]
fn prose_that_is_not_yaml_never_opens_more_than_its_author_meant(way: Way) {
    let opened = opened_by_skills("25", way);
    let recovered = "at-start backtick bracket colon colon-list hash percent plain quote-mid star";
    assert_eq!(opened.keys().map(String::as_str).collect::<Vec<_>>().join(" "), recovered);
    for (name, (tools, body)) in opened {
        let expected = if name == "plain" { "delete delete_all read write" } else { "read" };
        assert_eq!((tools.join(" ").as_str(), body.as_str()), (expected, "# Steps\n\nDo the thing."), "{name}");
    }
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn skills_saved_by_other_editors_open_alike_and_hand_out_no_header(way: Way) {
    let opened = opened_by_skills("26", way);
    for name in
        ["lf", "crlf", "bom", "bom-crlf", "mixed", "no-final-newline", "header-only", "trailing-blanks", "rule-in-body"]
    {
        assert!(opened.contains_key(name), "{name} is loaded");
    }
    for (name, (tools, body)) in opened {
        assert_eq!(tools, ["read"], "{name}");
        let lines: Vec<&str> = body.split(['\r', '\n']).filter(|line| !line.is_empty()).collect();
        let expected = match name.as_str() {
            "header-only" => &[][..],
            "rule-in-body" => &["# Body", "line two", "---", "allowed-tools: alpha/delete", "---", "end"],
            _ => &["# Body", "line two"],
        };
        assert_eq!(lines, expected, "{name}");
    }
}
}

// 28 — variables

in_ways! { [stdio http modern_stdio modern_http]
fn variables_are_expanded_once_everywhere_and_a_missing_one_is_named(way: Way) {
    let case = Case::new("28");
    let value = "s3cr3t ${MX_OTHER} \"q\" \\ \nend";
    let text = std::fs::read_to_string(case.folder.join("upstreams.json")).unwrap();
    let server = case.folder.join("server.py");
    let config = case.write("upstreams.json", &text.replace("server.py", server.to_str().unwrap()));
    let mut command = proxy_of(&config);
    command.env("MX_SET", value).env("MX_EMPTY", "").env("MX_OTHER", "other").env_remove("MX_UNSET");
    let mut proxy = Proxy::spawn_in(way, command).greeted();
    let all = ["empty_show", "escaped_show", "fallback_show", "plain_show", "show"];
    wait_until("all servers are up", PATIENCE, || open_all(&mut proxy) == all);
    for (tool, argument) in [
        ("show", value),
        ("fallback_show", "fallback"),
        ("empty_show", ""),
        ("plain_show", "$MX_SET"),
        ("escaped_show", "${MX_SET}"),
    ] {
        let shown: Value = serde_json::from_str(text_of(&proxy.call(tool, json!({})))).unwrap();
        assert_eq!(shown["arg"], json!([argument]), "{tool}");
        if tool == "show" {
            assert_eq!(shown["env"]["OUT_TOKEN"], value);
        }
    }
    let log = proxy.stderr();
    for part in [
        "upstream `unset`: `args.1`: variable `MX_UNSET` is not set",
        "upstream `unset`: `env.OUT_TOKEN`",
        "upstream `unclosed`",
        "header `Authorization` holds a line end",
    ] {
        assert!(log.contains(part), "{part} in {log}");
    }
    let unset = proxy.load("unset");
    assert!(unset["warnings"][0].as_str().unwrap_or_default().contains("MX_UNSET"), "{unset}");
    assert!(
        !log.contains("s3cr3t") && !proxy.raw.iter().any(|line| line.contains("s3cr3t") && !line.contains("OUT_TOKEN"))
    );

    let mut check = gatekey();
    check.args(["check", "--config"]).arg(&config).env("MX_SET", value).env("MX_EMPTY", "").env("MX_OTHER", "other");
    let output = check.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("upstreams.json:") && !text.contains("s3cr3t"), "{text}");
    assert_eq!(output.status.code(), Some(3));
}
}
