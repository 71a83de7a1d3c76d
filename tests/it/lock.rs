//! `gatekey lock`, `gatekey diff` and what `gatekey check` makes of them: a server changes, and exactly that is named.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::support::{cases::Case, proxy::run};

/// A server of three tools, a skill and a map.
struct Desk {
    case: Case,
    config: PathBuf,
}

impl Desk {
    fn new() -> Self {
        let case = Case::new("many");
        let mut desk = Self { config: case.path("gatekey.toml"), case };
        desk.write(
            "skills/notes/SKILL.md",
            "---\nname: notes\ndescription: Writes and reads sticky notes. Use for \"my notes\".\n---\n# Notes\n",
        );
        desk.write("map.toml", "version = 1\n[skills]\nnotes = [\"note_\"]\n");
        desk.serve(&["--tool", "note_add", "--tool", "note_drop", "--read", "note_list"]);
        desk
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.case.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Lets the server have other tools.
    fn serve(&mut self, tools: &[&str]) {
        let server = self.case.folder.join("server.py");
        let args = [&[server.to_str().unwrap()], tools].concat();
        let config = format!(
            "version = 1\nmaps = [\"map.toml\"]\nskills = [\"skills\"]\n[upstreams.desk]\ncommand = \"python3\"\nargs = {}\n",
            json!(args)
        );
        self.write("gatekey.toml", &config);
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let (command, rest) = arguments.split_first().unwrap();
        run([&[*command, "--config", self.config.to_str().unwrap()], rest].concat())
    }

    fn json(&self, arguments: &[&str]) -> (i32, Value) {
        let (code, stdout, stderr) = self.run(&[arguments, &["--json"]].concat());
        (code, serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error} in {stdout}{stderr}")))
    }

    /// What `check` says of what is recorded: code and subject.
    fn findings(&self, arguments: &[&str]) -> (i32, Vec<(String, String)>) {
        let (code, envelope) = self.json(&[&["check"], arguments].concat());
        let of_lock = envelope["diagnostics"].as_array().unwrap().iter().filter_map(|finding| {
            let code = finding["code"].as_str()?.strip_prefix("lock-")?;
            let message = finding["message"].as_str()?;
            Some((code.to_owned(), message.split('`').nth(1)?.to_owned()))
        });
        (code, of_lock.collect())
    }
}

fn pairs(found: &[(&str, &str)]) -> Vec<(String, String)> {
    found.iter().map(|(code, name)| ((*code).to_owned(), (*name).to_owned())).collect()
}

#[test]
fn a_lock_is_counted_as_it_is_whatever_another_one_accepts() {
    let desk = Desk::new();
    assert_eq!(desk.run(&["lock"]).0, 0);
    let lock = fs::read_to_string(desk.case.path("gatekey.lock")).unwrap();
    let n_tools = |words: &[&str]| {
        let (code, stdout, stderr) = desk.run(&[&["budget", "--offline", "--json"], words].concat());
        assert_eq!(code, 0, "{stdout}{stderr}");
        let found: Value = serde_json::from_str(&stdout).unwrap();
        found["data"]["rows"].as_array().unwrap().last().unwrap()["tools"].as_u64().unwrap()
    };
    let before = n_tools(&[]);
    let edited = lock.replacen("\"description\":", "\"description\":\"Edited. \",\"was\":", 1);
    let beside = desk.case.write("edited.lock", &edited);
    // The lock beside it accepts other definitions, which is nothing to what stands in this one.
    assert_eq!(n_tools(&["--lock", beside.to_str().unwrap()]), before);
}

#[test]
fn what_changed_since_it_was_recorded_is_named_and_recorded_when_accepted() {
    let mut desk = Desk::new();
    assert_eq!(desk.findings(&[]), (0, vec![]), "nobody has to record anything");
    let (code, stdout, stderr) = desk.run(&["diff"]);
    assert!(code == 3 && stderr.contains("`gatekey lock` makes it"), "{code} {stdout}{stderr}");
    let (code, stdout, _) = desk.run(&["lock"]);
    assert!(code == 0 && stdout.contains("recorded: 1 upstream, 3 tools, 1 skill"), "{code} {stdout}");
    let first = fs::read_to_string(desk.case.path("gatekey.lock")).unwrap();
    assert_eq!(desk.run(&["lock"]).0, 0);
    assert_eq!(fs::read_to_string(desk.case.path("gatekey.lock")).unwrap(), first, "the same, whenever it is recorded");
    assert_eq!((desk.findings(&[]), desk.findings(&["--offline"])), ((0, vec![]), (0, vec![])));
    assert_eq!(desk.run(&["diff"]).0, 0);

    // One is new, one is gone, one is read-only now; and the skill says something else.
    desk.serve(&["--tool", "note_add", "--tool", "note_send", "--tool", "note_list"]);
    desk.write(
        "skills/notes/SKILL.md",
        "---\nname: notes\ndescription: Writes and reads sticky notes. Use for \"my notes\".\n---\n# Notices\n",
    );
    let of_tools = [("changed", "note_list"), ("gone", "note_drop"), ("new", "note_send")];
    let of_skill = ("changed", "notes");
    assert_eq!(desk.findings(&[]), (1, pairs(&[of_skill, of_tools[0], of_tools[1], of_tools[2]])));
    assert_eq!(desk.findings(&["--offline"]), (1, pairs(&[of_skill])), "the skill is at hand, the server is not asked");
    let (code, envelope) = desk.json(&["diff"]);
    assert_eq!(code, 1);
    let changes = envelope["data"]["changes"].as_array().unwrap();
    let parts = |change: &Value| -> Vec<Value> {
        change["differences"].as_array().into_iter().flatten().map(|found| found["part"].clone()).collect()
    };
    let found: Vec<(&Value, &Value, Vec<Value>)> =
        changes.iter().map(|change| (&change["name"], &change["change"], parts(change))).collect();
    assert_eq!(
        found,
        [
            (&json!("note_drop"), &json!("gone"), vec![]),
            (&json!("note_list"), &json!("changed"), vec![json!("annotations"), json!("description")]),
            (&json!("note_send"), &json!("new"), vec![]),
            (&json!("notes"), &json!("changed"), vec![json!("SKILL.md")]),
        ]
    );

    let (code, _, stderr) = desk.run(&["lock"]);
    assert!(code == 1 && stderr.contains("4 changes are not recorded"), "{code} {stderr}");
    assert_eq!(fs::read_to_string(desk.case.path("gatekey.lock")).unwrap(), first, "not without being accepted");
    let (code, _, stderr) = desk.run(&["lock", "--accept", "note_lst"]);
    assert!(code == 2 && stderr.contains("nothing of `note_lst` has changed"), "{code} {stderr}");
    assert_eq!(desk.run(&["lock", "--accept", "note_list", "--accept", "skill:notes"]).0, 1);
    assert_eq!(desk.findings(&[]), (1, pairs(&[of_tools[1], of_tools[2]])));
    assert_eq!(desk.run(&["lock", "--accept"]).0, 0);
    assert_eq!(desk.findings(&[]), (0, vec![]));
    let (before, after) = (desk.case.path("before.lock"), desk.case.path("gatekey.lock"));
    fs::write(&before, &first).unwrap();
    let (code, stdout, _) =
        desk.run(&["diff", "--lock", before.to_str().unwrap(), "--against", after.to_str().unwrap()]);
    assert_eq!(code, 1);
    let expected = "  description\n    - reads note_list\n    + writes note_list\n";
    assert!(stdout.contains(expected) && stdout.contains("tool `note_send` of `desk` is new"), "{stdout}");
}

#[test]
fn one_description_that_is_another_in_a_copy_is_named_alone() {
    let desk = Desk::new();
    assert_eq!(desk.run(&["lock"]).0, 0);
    let text = fs::read_to_string(desk.case.path("gatekey.lock")).unwrap();
    let copy = desk.case.path("copy.lock");
    fs::write(&copy, text.replace("writes note_drop", "writes note_drop\u{200b}")).unwrap();
    let copy = copy.to_str().unwrap();
    assert_eq!(desk.findings(&["--lock", copy]), (1, pairs(&[("changed", "note_drop")])));
    let (code, stdout, _) = desk.run(&["diff", "--lock", copy]);
    let expected = "tool `note_drop` of `desk` has changed\n  description\n    - writes note_drop\\u{200b}\n    + writes note_drop\n";
    assert_eq!((code, stdout.as_str()), (1, expected), "also where nobody would see it");
}

#[test]
fn what_is_down_stays_as_it_was_recorded() {
    let mut desk = Desk::new();
    assert_eq!(desk.run(&["lock"]).0, 0);
    let first = fs::read_to_string(desk.case.path("gatekey.lock")).unwrap();
    desk.serve(&["--no-such-option"]);
    assert_eq!(desk.run(&["lock", "--accept"]).0, 4);
    assert_eq!(fs::read_to_string(desk.case.path("gatekey.lock")).unwrap(), first);
    assert_eq!(desk.findings(&["--offline"]), (0, vec![]), "and is enough to check with");
    fs::write(desk.case.path("gatekey.lock"), "{\"version\": 9}").unwrap();
    let (code, _, stderr) = desk.run(&["check", "--offline"]);
    assert!(code == 3 && stderr.contains("it has version 9"), "{code} {stderr}");
    fs::write(desk.case.path("gatekey.lock"), "{\"version\": 1}").unwrap();
    assert_eq!(desk.findings(&["--offline"]).1[0], ("missing".to_owned(), "desk".to_owned()));
}
