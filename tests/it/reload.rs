//! Files that change while clients are served: how editors save, what clients are told, and what stays when a file breaks.

use std::{fs, io::Write as _, path::Path, process::Command, time::Duration};

use serde_json::{Value, json};

use crate::support::{
    cases::called,
    desk::{Desk, call, found, loaded, notices, skill, timed, told, told_at_least, visible},
    process::proxy_of,
    proxy::{PATIENCE, Proxy},
    root, wait_until,
    ways::{Way, in_ways},
};

/// A change is visible this long after the last write.
const VISIBLE: Duration = Duration::from_secs(1);
/// Quiet that is waited for is 200 ms. A save that takes this long, as it may on a busy machine, can be seen half done.
const TORN: Duration = Duration::from_millis(150);
/// So often a measurement that a busy machine spoilt is made again.
const TRIES: usize = 12;

/// One change saved by `save`, told once to a client that is reached in this way, and visible in time; then the same bytes
/// saved again, which is told to nobody.
fn is_told_once(way: Way, save: impl Fn(&Path, &str)) {
    let desk = Desk::new();
    let mut proxy = desk.start(way);
    // What they open is announced then.
    loaded(&mut proxy);
    let file = desk.path("skills/alpha/SKILL.md");
    let n_published = |proxy: &Proxy| proxy.stderr().matches("snapshot is published").count();
    for attempt in 0..TRIES {
        let [n_tools, n_resources, _] = notices(&mut proxy);
        // The log may come later than what it tells of.
        wait_until("the first snapshot is logged", PATIENCE, || n_published(&proxy) > 2 * attempt);
        let n_before = n_published(&proxy);
        let word = format!("zucchini{attempt}");
        let text = skill("alpha", &format!("Handles {word}."), &format!("Slice the {word}."));
        let mut saving = timed(|| save(&file, &text));
        let seen = visible(&mut proxy, "alpha", &word);
        told_at_least(&mut proxy, [n_tools + 1, n_resources + 1, 0]);

        saving += timed(|| save(&file, &text));
        // News of a change that comes later come after all that the save could have caused.
        let word = format!("quinces{attempt}");
        desk.put("skills/beta/SKILL.md", &skill("beta", &format!("Handles {word}."), &format!("Wash the {word}.")));
        visible(&mut proxy, "beta", &word);
        let all = told_at_least(&mut proxy, [n_tools + 2, n_resources + 2, 0]);
        if saving < TORN {
            assert_eq!(all, [n_tools + 2, n_resources + 2, 0]);
            wait_until("it is logged", PATIENCE, || n_published(&proxy) >= n_before + 2);
            assert_eq!(n_published(&proxy), n_before + 2, "nothing was published for the same bytes");
            if seen < VISIBLE {
                return;
            }
        }
    }
    panic!("not in time, {TRIES} times");
}

/// As editors do that write a new file beside the old one.
fn renamed(file: &Path, text: &str) {
    let beside = file.with_file_name("4913.tmp");
    fs::write(&beside, text).unwrap();
    fs::rename(&beside, file).unwrap();
}

in_ways! { [stdio http modern_stdio modern_http]
fn a_save_by_rename_is_told_once(way: Way) {
    is_told_once(way, renamed);
}
}

#[test]
fn a_save_in_place_is_told_once() {
    is_told_once(Way::Stdio, |file, text| {
        let mut open = fs::OpenOptions::new().write(true).open(file).unwrap();
        open.write_all(text.as_bytes()).unwrap();
        open.set_len(text.len() as u64).unwrap();
    });
}

#[test]
fn a_save_that_truncates_first_is_told_once() {
    is_told_once(Way::Stdio, |file, text| {
        let mut open = fs::File::create(file).unwrap();
        let (first, rest) = text.split_at(text.len() / 2);
        open.write_all(first.as_bytes()).unwrap();
        open.sync_all().unwrap();
        open.write_all(rest.as_bytes()).unwrap();
    });
}

#[test]
fn a_save_that_deletes_and_creates_is_told_once() {
    is_told_once(Way::Stdio, |file, text| {
        fs::remove_file(file).unwrap();
        fs::write(file, text).unwrap();
    });
}

