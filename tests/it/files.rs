//! Cases of `tests/cases` about files as people write them: skills and variables.

use serde_json::{Value, json};

use crate::support::{
    cases::{Case, open_all},
    proxy::{Proxy, gatekey, run, text_of},
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

// 28 — variables

#[test]
fn variables_are_expanded_once_everywhere_and_a_missing_one_is_named() {
    let case = Case::new("28");
    let value = "s3cr3t ${MX_OTHER} \"q\" \\ \nend";
    let text = std::fs::read_to_string(case.folder.join("upstreams.json")).unwrap();
    let server = case.folder.join("server.py");
    let config = case.write("upstreams.json", &text.replace("server.py", server.to_str().unwrap()));
    let mut command = gatekey();
    command.args(["proxy", "--log", "debug", "--config"]).arg(&config).current_dir(case.scratch.path());
    command.env("MX_SET", value).env("MX_EMPTY", "").env("MX_OTHER", "other").env_remove("MX_UNSET");
    let mut proxy = Proxy::spawn(command);
    proxy.initialize();
    let opened = open_all(&mut proxy);
    assert_eq!(opened, ["empty_show", "escaped_show", "fallback_show", "plain_show", "show"]);
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
