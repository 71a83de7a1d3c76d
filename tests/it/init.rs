//! `gatekey init`: from servers to a config, a map and drafts of skills that `check` has nothing to say about.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Value, json};

use crate::{
    real::{command_lines, workplace},
    support::{cases::Case, proxy::run},
};

/// A server with these tools.
fn config_of(case: &Case, tools: &[String]) -> std::path::PathBuf {
    let server = Case::new("many").folder.join("server.py");
    let mut args = vec![server.to_str().unwrap().to_owned()];
    for tool in tools {
        let option = if tool.contains("list") { "--read" } else { "--tool" };
        args.extend([option.to_owned(), tool.clone()]);
    }
    let text =
        json!({"mcpServers": {"desk": {"command": "python3", "args": args, "env": {"TOKEN": "${SOME_TOKEN:-none}"}}}});
    case.write("servers.json", &text.to_string())
}

/// What `init` wrote, by path below the folder.
fn written(folder: &Path) -> BTreeMap<String, String> {
    fn walk(folder: &Path, start: &Path, files: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, start, files);
            } else {
                let name = path.strip_prefix(start).unwrap().to_string_lossy().into_owned();
                files.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut files = BTreeMap::new();
    walk(folder, folder, &mut files);
    files
}

/// Runs `init` into a folder of the case.
fn init(case: &Case, config: &Path, more: &[&str]) -> (i32, String, String, BTreeMap<String, String>) {
    let folder = case.path("out");
    let arguments = ["init", "--config", config.to_str().unwrap(), "--output", folder.to_str().unwrap()];
    let (code, stdout, stderr) = run([&arguments[..], more].concat());
    (code, stdout, stderr, written(&folder))
}

#[test]
fn servers_of_every_naming_become_skills_that_check_is_content_with() {
    let numbered = |make: &dyn Fn(&str, &str) -> String| -> Vec<String> {
        let nouns = ["order", "invoice", "parcel", "customer", "product", "price", "refund", "note", "tag", "report"];
        let verbs = ["get", "list", "create", "update", "delete"];
        nouns.iter().flat_map(|noun| verbs.iter().map(|verb| make(noun, verb))).collect()
    };
    let upper = |word: &str| word.split_at(1).0.to_uppercase() + word.split_at(1).1;
    let five_hundred =
        (0..500).map(|n| format!("{}{}_{}", ["alpha", "beta", "gamma", "delta"][n % 4], n / 40, n)).collect();
    for (naming, tools, n_skills, entry) in [
        ("one tool", vec!["note_add".to_owned()], 1, "desk:*"),
        ("verb_noun", numbered(&|noun, verb| format!("{verb}_{noun}")), 10, "desk:=create_order"),
        ("noun_verb", numbered(&|noun, verb| format!("{noun}_{verb}")), 10, "desk:order_"),
        ("nounVerb", numbered(&|noun, verb| format!("{noun}{}", upper(verb))), 10, "desk:order"),
        ("noun.verb", numbered(&|noun, verb| format!("{noun}.{verb}")), 10, "desk:order_"),
        ("no prefix", (0..30).map(|n| format!("{}{n}", ["run", "jump"][n % 2])).collect(), 1, "desk:*"),
        ("500", five_hundred, 52, "desk:alpha0_"),
    ] {
        let case = Case::new("many");
        let config = config_of(&case, &tools);
        let (code, stdout, stderr, files) = init(&case, &config, &[]);
        assert_eq!(code, 0, "{naming}: {stdout}{stderr}");
        assert!(
            stdout.contains(&format!("{} tool", tools.len())) && stdout.contains("0 errors, 0 warnings"),
            "{naming}: {stdout}"
        );
        let map = &files["gating-maps/tools.toml"];
        assert!(map.contains(&format!("\"{entry}\"")), "{naming}: {map}");
        let skills = files.keys().filter(|name| name.ends_with("SKILL.md")).count();
        assert_eq!(skills, n_skills, "{naming}: {map}");
        assert!(files["gatekey.toml"].contains("TOKEN = \"${SOME_TOKEN:-none}\""), "variables stay variables");
    }
}