#[test]
fn a_save_that_keeps_a_backup_beside_is_told_once() {
    is_told_once(Way::Stdio, |file, text| {
        let backup = file.with_file_name("SKILL.md~");
        fs::rename(file, &backup).unwrap();
        fs::write(file, text).unwrap();
        fs::remove_file(&backup).unwrap();
    });
}

#[test]
fn a_save_that_replaces_the_folder_is_told_once() {
    is_told_once(Way::Stdio, |file, text| {
        let folder = file.parent().unwrap();
        let has_notes = folder.join("references").is_dir();
        fs::remove_dir_all(folder).unwrap();
        fs::create_dir_all(folder.join("references")).unwrap();
        fs::write(file, text).unwrap();
        if has_notes {
            fs::write(folder.join("references/notes.md"), "Notes.").unwrap();
        }
    });
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command.args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "gc.auto=0"]).args(arguments);
    let output = command.output().expect("git is there");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_checkout_of_500_files_is_told_once() {
    let desk = Desk::new();
    let skills = desk.path("skills");
    let write_all = |what: &str| {
        for number in 0..250 {
            let name = format!("{what}-{number}");
            let text = skill(&name, &format!("Handles {what} of kind {number}."), &format!("Look at {what}{number}."));
            desk.write(&format!("skills/{name}/SKILL.md"), &text);
            desk.write(&format!("skills/{name}/references/{what}.md"), what);
        }
    };
    git(&skills, &["init", "-q", "-b", "one"]);
    write_all("walnut");
    git(&skills, &["add", "."]);
    git(&skills, &["commit", "-q", "-m", "one"]);
    git(&skills, &["checkout", "-q", "-b", "two"]);
    git(&skills, &["rm", "-q", "-r", "."]);
    write_all("gooseberry");
    git(&skills, &["add", "."]);
    git(&skills, &["commit", "-q", "-m", "two"]);
    git(&skills, &["checkout", "-q", "one"]);
    let mut proxy = desk.start(Way::Stdio);
    assert_eq!(found(&mut proxy, "walnut").len(), 20);
    for attempt in 0..TRIES {
        let [n_tools, n_resources, _] = notices(&mut proxy);
        let (branch, word, gone) =
            if attempt % 2 == 0 { ("two", "gooseberry", "walnut") } else { ("one", "walnut", "gooseberry") };
        let took = timed(|| git(&skills, &["checkout", "-q", branch]));
        let seen = timed(|| {
            wait_until("the checkout is visible", PATIENCE, || {
                found(&mut proxy, word).len() == 20 && found(&mut proxy, gone).is_empty()
            });
        });
        told_at_least(&mut proxy, [n_tools + 1, n_resources + 1, 0]);
        let name = format!("later{attempt}");
        desk.write(&format!("skills/{name}/SKILL.md"), &skill(&name, &format!("Handles {name}."), &name));
        visible(&mut proxy, &name, &name);
        let all = told_at_least(&mut proxy, [n_tools + 2, n_resources + 2, 0]);
        let is_once = all == [n_tools + 2, n_resources + 2, 0];
        assert!(is_once || took >= TORN, "{all:?} after {n_tools}, {n_resources}");
        if is_once && seen < VISIBLE {
            return;
        }
    }
    panic!("not in time, {TRIES} times");
}

#[test]
fn a_broken_skill_keeps_its_last_good_version_and_says_why() {
    let desk = Desk::new();
    let mut proxy = desk.start(Way::Stdio);
    let before = loaded(&mut proxy);
    desk.put("skills/alpha/SKILL.md", "---\nname: alpha\n---\nNo description.\n");
    wait_until("it is said", PATIENCE, || proxy.stderr().contains("skill-description-missing"));
    wait_until("it is said", PATIENCE, || proxy.stderr().contains("the skill stays as it was read last"));
    let again = proxy.call("skill_load", json!({"name": "alpha", "again": true}));
    assert_eq!(again["structuredContent"]["body"], "Peel.");
    desk.put("skills/alpha/SKILL.md", &skill("alpha", "Handles avocados.", "Halve the avocados."));
    visible(&mut proxy, "alpha", "avocados");
    told(&mut proxy, [before[0] + 1, before[1] + 1, 0]);
    fs::remove_dir_all(desk.path("skills/alpha")).unwrap();
    wait_until("a deleted skill is gone", PATIENCE, || found(&mut proxy, "avocados").is_empty());
    let gone = proxy.call("skill_load", json!({"name": "alpha"}));
    assert_eq!(gone["structuredContent"]["code"], "unknown_skill");
}

