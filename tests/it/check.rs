//! `gatekey check` for machines and reviewers: formats that their readers read, what a map change opens, what clients have no
//! room for, what nobody sees; and the files of `examples/ci`.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{cases::Case, proxy::run, root};

const SKILL: &str = "---\nname: notes\ndescription: Writes and reads notes. Use for \"note this\", \"my notes\".\n---\n# Notes\n\nAsk first.\n";

/// A repository with a server of some tools, a skill and a map.
struct Repository {
    case: Case,
    config: PathBuf,
}

impl Repository {
    fn new(tools: &[&str]) -> Self {
        let case = Case::new("many");
        let repository = Self { config: case.path("gatekey.toml"), case };
        let server = repository.case.folder.join("server.py");
        let args = [&[server.to_str().unwrap()], tools].concat();
        let config = format!(
            "version = 1\nmaps = [\"maps/map.toml\"]\nskills = [\"skills\"]\n[upstreams.desk]\ncommand = \"python3\"\nargs = {}\n",
            json!(args)
        );
        repository.write("gatekey.toml", &config);
        repository.write("skills/notes/SKILL.md", SKILL);
        repository.write("maps/map.toml", "version = 1\n[skills]\nnotes = [\"note_\"]\n");
        repository.git(&["init", "--quiet"]);
        repository.commit("first");
        repository
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.case.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> bool {
        let mut git = Command::new("git");
        git.current_dir(self.case.scratch.path()).args(["-c", "user.name=t", "-c", "user.email=t@example.com"]);
        git.args(arguments).env("GATEKEY", env!("CARGO_BIN_EXE_gatekey")).env_remove("GIT_DIR").stderr(Stdio::null());
        git.stdout(Stdio::null()).status().unwrap().success()
    }

    fn commit(&self, message: &str) -> bool {
        self.git(&["add", "--all"]) && self.git(&["commit", "--quiet", "--message", message])
    }

    fn check(&self, arguments: &[&str]) -> (i32, String, String) {
        run([&["check", "--config", self.config.to_str().unwrap()], arguments].concat())
    }

    /// Code and findings: code, and message.
    fn findings(&self, arguments: &[&str]) -> (i32, Vec<(String, String)>) {
        let (code, stdout, stderr) = self.check(&[arguments, &["--json"]].concat());
        let envelope: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"));
        let text = |finding: &Value, member: &str| finding[member].as_str().unwrap_or_default().to_owned();
        let findings = envelope["diagnostics"].as_array().unwrap().iter();
        (code, findings.map(|finding| (text(finding, "code"), text(finding, "message"))).collect())
    }
}

/// Names and attributes of an XML text's elements, as Python reads them.
fn elements(xml: &str) -> Vec<Value> {
    let script = "import sys, json, xml.etree.ElementTree as e\nprint(json.dumps([[x.tag, x.attrib] for x in e.parse(sys.stdin).iter()]))";
    let mut python =
        Command::new("python3").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    python.stdin.take().unwrap().write_all(xml.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {xml}"))
}

#[test]
fn every_format_says_what_was_found_to_its_reader() {
    let desk = Repository::new(&["--tool", "note_add", "--tool", "other_add"]);
    desk.write("maps/map.toml", "version = 1\n[skills]\nnotes = [\"note_\",\n  \"gone_\"]\n");
    let (code, findings) = desk.findings(&[]);
    let codes: Vec<&str> = findings.iter().map(|(code, _)| code.as_str()).collect();
    assert_eq!((code, codes), (1, vec!["gate-uncovered-tool", "gate-dead-prefix"]));
    let map = desk.case.path("maps/map.toml");

    let (code, stdout, _) = desk.check(&["--format", "sarif"]);
    let log: Value = serde_json::from_str(&stdout).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert_eq!((code, &log["version"], results.len()), (1, &json!("2.1.0"), 2));
    let place = &results[1]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], format!("file://{}", map.display()));
    assert_eq!(place["region"], json!({"startLine": 4, "startColumn": 3}));

    let (code, stdout, _) = desk.check(&["--format", "github"]);
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!((code, lines.len()), (1, 2));
    assert!(lines[0].starts_with("::error title=gate-uncovered-tool::tool `other_add`"), "{stdout}");
    let expected = format!("::warning file={},line=4,col=3,title=gate-dead-prefix::", map.display());
    assert!(lines[1].starts_with(&expected), "{stdout}");

    let (code, stdout, _) = desk.check(&["--format", "junit"]);
    let elements = elements(&stdout);
    let tags: Vec<&str> = elements.iter().filter_map(|element| element[0].as_str()).collect();
    assert_eq!((code, tags.join(" ").as_str()), (1, "testsuites testsuite testcase failure testcase failure"));
    assert_eq!(elements[1][1]["failures"], "2");
    assert_eq!(desk.check(&["--format", "xml"]).0, 2);
}

#[test]
fn a_reviewer_is_told_what_a_change_of_the_map_opens() {
    let desk =
        Repository::new(&["--tool", "note_add", "--read", "list_all", "--tool", "list_wipe", "--tool", "core_x"]);
    desk.write("maps/map.toml", "version = 1\nalways = [\"core_\"]\n[skills]\nnotes = [\"note_\", \"list_\"]\n");
    let (code, findings) = desk.findings(&["--against", "HEAD"]);
    assert_eq!(code, 0, "{findings:?}");
    let messages: Vec<&str> = findings.iter().map(|(_, message)| message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "everybody newly opens 1 tool, of which 1 may change something: core_x",
            "skill `notes` newly opens 2 tools, of which 1 may change something: list_all, list_wipe",
        ]
    );
    assert!(desk.commit("second"));
    assert_eq!(desk.findings(&["--against", "HEAD"]), (0, vec![]));
    assert_eq!(desk.findings(&["--against", "HEAD~1"]).1.len(), 2);
    let (code, _, stderr) = desk.check(&["--against", "nowhere"]);
    assert!(code == 2 && stderr.contains("git knows no revision `nowhere`"), "{code} {stderr}");
    let (code, _, stderr) = desk.check(&["--against", "--help"]);
    assert!(code == 2 && stderr.contains("error"), "{code} {stderr}");
}

