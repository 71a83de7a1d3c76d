//! The audit: every decision and call stands there, in a chain that tells what was changed, and no name or argument can write
//! lines of its own.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    cases::{called, journal},
    process::proxy_of,
    proxy::{PATIENCE, Proxy, run, text_of},
    root, wait_until,
    ways::{Way, in_ways},
};

struct Desk {
    scratch: TempDir,
}

impl Desk {
    fn new(audit: &str) -> Self {
        let desk = Self { scratch: tempfile::tempdir().unwrap() };
        fs::create_dir_all(desk.path("skills/alpha")).unwrap();
        fs::write(desk.path("skills/alpha/SKILL.md"), "---\nname: alpha\ndescription: Handles apples.\n---\nPeel.\n")
            .unwrap();
        fs::write(desk.path("skills/alpha/notes.md"), "Notes.").unwrap();
        fs::write(desk.path("map.toml"), "version = 1\n[skills]\nalpha = [\"a_\"]\n").unwrap();
        let server = root().join("tests/cases/many/server.py");
        // Under a limit to the size of files Python would write half of its compiled modules, for all other tests to read.
        let args = json!([
            "-B",
            server,
            "--journal",
            desk.path("journal.jsonl"),
            "--tool",
            "a_put",
            "--tool",
            "b_put",
            "--tool",
            "a_drop"
        ]);
        let config = format!(
            "version = 1\nmaps = [\"map.toml\"]\nskills = [\"skills\"]\nsearch.encoder = \"off\"\nstart-wait-ms = 20000\nintent = \"optional\"\n[[rules]]\ndeny = [\"a_drop\"]\n[audit]\nfile = \"audit.jsonl\"\n{audit}\n[upstreams.many]\ncommand = \"python3\"\nargs = {args}\n"
        );
        fs::write(desk.path("gatekey.toml"), config).unwrap();
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn start(&self, way: Way) -> Proxy {
        Proxy::spawn_in(way, proxy_of(&self.path("gatekey.toml"))).greeted()
    }

    fn records(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("audit.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Records of this event.
    fn of(&self, event: &str) -> Vec<Value> {
        self.records().into_iter().filter(|record| record["event"] == event).collect()
    }

    fn verify(&self) -> (i32, String) {
        self.verify_with(&[])
    }

    fn verify_with(&self, more: &[&str]) -> (i32, String) {
        let config = self.path("gatekey.toml");
        let (code, stdout, stderr) = run([&["audit", "verify", "--config", config.to_str().unwrap()], more].concat());
        (code, stdout + &stderr)
    }
}

in_ways! { [stdio http modern_stdio modern_http]
fn every_decision_and_call_stands_there(way: Way) {
    let desk = Desk::new("arguments = true\nsecrets = [\"pin\"]");
    let mut proxy = desk.start(way);
    assert_eq!(proxy.call("a_put", json!({"n": 1}))["structuredContent"]["code"], "inactive");
    assert_eq!(proxy.call("a_drop", json!({"n": 1}))["structuredContent"]["code"], "forbidden");
    assert_eq!(proxy.call("c_put", json!({"n": 1}))["structuredContent"]["code"], "not_found");
    proxy.load("alpha");
    proxy.call("skill_read_reference", json!({"skill": "alpha", "path": "notes.md"}));
    let arguments = json!({"n": 1, "pin": 1234, "api_token": "t0p", "intent": "Put it there."});
    assert_eq!(text_of(&proxy.call("a_put", arguments)), "ok:a_put");
    wait_until("the end stands there", PATIENCE, || !desk.of("ended").is_empty());
    let refused: Vec<(Value, Value)> =
        desk.of("refused").into_iter().map(|record| (record["tool"].clone(), record["code"].clone())).collect();
    let expected = [("a_put", "inactive"), ("a_drop", "forbidden"), ("c_put", "not_found")];
    assert_eq!(refused, expected.map(|(tool, code)| (json!(tool), json!(code))));
    assert_eq!(desk.of("skill")[0]["skill"], "alpha");
    assert_eq!(desk.of("reference")[0]["path"], "notes.md");
    let call = &desk.of("call")[0];
    assert_eq!((&call["upstream"], &call["tool"], &call["skill"]), (&json!("many"), &json!("a_put"), &json!("alpha")), "{call}");
    assert_eq!(call["intent"], "Put it there.", "{call}");
    assert_eq!(call["principal"], "local", "{call}");
    assert_eq!(call["arguments"]["pin"], "[redacted]", "{call}");
    let ended = &desk.of("ended")[0];
    assert_eq!((&ended["call"], &ended["outcome"]), (&call["call"], &json!("ok")), "{ended}");
    assert_eq!(ended["answer_sha256"].as_str().unwrap().len(), 64);
    let text = fs::read_to_string(desk.path("audit.jsonl")).unwrap();
    assert!(!text.contains("1234") && !text.contains("t0p"), "{text}");
    let (code, said) = desk.verify();
    assert!(code == 0 && said.contains("whole"), "{code} {said}");
}
}

in_ways! { [stdio modern_http]
fn what_is_hidden_from_a_caller_is_not_hidden_from_the_audit(way: Way) {
    let desk = Desk::new("");
    let config = fs::read_to_string(desk.path("gatekey.toml")).unwrap();
    let rules = "conceal = true\n[[rules]]\ndeny-skills = [\"beta\"]\n[[rules]]";
    fs::write(desk.path("gatekey.toml"), config.replacen("[[rules]]", rules, 1)).unwrap();
    fs::create_dir_all(desk.path("skills/beta")).unwrap();
    fs::write(desk.path("skills/beta/SKILL.md"), "---\nname: beta\ndescription: Handles pears.\n---\nSlice.\n").unwrap();
    let mut proxy = desk.start(way);
    assert_eq!(proxy.call("a_drop", json!({"n": 1}))["structuredContent"]["code"], "not_found");
    assert_eq!(proxy.call("skill_load", json!({"name": "beta"}))["structuredContent"]["code"], "unknown_skill");
    assert_eq!(proxy.call("skill_load", json!({"name": "gamma"}))["structuredContent"]["code"], "unknown_skill");
    let codes: Vec<Value> = desk.of("refused").into_iter().map(|record| record["code"].clone()).collect();
    assert_eq!(codes, ["forbidden", "forbidden", "unknown_skill"]);

    // A skill that is read as a resource is read all the same.
    proxy.result("resources/read", json!({"uri": "skill://alpha/notes.md"}));
    let read = &desk.of("reference")[0];
    assert_eq!((&read["skill"], &read["path"]), (&json!("alpha"), &json!("notes.md")));
}
}

#[test]
fn arguments_and_answers_are_not_written_unless_they_are_wanted() {
    let desk = Desk::new("");
    let mut proxy = desk.start(Way::Stdio);
    proxy.load("alpha");
    proxy.call("a_put", json!({"n": 77_777_777}));
    wait_until("the end stands there", PATIENCE, || !desk.of("ended").is_empty());
    let text = fs::read_to_string(desk.path("audit.jsonl")).unwrap();
    assert!(!text.contains("77777777") && !text.contains("ok:a_put"), "{text}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(desk.path("audit.jsonl")).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn no_name_argument_or_intent_can_write_a_line_of_its_own() {
    let desk = Desk::new("arguments = true");
    let mut proxy = desk.start(Way::Stdio);
    let evil = "x\"}\n{\"event\":\"call\",\"tool\":\"forged\",\"seq\":1,\"prev\":\"\"}\r\n\u{1b}[2J";
    proxy.call(evil, json!({}));
    proxy.call("skill_load", json!({"name": evil}));
    proxy.load("alpha");
    proxy.call("skill_read_reference", json!({"skill": "alpha", "path": evil}));
    proxy.call("a_put", json!({"n": 1, "x": evil, evil: 1, "intent": evil}));
    wait_until("the end stands there", PATIENCE, || !desk.of("ended").is_empty());
    assert!(desk.records().iter().all(|record| record["tool"] != "forged"));
    let text = fs::read_to_string(desk.path("audit.jsonl")).unwrap();
    assert!(!text.contains('\u{1b}') && !text.contains('\r'));
    let (code, said) = desk.verify();
    assert_eq!(code, 0, "{said}");
}

/// Runs `change` over the lines of a good audit; returns what `verify` says then.
fn changed(change: impl FnOnce(&mut Vec<String>)) -> (i32, String) {
    let desk = Desk::new("");
    let mut proxy = desk.start(Way::Stdio);
    for _ in 0..3 {
        proxy.call("a_put", json!({"n": 1}));
    }
    proxy.close();
    proxy.wait_for_end(PATIENCE);
    let text = fs::read_to_string(desk.path("audit.jsonl")).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    change(&mut lines);
    fs::write(desk.path("audit.jsonl"), lines.join("\n") + "\n").unwrap();
    desk.verify()
}

#[test]
fn a_line_that_was_changed_removed_added_or_moved_is_found_with_its_place() {
    type Change = fn(&mut Vec<String>);
    let changes: [(Change, &str); 5] = [
        (|lines| lines[2] = lines[2].replace("inactive", "allowed!"), ":4: does not fit"),
        (|lines| drop(lines.remove(2)), ":3: has number 4, where 3 was to come"),
        (|lines| lines.insert(2, lines[1].clone()), ":3: has number 2, where 3 was to come"),
        (|lines| lines.swap(2, 3), ":3: has number 4"),
        (|lines| lines.insert(2, "no record".into()), ":3: is no record"),
    ];
    for (change, expected) in changes {
        let (code, said) = changed(change);
        assert!(code == 1 && said.contains(expected), "{expected}: {code} {said}");
    }
    // Without its head nobody can tell that the end was cut off: the head is what one keeps.
    let (code, said) = changed(|lines| drop(lines.pop()));
    assert!(code == 0 && said.contains("head "), "{code} {said}");
}

#[test]
fn an_end_that_was_cut_off_shows_by_the_head_that_somebody_noted() {
    let desk = Desk::new("");
    let mut proxy = desk.start(Way::Stdio);
    proxy.call("c_put", json!({"n": 1}));
    let said = desk.verify().1;
    let head = said.rsplit_once("head ").unwrap().1.trim().to_owned();
    proxy.call("c_put", json!({"n": 2}));
    drop(proxy);
    let whole = fs::read_to_string(desk.path("audit.jsonl")).unwrap();
    assert_eq!(desk.verify_with(&["--head", &head]).0, 0, "it goes on from there");
    let number: usize = head.split_once(':').unwrap().0.parse().unwrap();
    let lines: Vec<&str> = whole.lines().take(number - 1).collect();
    fs::write(desk.path("audit.jsonl"), lines.join("\n") + "\n").unwrap();
    assert_eq!(desk.verify().0, 0, "by itself it looks whole");
    let (code, said) = desk.verify_with(&["--head", &head]);
    assert!(code == 1 && said.contains(&head) && said.contains("cut off"), "{code} {said}");
}

#[test]
fn a_last_line_that_was_not_written_to_its_end_is_accounted_for() {
    let desk = Desk::new("");
    let mut proxy = desk.start(Way::Stdio);
    proxy.call("a_put", json!({"n": 1}));
    proxy.close();
    proxy.wait_for_end(PATIENCE);
    let whole = fs::read_to_string(desk.path("audit.jsonl")).unwrap();
    fs::write(desk.path("audit.jsonl"), format!("{whole}{{\"event\":\"call\",\"to")).unwrap();
    let (code, said) = desk.verify();
    assert!(code == 1 && said.contains("was not written to its end"), "{code} {said}");
    desk.start(Way::Stdio).call("a_put", json!({"n": 1}));
    let (code, said) = desk.verify();
    assert_eq!(code, 0, "{said}");
    assert!(fs::read_to_string(desk.path("audit.jsonl")).unwrap().contains("\"torn_bytes\":19"));
}

#[test]
fn a_full_file_is_put_aside_and_the_chain_goes_on() {
    let desk = Desk::new("max-bytes = 2048\nkeep = 3");
    for _ in 0..2 {
        let mut proxy = desk.start(Way::Stdio);
        for _ in 0..20 {
            proxy.call("a_put", json!({"n": 1}));
        }
        proxy.close();
        proxy.wait_for_end(PATIENCE);
    }
    for number in 1..=3 {
        let size = fs::metadata(desk.path(&format!("audit.jsonl.{number}"))).unwrap().len();
        assert!((1000..=2048).contains(&size), "{number}: {size}");
    }
    assert!(!desk.path("audit.jsonl.4").exists());
    let (code, said) = desk.verify();
    assert!(code == 0 && said.contains("older files are gone"), "{code} {said}");
    // One of those between goes.
    fs::remove_file(desk.path("audit.jsonl.2")).unwrap();
    fs::rename(desk.path("audit.jsonl.3"), desk.path("audit.jsonl.2")).unwrap();
    let (code, said) = desk.verify();
    assert!(code == 1 && said.contains("was to come"), "{code} {said}");
}

#[test]
fn a_second_process_writes_beside_the_first() {
    let desk = Desk::new("");
    let mut first = desk.start(Way::Stdio);
    let mut second = desk.start(Way::Stdio);
    first.call("a_put", json!({"n": 1}));
    second.call("a_put", json!({"n": 1}));
    assert!(desk.path("audit-2.jsonl").is_file());
    let (code, said) = desk.verify();
    assert_eq!((code, said.matches("whole").count()), (0, 2), "{said}");
}

/// A disk on which nothing can be written any more is there on Linux.
#[cfg(target_os = "linux")]
#[test]
fn a_call_that_cannot_be_recorded_is_not_made_where_the_config_says_so() {
    for (mode, is_made) in [("refuse", false), ("continue", true)] {
        let desk = Desk::new(&format!("on-failure = \"{mode}\""));
        let file = desk.path("audit.jsonl");
        std::os::unix::fs::symlink("/dev/full", &file).unwrap();
        let config = fs::read_to_string(desk.path("gatekey.toml")).unwrap();
        fs::write(desk.path("gatekey.toml"), config.replace("\"audit.jsonl\"", "\"/dev/full\"")).unwrap();
        // It cannot even begin: whoever wants an audit does not want to serve without one.
        let (code, _, stderr) = run(["proxy", "--config", desk.path("gatekey.toml").to_str().unwrap()]);
        assert!(code == 2 && stderr.contains("/dev/full"), "{code} {stderr}");
        // A link that somebody put there is not followed.
        fs::write(desk.path("gatekey.toml"), &config).unwrap();
        let (code, _, stderr) = run(["proxy", "--config", desk.path("gatekey.toml").to_str().unwrap()]);
        assert!(code == 2 && stderr.contains("audit.jsonl"), "{code} {stderr}");
        // It fills up while clients are served.
        fs::remove_file(&file).unwrap();
        let mut command = std::process::Command::new("bash");
        let gatekey = env!("CARGO_BIN_EXE_gatekey");
        let limited = format!("ulimit -f 8; trap '' XFSZ; exec {gatekey} proxy --config gatekey.toml");
        command.args(["-c", &limited]).current_dir(desk.scratch.path());
        let mut proxy = Proxy::spawn(command).greeted();
        proxy.load("alpha");
        let mut last = Value::Null;
        for _ in 0..20 {
            last = proxy.call("a_put", json!({"n": 1}));
        }
        let n_made = called(&journal(&desk.path("journal.jsonl"))).len();
        let n_recorded = desk.of("call").len();
        if is_made {
            assert_eq!((text_of(&last), n_made), ("ok:a_put", 20));
            wait_until("it is said", PATIENCE, || proxy.stderr().contains("the audit cannot be written"));
        } else {
            assert!(text_of(&last).contains("could not be recorded"), "{last}");
            assert_eq!(n_made, n_recorded, "no call without its record");
        }
        assert!(n_recorded < 20);
        let (code, said) = desk.verify();
        assert_eq!(code, 0, "what was written is whole: {said}");
    }
}