#[test]
fn an_edited_map_closes_and_opens_at_the_call_and_a_broken_one_changes_nothing() {
    let desk = Desk::new();
    let mut proxy = desk.start(Way::Stdio);
    let key = proxy.load("alpha")["key"].clone();
    assert_eq!(call(&mut proxy, "a_get"), "ok:a_get");
    let before = notices(&mut proxy);

    desk.put("map.toml", "version = 1\n[skills]\nalpha = [\"\"]\n");
    wait_until("it is said", PATIENCE, || proxy.stderr().contains("an empty prefix would open everything"));
    fs::remove_file(desk.path("map.toml")).unwrap();
    wait_until("it is said", PATIENCE, || proxy.stderr().contains("gating map cannot be read"));
    assert_eq!(call(&mut proxy, "a_get"), "ok:a_get");
    assert_eq!(call(&mut proxy, "b_get"), "inactive");
    assert_eq!(notices(&mut proxy), before);

    desk.put("map.toml", "version = 1\n[skills]\nalpha = [\"free_\"]\nbeta = [\"b_\", \"a_\"]\n");
    wait_until("the map is another", PATIENCE, || call(&mut proxy, "free_get") == "ok:free_get");
    let n_called = called(&desk.journal()).len();
    assert_eq!(call(&mut proxy, "a_get"), "inactive");
    let by_key = json!({"key": key, "name": "free_get", "arguments": {"n": 1}});
    for refused in [proxy.call("tool_call_read", by_key.clone()), proxy.modern_call("tool_call_read", by_key)] {
        assert_eq!(refused["isError"], true, "a key is for what it was given for: {refused}");
    }
    assert_eq!(called(&desk.journal()).len(), n_called);
    told(&mut proxy, [before[0] + 1, before[1], 0]);
}

#[test]
fn an_edited_config_is_used_as_far_as_it_can_be_and_a_broken_one_changes_nothing() {
    let desk = Desk::new();
    let mut proxy = desk.start(Way::Stdio);
    proxy.load("alpha");
    desk.config("[[rules]]\ndeny = [\"a_put\"]\n[http]\nsessions = 7\n");
    let is_forbidden = |proxy: &mut Proxy| call(proxy, "a_put") == "forbidden";
    wait_until("the rule holds", PATIENCE, || is_forbidden(&mut proxy));
    wait_until("it is said", PATIENCE, || proxy.stderr().contains("`http` cannot be changed while clients are served"));
    for (text, finding) in [("version = 1\nexposure = 7\n", "config-invalid"), ("version = 9\n", "config-newer")] {
        fs::write(desk.path("gatekey.toml"), text).unwrap();
        wait_until("it is said", PATIENCE, || proxy.stderr().contains(finding));
    }
    fs::remove_file(desk.path("gatekey.toml")).unwrap();
    wait_until("it is said", PATIENCE, || proxy.stderr().contains("config-syntax"));
    assert!(is_forbidden(&mut proxy));
    assert_eq!(call(&mut proxy, "a_get"), "ok:a_get");
    desk.config("");
    wait_until("the rule is gone", PATIENCE, || !is_forbidden(&mut proxy));
}

#[test]
fn a_config_that_would_give_the_caller_other_rights_than_it_means_is_not_taken() {
    let desk = Desk::new();
    let rules = |roles: &str| {
        format!("[principals.ann]\nroles = {roles}\n[[rules]]\nroles = [\"viewer\"]\nallow = [\"*_get\"]\n")
    };
    desk.config(&rules("[\"viewer\"]"));
    let mut command = proxy_of(&desk.path("gatekey.toml"));
    command.args(["--as", "ann"]);
    let mut proxy = Proxy::spawn(command).greeted();
    proxy.load("alpha");
    for (config, finding) in
        [(rules("[]"), "gives `ann` other roles"), (rules("[]").replace("ann", "eve"), "no principal `ann`")]
    {
        desk.config(&config);
        wait_until("it is said", PATIENCE, || proxy.stderr().contains(finding));
        assert_eq!(call(&mut proxy, "a_put"), "forbidden");
    }
}

