//! `gatekey index` and the `[index]` of a config: the list of skills in a file that clients load, once and kept fresh.

use std::{fs, path::PathBuf, process::Command, time::SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    cases::Case,
    process::{Process, gatekey, run},
    proxy::{PATIENCE, Proxy},
    wait_until,
};

const START: &str = "<!-- gatekey:index start -->";
const END: &str = "<!-- gatekey:index end -->";

/// A folder with two skills that are shown, and one that is not.
struct Shelf(TempDir);

impl Shelf {
    fn new() -> Self {
        let shelf = Self(tempfile::tempdir().unwrap());
        shelf.skill("alpha", "Handles apples. Use it for pears too.", "tags: [fruit]\n");
        shelf.skill("beta", "Handles berries.", "");
        shelf.skill("ghost", "Is for nobody.", "disable-model-invocation: true\n");
        shelf
    }

    fn skill(&self, name: &str, description: &str, header: &str) {
        let text = format!("---\nname: {name}\ndescription: {description}\n{header}---\nBody\n");
        self.write(&format!("skills/{name}/SKILL.md"), &text);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// `gatekey index` in this folder.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = gatekey();
        command.arg("index").args(arguments).current_dir(self.0.path());
        command
    }

    /// Runs it to its end: exit code, stdout, stderr.
    fn index(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    /// What tells whether a file was written.
    fn stamp(&self, name: &str) -> (SystemTime, u64) {
        let data = fs::metadata(self.path(name)).unwrap();
        (data.modified().unwrap(), std::os::unix::fs::MetadataExt::ino(&data))
    }
}

#[test]
fn the_index_of_folders_is_written_and_not_touched_while_it_says_the_same() {
    let shelf = Shelf::new();
    let (code, stdout, stderr) = shelf.index(&["--skills", "skills"]);
    assert_eq!((code, &*stderr), (0, ""), "{stdout}");
    assert!(stdout.starts_with("SKILLS-INDEX.md: created, 2 skills, full, "), "{stdout}");
    insta::assert_snapshot!(shelf.read("SKILLS-INDEX.md"), @r"
    <!-- gatekey:index start -->
    ## Skills

    Before a task that one of these skills fits, call `skill_load` with its name: it returns how to proceed and opens the skill's tools.

    - `alpha`: Handles apples. Use it for pears too. (fruit)
    - `beta`: Handles berries.
    <!-- gatekey:index end -->
    ");
    let before = shelf.stamp("SKILLS-INDEX.md");
    let (code, stdout, _) = shelf.index(&["--skills", "skills", "--json"]);
    let envelope: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &envelope["kind"], &envelope["data"]["outcome"]), (0, &json!("index"), &json!("unchanged")));
    assert_eq!(shelf.stamp("SKILLS-INDEX.md"), before);
    let (_, printed, _) = shelf.index(&["--skills", "skills", "--stdout"]);
    assert_eq!(printed, shelf.read("SKILLS-INDEX.md"));

    shelf.skill("beta", "Handles bananas.", "");
    let (_, stdout, _) = shelf.index(&["--skills", "skills"]);
    assert!(stdout.starts_with("SKILLS-INDEX.md: updated, "), "{stdout}");
    assert!(shelf.read("SKILLS-INDEX.md").contains("- `beta`: Handles bananas.\n"));
}

#[test]
fn what_upstreams_offer_is_in_it_with_numbers_of_tools() {
    let case = Case::new("29");
    let config = case.clients_config();
    let (code, stdout, stderr) = run(["index", "--stdout", "--config", config.to_str().unwrap()]);
    assert_eq!(code, 0, "{stderr}");
    let name = case.servers.keys().next().unwrap();
    let line =
        stdout.lines().find(|line| line.starts_with(&format!("- `{name}`: "))).unwrap_or_else(|| panic!("{stdout}"));
    assert!(line.contains("Opens ") && line.contains("read"), "{line}");
}

#[test]
fn a_file_that_is_not_ours_stays_as_it_is() {
    let shelf = Shelf::new();
    let skills = ["--skills", "skills", "--output", "notes.md"];
    for (text, expected, said) in [
        ("# Mine\n".to_owned(), 2, "`notes.md` has no place for the index"),
        (format!("# Mine\n{START}\nold\n"), 3, "`notes.md`: the line `<!-- gatekey:index end -->` is missing"),
        (format!("{START}\n{END}\n{START}\n{END}\n"), 3, "stands there more than once"),
    ] {
        shelf.write("notes.md", &text);
        let before = shelf.stamp("notes.md");
        let (code, stdout, stderr) = shelf.index(&skills);
        assert_eq!((code, &*stdout), (expected, ""), "{stderr}");
        assert!(stderr.contains(said) && stderr.contains("\nhint: "), "{stderr}");
        assert_eq!((shelf.read("notes.md"), shelf.stamp("notes.md")), (text, before));
    }
    shelf.write("SKILLS-INDEX.md", "# Mine\n");
    assert_eq!(shelf.index(&["--skills", "skills"]).0, 2, "nor is the usual file when somebody else made it");
}