#[test]
fn a_client_without_room_and_characters_that_nobody_sees_are_findings() {
    let long = format!("note_{}", "x".repeat(50));
    let desk = Repository::new(&["--tool", &long, "--tool", "note_add"]);
    assert_eq!(desk.findings(&[]), (0, vec![]));
    let (code, findings) = desk.findings(&["--client", "cursor"]);
    assert_eq!((code, findings[0].0.as_str()), (1, "client-name-long"));
    assert!(findings[0].1.ends_with("has 62 characters, and cursor takes 60"), "{findings:?}");
    assert_eq!(desk.findings(&["--client", "claude-code"]), (0, vec![]));

    desk.write("skills/notes/SKILL.md", &SKILL.replace("Ask first", "Ask\u{200b} first"));
    let (code, stdout, _) = desk.check(&[]);
    let expected = format!(
        "{}:7:4: warning[hidden-character]: `notes`: a character without width (U+200B), which nobody sees",
        desk.case.path("skills/notes/SKILL.md").display()
    );
    assert!(code == 1 && stdout.contains(&expected), "{stdout}");
    let desk = Repository::new(&["--tool", "note_add", "--tool", "note_\u{e0041}"]);
    let found = desk.findings(&[]).1;
    assert!(
        found.iter().any(|(code, message)| code == "hidden-character" && message.contains("tag character")),
        "{found:?}"
    );
}

#[test]
fn what_costs_too_much_is_a_finding_at_the_skill() {
    let desk = Repository::new(&["--tool", "note_add", "--tool", "note_drop"]);
    assert_eq!(desk.findings(&["--max-tokens", "5000"]), (0, vec![]));
    let (code, findings) = desk.findings(&["--max-tokens", "50"]);
    let codes: Vec<&str> = findings.iter().map(|(code, _)| code.as_str()).collect();
    assert_eq!((code, codes), (1, vec!["budget-start", "budget-start", "budget-skill"]));
    assert!(
        findings[2].1.starts_with("`notes` has ") && findings[2].1.ends_with(" tokens in the list, over 50"),
        "{findings:?}"
    );
}

#[test]
fn the_standard_is_stricter_than_clients() {
    let desk = Repository::new(&["--tool", "note_add"]);
    desk.write("skills/notes/SKILL.md", &SKILL.replace("name: notes", "name: Notes"));
    desk.write("maps/map.toml", "version = 1\n[skills]\nNotes = [\"note_\"]\n");
    let (lenient, strict) = (desk.findings(&[]), desk.findings(&["--level", "spec"]));
    assert!(lenient.1.iter().any(|(code, _)| code == "skill-name-invalid"), "{lenient:?}");
    assert_eq!((lenient.1, strict.0), (strict.1, 1));
}

#[test]
fn the_hook_of_the_examples_lets_only_what_is_right_be_committed() {
    let desk = Repository::new(&["--tool", "note_add"]);
    let hook = desk.case.path(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::copy(root().join("examples/ci/pre-commit"), &hook).unwrap();
    desk.write("readme.md", "Nothing of ours.");
    assert!(desk.commit("other files cost nothing"));
    desk.write("maps/map.toml", "version = 1\n[skills]\nnotes = [\"gone_\"]\n");
    assert!(!desk.commit("a map that opens nothing"));
    desk.write("maps/map.toml", "version = 1\n[skills]\nnotes = [\"=note_add\"]\n");
    assert!(desk.commit("a map that does"));
    assert_eq!(run(["lock", "--config", desk.config.to_str().unwrap()]).0, 0);
    assert!(desk.commit("what is recorded"));
    let recorded = fs::read_to_string(desk.case.path("gatekey.lock")).unwrap();
    desk.write("gatekey.lock", &recorded.replace("note_add", "note_ad"));
    assert!(!desk.commit("a lock that does not fit the map"), "and no server was asked");
}

#[test]
fn the_workflow_of_the_examples_calls_what_there_is() {
    let workflow = fs::read_to_string(root().join("examples/ci/gatekey.yml")).unwrap();
    let calls: Vec<&str> = workflow.lines().filter_map(|line| line.trim().strip_prefix("run: gatekey ")).collect();
    assert_eq!(calls.len(), 2);
    let desk = Repository::new(&["--tool", "note_add"]);
    assert_eq!(run(["lock", "--config", desk.config.to_str().unwrap()]).0, 0);
    assert!(desk.commit("what is recorded"));
    for call in calls {
        let words: Vec<&str> = call.split(['>', '|']).next().unwrap().split_whitespace().collect();
        let words: Vec<&str> = words.into_iter().map(|word| if word == "\"$BASE\"" { "HEAD" } else { word }).collect();
        let mut gatekey = Command::new(env!("CARGO_BIN_EXE_gatekey"));
        let output = gatekey.args(&words).current_dir(desk.case.scratch.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{call}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(Path::new(&root().join("examples/ci/pre-commit")).is_file());
}