#[test]
fn upstreams_come_and_go_with_the_config() {
    let desk = Desk::new();
    let mut proxy = desk.start(Way::Stdio);
    let server = root().join("tests/cases/many/server.py");
    let more =
        |tool: &str| format!("[upstreams.more]\ncommand = \"python3\"\nargs = {}\n", json!([server, "--read", tool]));
    proxy.load("beta");
    desk.config(&more("b_more"));
    wait_until("the new one is called", PATIENCE, || call(&mut proxy, "b_more") == "ok:b_more");
    desk.config(&more("b_other"));
    wait_until("the changed one is called", PATIENCE, || call(&mut proxy, "b_other") == "ok:b_other");
    assert_eq!(call(&mut proxy, "b_more"), "not_found");
    desk.config("");
    let is_gone = |proxy: &mut Proxy, tool: &str| call(proxy, tool) == "not_found";
    wait_until("it is gone", PATIENCE, || is_gone(&mut proxy, "b_other"));
    assert_eq!(call(&mut proxy, "b_get"), "ok:b_get");
    let n_starts = desk.journal().iter().filter(|note| note["method"] == "initialize").count();
    assert_eq!(n_starts, 1, "the others were left alone");
    // An empty list is a list.
    fs::write(
        desk.path("gatekey.toml"),
        "version = 1\nsearch.encoder = \"off\"\nskills = [\"skills\"]\nkey-secret = \"s\"\n",
    )
    .unwrap();
    wait_until("all are gone", PATIENCE, || is_gone(&mut proxy, "b_get"));
}

#[test]
fn what_is_not_there_yet_is_watched_for() {
    let desk = Desk::new();
    desk.config_with("maps = [\"map.toml\"]\nskills = [\"skills\", \"later/deep/skills\"]", "");
    let mut proxy = desk.start(Way::Stdio);
    desk.write("later/deep/skills/gamma/SKILL.md", &skill("gamma", "Handles mangoes.", "Cut the mangoes."));
    visible(&mut proxy, "gamma", "mangoes");
    desk.write("later/deep/skills/gamma/SKILL.md", &skill("gamma", "Handles papayas.", "Cut the papayas."));
    visible(&mut proxy, "gamma", "papayas");
    told(&mut proxy, [2, 2, 0]);
}

#[cfg(unix)]
#[test]
fn links_are_followed_when_they_are_swapped() {
    use std::os::unix::fs::symlink;
    let desk = Desk::new();
    let swap = |target: &str, link: &str| {
        symlink(target, desk.path("link.new")).unwrap();
        fs::rename(desk.path("link.new"), desk.path(link)).unwrap();
    };
    for (release, fruit) in [("1", "limes"), ("2", "pears")] {
        let text = skill("gamma", &format!("Handles {fruit}."), &format!("Cut the {fruit}."));
        desk.write(&format!("releases/{release}/skills/gamma/SKILL.md"), &text);
    }
    desk.write("shared/plums.md", &skill("delta", "Handles plums.", "Stone the plums."));
    fs::create_dir_all(desk.path("skills/delta")).unwrap();
    symlink("../../shared/plums.md", desk.path("skills/delta/SKILL.md")).unwrap();
    // As a mounted config map is: every file a link through one folder that is a link.
    desk.write("conf/..1/map.toml", "version = 1\n[skills]\nalpha = [\"a_\"]\n");
    desk.write("conf/..2/map.toml", "version = 1\n[skills]\nalpha = [\"b_\"]\n");
    symlink("..1", desk.path("conf/..data")).unwrap();
    symlink("..data/map.toml", desk.path("conf/map.toml")).unwrap();
    symlink("releases/1", desk.path("current")).unwrap();
    desk.config_with("maps = [\"conf/map.toml\"]\nskills = [\"skills\", \"current/skills\"]", "");
    let mut proxy = desk.start(Way::Stdio);
    proxy.load("alpha");
    assert_eq!(found(&mut proxy, "limes"), ["gamma"]);

    swap("releases/2", "current");
    visible(&mut proxy, "gamma", "pears");
    swap("..2", "conf/..data");
    wait_until("the map is another", PATIENCE, || call(&mut proxy, "b_get") == "ok:b_get");
    desk.write("shared/plums.md", &skill("delta", "Handles damsons.", "Stone the damsons."));
    visible(&mut proxy, "delta", "damsons");
}