#[test]
fn an_index_that_would_be_lost_by_a_slip_of_the_pen_stays() {
    let shelf = Shelf::new();
    assert_eq!(shelf.index(&["--skills", "skills"]).0, 0);
    let before = shelf.stamp("SKILLS-INDEX.md");
    for (arguments, expected) in [
        (&["--skills", "skils"][..], 3),
        (&[][..], 2),
        (&["--skills", "skills", "--budget", "20"][..], 2),
        (&["--skills", "skills", "--stdout", "--watch"][..], 2),
        (&["--skills", "skills", "--output", "no/such/folder.md"][..], 2),
    ] {
        let (code, _, stderr) = shelf.index(arguments);
        assert_eq!(code, expected, "{arguments:?}: {stderr}");
    }
    assert_eq!(shelf.stamp("SKILLS-INDEX.md"), before);
}

#[test]
fn a_watched_skill_changes_the_index_and_nothing_around_it() {
    let shelf = Shelf::new();
    let around = |index: &str| format!("# Mine\r\n\r\n{START}\r\n{index}{END}\r\n\r\nThe end, \twithout a line end");
    shelf.write("AGENTS.md", &around(""));
    let (process, _stdin, _stdout) =
        Process::spawn(shelf.command(&["--skills", "skills", "--output", "AGENTS.md", "--watch"]));
    // What is around it, and whether the index says this.
    let says = |line: &str| {
        let text = shelf.read("AGENTS.md");
        let index =
            text.split_once(&format!("{START}\r\n")).and_then(|(_, rest)| rest.split_once(END)).map(|(index, _)| index);
        let index = index.unwrap_or_else(|| panic!("{text}"));
        assert_eq!(text, around(index));
        index.contains(&format!("{line}\r\n"))
    };
    wait_until("the index is written", PATIENCE, || says("- `beta`: Handles berries."));
    shelf.skill("beta", "Handles bananas.", "");
    wait_until("a changed skill is in it", PATIENCE, || says("- `beta`: Handles bananas."));
    shelf.skill("gamma", "Handles grapes.", "");
    wait_until("a new skill is in it", PATIENCE, || says("- `gamma`: Handles grapes."));

    shelf.write("AGENTS.md", "# Nothing\n");
    shelf.skill("gamma", "Handles greens.", "");
    let has_said = || process.stderr().lock().unwrap().contains("`AGENTS.md` has no place for the index");
    wait_until("it says what is wrong", PATIENCE, has_said);
    assert_eq!(shelf.read("AGENTS.md"), "# Nothing\n");
    shelf.write("AGENTS.md", &around(""));
    shelf.skill("gamma", "Handles goods.", "");
    wait_until("it goes on", PATIENCE, || says("- `gamma`: Handles goods."));
    process.signal("INT");
    assert_eq!(process.ended(PATIENCE).code(), Some(130));
}

#[test]
fn a_watched_config_says_where_the_index_is_and_whats_wrong_at_once_ends_it() {
    let shelf = Shelf::new();
    let config =
        |file: &str| format!("version = 1\nwatch = \"off\"\nskills = [\"skills\"]\n[index]\nfile = \"{file}\"\n");
    shelf.write("gatekey.toml", &config("one.md"));
    let (process, _stdin, _stdout) = Process::spawn(shelf.command(&["--watch"]));
    wait_until("the index is written", PATIENCE, || shelf.read("one.md").contains("`alpha`"));
    shelf.write("gatekey.toml", &config("two.md"));
    wait_until("it is written elsewhere", PATIENCE, || shelf.read("two.md").contains("`alpha`"));
    process.signal("TERM");
    assert_eq!(process.ended(PATIENCE).code(), Some(0));

    shelf.write("two.md", "# Mine\n");
    assert_eq!(shelf.index(&["--watch"]).0, 2);
}

#[test]
fn the_proxy_keeps_the_file_of_its_config_fresh_and_serves_without_it() {
    let case = Case::new("29");
    let skill = |what: &str| {
        case.write("skills/alpha/SKILL.md", &format!("---\nname: alpha\ndescription: Handles {what}.\n---\nBody\n"))
    };
    skill("apples");
    let config = case.own_config("start-wait-ms = 20000\nskills = [\"skills\"]");
    let text = fs::read_to_string(&config).unwrap() + "\n[index]\nfile = \"docs/index.md\"\nbudget-tokens = 500\n";
    fs::write(&config, text).unwrap();
    let mut proxy = Proxy::with_config(&config);
    proxy.initialize();
    let warned = |proxy: &Proxy| proxy.stderr().matches("the index is not kept fresh").count();
    wait_until("there is no such folder", PATIENCE, || warned(&proxy) == 1);
    skill("almonds");
    wait_until("the change is in use", PATIENCE, || proxy.stderr().contains("changed files are in use"));
    assert!(proxy.load("alpha")["body"].as_str().is_some_and(|body| body.contains("Body")), "clients are served");
    fs::create_dir(case.path("docs")).unwrap();
    skill("apricots");
    let read = || fs::read_to_string(case.path("docs/index.md")).unwrap_or_default();
    wait_until("the index is written", PATIENCE, || read().contains("- `alpha`: Handles apricots."));
    assert!(read().starts_with(START) && read().contains("Opens "), "with what the upstreams offer: {}", read());
    skill("avocados");
    wait_until("a changed skill is in it", PATIENCE, || read().contains("- `alpha`: Handles avocados."));
    assert_eq!(warned(&proxy), 1, "the same trouble is told once");
}