#[test]
fn nothing_is_written_over_and_a_dry_run_writes_nothing() {
    let case = Case::new("many");
    let config = config_of(&case, &["note_add".into(), "note_list".into()]);
    let (code, stdout, _, files) = init(&case, &config, &["--dry-run"]);
    assert!(code == 0 && files.is_empty() && stdout.contains("would be written"), "{code} {stdout}");
    assert!(
        stdout.contains("desk = [\"desk:*\"]") && stdout.contains("Use for \\\"add note\\\", \\\"list note\\\""),
        "{stdout}"
    );
    fs::create_dir_all(case.path("out/skills/desk")).unwrap();
    fs::write(case.path("out/skills/desk/SKILL.md"), "mine").unwrap();
    let (code, stdout, _, files) = init(&case, &config, &["--json"]);
    let envelope: Value = serde_json::from_str(&stdout).unwrap();
    let became: Vec<&Value> =
        envelope["data"]["files"].as_array().unwrap().iter().map(|file| &file["became"]).collect();
    assert_eq!((code, became), (0, vec![&json!("written"), &json!("written"), &json!("kept")]));
    assert_eq!(files["skills/desk/SKILL.md"], "mine");
}

#[test]
fn what_nobody_sees_is_not_handed_on() {
    let case = Case::new("many");
    let config = config_of(&case, &["note_add\u{200b}".into(), "note_list".into()]);
    let (code, stdout, _, files) = init(&case, &config, &[]);
    assert!(code == 1 && stdout.contains("hidden-character"), "the definition itself is said: {code} {stdout}");
    assert!(!files["skills/desk/SKILL.md"].contains('\u{200b}'), "{files:?}");
}

#[test]
fn a_server_that_is_down_is_not_guessed_at() {
    let case = Case::new("many");
    let config = case.write("servers.json", r#"{"mcpServers": {"desk": {"command": "no-such-program"}}}"#);
    let (code, _, stderr, files) = init(&case, &config, &[]);
    assert!(code == 4 && files.is_empty() && stderr.contains("nothing is written"), "{code} {stderr}");
}

#[test]
fn real_servers_become_skills_that_check_is_content_with_and_one_changed_description_is_named() {
    let (work, case) = (workplace(), Case::new("many"));
    let lines = command_lines(work.path());
    let upstreams: Vec<&str> = lines.iter().flat_map(|line| ["--upstream", line.as_str()]).collect();
    let folder = case.path("out");
    let (code, stdout, stderr) = run([&["init", "--output", folder.to_str().unwrap()], upstreams.as_slice()].concat());
    assert_eq!(code, 0, "{stdout}{stderr}");
    let files = written(&folder);
    let skills: Vec<&str> =
        files.keys().filter_map(|name| name.strip_prefix("skills/")?.strip_suffix("/SKILL.md")).collect();
    assert_eq!(
        skills,
        ["mcp-server-git", "mcp-server-time", "server-everything", "server-filesystem", "server-memory"]
    );
    let config = case.path("out/gatekey.toml");
    let config = config.to_str().unwrap();
    assert_eq!(run(["lock", "--config", config]).0, 0);
    let lock = case.path("out/gatekey.lock");
    let recorded = fs::read_to_string(&lock).unwrap();
    fs::write(&lock, recorded.replace("Shows the working tree status", "Shows it")).unwrap();
    for arguments in [["diff", "--config", config, "--json"], ["check", "--config", config, "--json"]] {
        let (code, stdout, stderr) = run(arguments);
        assert_eq!(code, 1, "{stderr}");
        let envelope: Value = serde_json::from_str(&stdout).unwrap();
        match arguments[0] {
            "diff" => {
                let changes = envelope["data"]["changes"].as_array().unwrap();
                assert_eq!(changes.len(), 1);
                assert_eq!(
                    (&changes[0]["name"], &changes[0]["differences"][0]["part"]),
                    (&json!("git_status"), &json!("description"))
                );
            }
            _ => {
                let findings = envelope["diagnostics"].as_array().unwrap();
                assert_eq!(findings.len(), 1);
                assert!(
                    findings[0]["message"]
                        .as_str()
                        .unwrap()
                        .starts_with("tool `git_status` of `mcp-server-git` has changed")
                );
            }
        }
    }
}