#[test]
fn files_are_looked_at_where_the_system_tells_nothing() {
    let desk = Desk::new();
    desk.config_with("maps = [\"map.toml\"]\nskills = [\"skills\"]\nwatch = \"poll\"", "");
    let mut proxy = desk.start(Way::Stdio);
    let mut n_told = 0;
    for fruit in ["lemons", "melons"] {
        desk.put("skills/alpha/SKILL.md", &skill("alpha", &format!("Handles {fruit}."), fruit));
        wait_until("it is found", PATIENCE, || found(&mut proxy, fruit) == ["alpha"]);
        n_told += 1;
        told(&mut proxy, [n_told, n_told, 0]);
    }
}

#[test]
fn a_changed_reference_changes_the_digests_that_were_listed_and_nothing_else() {
    let desk = Desk::new();
    let mut proxy = desk.start(Way::Stdio);
    desk.put("skills/alpha/references/notes.md", "Other!");
    proxy.wait_for("its digest is another", PATIENCE, |message| {
        message["method"] == "notifications/resources/list_changed"
    });
    let read = proxy.result("resources/read", json!({"uri": "skill://alpha/references/notes.md"}));
    assert_eq!(read["contents"][0]["text"], "Other!");
    told(&mut proxy, [0, 1, 0]);
}

#[test]
fn searching_while_files_change_finds_everything_at_all_times() {
    const N_SKILLS: usize = 20;
    const N_GENERATIONS: usize = 60;
    let desk = Desk::new();
    fs::remove_dir_all(desk.path("skills")).unwrap();
    let write_all = |generation: usize| {
        for number in 0..N_SKILLS {
            let name = format!("s{number}");
            let text = skill(&name, &format!("Handles fruit, state {generation}."), &"Much to do. ".repeat(500));
            desk.write(&format!("skills/{name}/SKILL.md"), &text);
        }
    };
    write_all(0);
    let mut first = desk.start(Way::Http);
    let mut others = [first.another(Way::Http), first.another(Way::Http)];
    let is_over = std::sync::atomic::AtomicBool::new(false);
    // The states that the skills of one answer have; each has all skills.
    let states = |proxy: &mut Proxy| -> Vec<usize> {
        let found = proxy.call("skill_search", json!({"query": "fruit", "top_k": N_SKILLS}));
        assert_ne!(found["isError"], true, "{found}");
        let skills = found["structuredContent"]["skills"].as_array().unwrap();
        assert_eq!(skills.len(), N_SKILLS, "{found}");
        let state = |skill: &Value| {
            let text = skill["description"].as_str().unwrap();
            text.trim_end_matches('.').rsplit(' ').next().unwrap().parse().unwrap()
        };
        let mut states: Vec<usize> = skills.iter().map(state).collect();
        states.sort_unstable();
        states.dedup();
        states
    };
    let n_searches: usize = std::thread::scope(|scope| {
        let (is_over, states) = (&is_over, &states);
        let searching = others.each_mut().map(|proxy| {
            scope.spawn(move || {
                let (mut n_searches, mut last) = (0, 0);
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    let states = states(proxy);
                    // While they are being written, some may be of the next state.
                    assert!(states.len() <= 2 && states.last().unwrap() - states[0] <= 1, "{states:?}");
                    assert!(states[0] >= last, "{states:?} after {last}");
                    (last, n_searches) = (states[0], n_searches + 1);
                }
                n_searches
            })
        });
        for generation in 1..=N_GENERATIONS {
            write_all(generation);
            wait_until("the state is visible", PATIENCE, || {
                searching.iter().any(std::thread::ScopedJoinHandle::is_finished) || states(&mut first) == [generation]
            });
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        searching.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(n_searches > N_GENERATIONS, "{n_searches}");
    let [n_tools, n_resources, _] = notices(&mut first);
    // On a busy machine a state that is being written can be seen half done.
    assert!(n_tools >= N_GENERATIONS && n_resources >= N_GENERATIONS, "each was told: {n_tools}, {n_resources}");
}
