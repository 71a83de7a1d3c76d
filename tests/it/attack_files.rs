//! Attacks by paths and files: what is not a skill's own is not read, however it is asked for and whatever becomes of the
//! files meanwhile.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{
    desk::Desk,
    process::{gatekey, proxy_of},
    proxy::{PATIENCE, Proxy, text_of},
    wait_until,
    ways::{Way, in_ways},
};

/// What stands outside and must never come.
const SECRET: &str = "s3cret-of-the-house";

/// The desk with a secret beside its skills.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("skills/secret.md", SECRET);
    desk.write("secret.md", SECRET);
    desk.write("skills/alpha/references/100%.md", "Per cent.");
    desk
}

/// Ways out of the folder of `alpha`, as paths from there.
fn ways_out(desk: &Desk) -> Vec<String> {
    let absolute = desk.path("secret.md").to_string_lossy().into_owned();
    let mut paths: Vec<String> = [
        "../secret.md",
        "../../secret.md",
        "./../secret.md",
        "references/../../secret.md",
        "references/notes.md/../../../secret.md",
        "references//../../secret.md",
        "..//secret.md",
        ".././secret.md",
        "%2e%2e/secret.md",
        "%2e%2e%2fsecret.md",
        "..%2fsecret.md",
        "..%2Fsecret.md",
        "%252e%252e%252fsecret.md",
        "..%252fsecret.md",
        "..%c0%afsecret.md",
        "%c0%ae%c0%ae/secret.md",
        "..%e0%80%afsecret.md",
        "..%u2215secret.md",
        "..\\secret.md",
        "..\\..\\secret.md",
        "references\\..\\..\\secret.md",
        "..%5csecret.md",
        "..\u{2215}secret.md",
        "..\u{ff0f}secret.md",
        "\u{ff0e}\u{ff0e}/secret.md",
        "....//secret.md",
        "..;/secret.md",
        "references/notes.md\u{0}",
        "references/notes.md\u{0}.md",
        "../secret.md\u{0}.md",
        "references/notes.md/",
        "references/notes.md/.",
        "references",
        "references/",
        "References/Notes.md",
        "",
        ".",
        "..",
        "/",
        "~/.ssh/id_rsa",
        "$HOME/x",
        "*",
        "references/*",
        "references/notes.md?x",
        "references/notes.md#x",
        "SKILL.md/../../secret.md",
        "file:///etc/hostname",
        "\\\\?\\C:\\secret.md",
        "C:\\secret.md",
        "references/notes.md:$DATA",
        "/proc/self/environ",
        "/dev/stdin",
    ]
    .map(str::to_owned)
    .into();
    paths.push(absolute.clone());
    paths.push(absolute.replace('/', "%2f"));
    paths.push(format!("/{absolute}"));
    paths.push(format!("references/..{absolute}"));
    paths.push("../".repeat(40) + &absolute);
    paths.push("a/".repeat(5_000) + "x");
    paths
}

fn start(desk: &Desk, way: Way) -> Proxy {
    Proxy::spawn_in(way, proxy_of(&desk.path("gatekey.toml"))).greeted()
}

fn reference(proxy: &mut Proxy, path: &str) -> Value {
    proxy.call("skill_read_reference", json!({"skill": "alpha", "path": path}))
}

fn resource(proxy: &mut Proxy, method: &str, uri: &str) -> Value {
    let id = proxy.ask(method, json!({"uri": uri}));
    proxy.answer_to(id)
}

in_ways! { [stdio http modern_stdio modern_http]
fn paths_out_of_the_skills_folder_as_a_reference(way: Way) {
    let desk = desk();
    let mut proxy = start(&desk, way);
    let home = desk.path("").to_string_lossy().into_owned();
    for path in ways_out(&desk) {
        let refused = reference(&mut proxy, &path);
        assert_eq!(refused["isError"], true, "{path:?}: {refused}");
        let said = refused.to_string();
        assert!(!said.contains(SECRET) && (path.contains(&*home) || !said.contains(&*home)), "{path:?}: {said}");
    }
    assert_eq!(text_of(&reference(&mut proxy, "references/notes.md")), "Notes.");
    assert_eq!(text_of(&reference(&mut proxy, "references/100%.md")), "Per cent.", "a name is not decoded");
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn paths_out_of_the_skills_folder_as_a_resource(way: Way) {
    let desk = desk();
    let mut proxy = start(&desk, way);
    let hosts = ["skill://alpha/", "skill://", "skill:///", "skill://alpha/references/", "SKILL://alpha/", "skill://alpha@beta/"];
    for method in ["resources/read", "skills/get", "resources/directory/read"] {
        // A slash at the end of a URI of a file is passed over.
        for path in ways_out(&desk).into_iter().filter(|path| path != "references/notes.md/") {
            for host in hosts.iter().filter(|host| **host == "skill://alpha/" || path.len() < 30) {
                let said = resource(&mut proxy, method, &format!("{host}{path}"));
                let is_own = said["result"]["contents"].is_null() && said["result"]["skill"].is_null();
                assert!(is_own && !said.to_string().contains(SECRET), "{method} {host}{path:?}: {said}");
            }
        }
    }
    let read = resource(&mut proxy, "resources/read", "skill://alpha/references/notes.md");
    assert_eq!(read["result"]["contents"][0]["text"], "Notes.");
}
}

in_ways! { [stdio modern_http]
fn names_of_skills_that_are_paths(way: Way) {
    let desk = desk();
    let mut proxy = start(&desk, way);
    for name in ["../alpha", "alpha/../beta", "alpha/", "./alpha", "alpha/references", "..", "/", "alpha\u{0}", "ALPHA", "alpha%2fbeta"] {
        let refused = proxy.call("skill_read_reference", json!({"skill": name, "path": "references/notes.md"}));
        assert_eq!(refused["structuredContent"]["code"], "unknown_skill", "{name:?}: {refused}");
        assert_eq!(proxy.call("skill_load", json!({"name": name}))["structuredContent"]["code"], "unknown_skill", "{name:?}");
    }
    assert_eq!(text_of(&reference(&mut proxy, "references/notes.md")), "Notes.");
}
}

#[cfg(unix)]
in_ways! { [stdio modern_http]
fn links_in_a_skill_to_files_and_folders_outside(way: Way) {
    use std::os::unix::fs::symlink;
    let desk = desk();
    symlink(desk.path("secret.md"), desk.path("skills/alpha/link.md")).unwrap();
    symlink("../../secret.md", desk.path("skills/alpha/references/relative.md")).unwrap();
    symlink(desk.path(""), desk.path("skills/alpha/folder")).unwrap();
    symlink("/proc/self/environ", desk.path("skills/alpha/environ.md")).unwrap();
    fs::hard_link(desk.path("skills/alpha/references/notes.md"), desk.path("skills/alpha/hard.md")).unwrap();
    let mut proxy = start(&desk, way);
    for path in ["link.md", "references/relative.md", "folder/secret.md", "folder/skills/secret.md", "environ.md", "folder"] {
        assert_eq!(reference(&mut proxy, path)["isError"], true, "{path}");
        let said = resource(&mut proxy, "resources/read", &format!("skill://alpha/{path}"));
        assert!(said["error"].is_object(), "{path}: {said}");
    }
    let listed = resource(&mut proxy, "resources/directory/read", "skill://alpha").to_string();
    assert!(!listed.contains("folder") && !listed.contains("link.md"), "{listed}");
    // Two names of one file cannot be told apart from two files; whoever can make one can read it.
    assert_eq!(text_of(&reference(&mut proxy, "hard.md")), "Notes.");
}
}

/// Swaps a file or folder of the skill for another thing and back, as fast as it can, until it is dropped.
struct Swapping {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Swapping {
    /// `honest` and `evil` take turns at `place`.
    fn start(place: PathBuf, honest: PathBuf, evil: PathBuf) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                for other in [&evil, &honest] {
                    let aside = place.with_extension("aside");
                    // What one of them misses, the next round has again.
                    fs::rename(&place, &aside).ok();
                    fs::rename(other, &place).ok();
                    fs::rename(&aside, if std::ptr::eq(other, &evil) { &honest } else { &evil }).ok();
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Reads in a loop for two seconds; returns how often the file itself came.
fn read_while_swapped(proxy: &mut Proxy, path: &str) -> usize {
    let begun = Instant::now();
    let mut n_honest = 0;
    while begun.elapsed() < Duration::from_secs(2) {
        let asked: Vec<u64> = (0..20)
            .map(|_| {
                let arguments = json!({"skill": "alpha", "path": path});
                proxy.ask("tools/call", json!({"name": "skill_read_reference", "arguments": arguments}))
            })
            .collect();
        let resources: Vec<u64> =
            (0..20).map(|_| proxy.ask("resources/read", json!({"uri": format!("skill://alpha/{path}")}))).collect();
        for id in asked.into_iter().chain(resources) {
            let said = proxy.answer_to(id).to_string();
            assert!(!said.contains(SECRET), "{said}");
            n_honest += usize::from(said.contains("Notes."));
        }
    }
    n_honest
}

#[cfg(unix)]
#[test]
fn a_file_that_is_swapped_for_a_link_while_it_is_read() {
    let desk = desk();
    // Changes are looked for by the test's own reads only, so that the skill stays as it was when it was listed.
    desk.config_with("maps = [\"map.toml\"]\nskills = [\"skills\"]\nwatch = \"off\"", "");
    let mut proxy = start(&desk, Way::Stdio);
    proxy.load("alpha");
    assert_eq!(text_of(&reference(&mut proxy, "references/notes.md")), "Notes.");
    let (place, evil) = (desk.path("skills/alpha/references/notes.md"), desk.path("evil"));
    std::os::unix::fs::symlink(desk.path("secret.md"), &evil).unwrap();
    let swapping = Swapping::start(place, desk.path("honest"), evil);
    let n_honest = read_while_swapped(&mut proxy, "references/notes.md");
    drop(swapping);
    assert!(n_honest > 0, "it was read as well");
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_swapped_for_a_link_while_a_file_in_it_is_read() {
    let desk = desk();
    desk.config_with("maps = [\"map.toml\"]\nskills = [\"skills\"]\nwatch = \"off\"", "");
    desk.write("outside/notes.md", SECRET);
    let mut proxy = start(&desk, Way::Stdio);
    proxy.load("alpha");
    let evil = desk.path("evil");
    std::os::unix::fs::symlink(desk.path("outside"), &evil).unwrap();
    let swapping = Swapping::start(desk.path("skills/alpha/references"), desk.path("honest"), evil);
    let n_honest = read_while_swapped(&mut proxy, "references/notes.md");
    drop(swapping);
    assert!(n_honest > 0, "it was read as well");
}

#[cfg(unix)]
#[test]
fn a_file_that_becomes_a_pipe_a_folder_or_huge() {
    let desk = desk();
    desk.config_with("maps = [\"map.toml\"]\nskills = [\"skills\"]\nwatch = \"off\"", "");
    let mut proxy = start(&desk, Way::Stdio);
    proxy.load("alpha");
    let file = desk.path("skills/alpha/references/notes.md");
    let both = |proxy: &mut Proxy| {
        let begun = Instant::now();
        let said = reference(proxy, "references/notes.md");
        assert_eq!(said["isError"], true, "{said}");
        let said = resource(proxy, "resources/read", "skill://alpha/references/notes.md");
        assert!(said["error"].is_object(), "{said}");
        assert!(begun.elapsed() < Duration::from_secs(5), "nothing waits for a writer");
    };
    fs::remove_file(&file).unwrap();
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    both(&mut proxy);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    both(&mut proxy);
    fs::remove_dir(&file).unwrap();
    // Sparse, so that it costs no disk.
    fs::File::create(&file).unwrap().set_len(1 << 36).unwrap();
    both(&mut proxy);
    assert_eq!(text_of(&reference(&mut proxy, "references/100%.md")), "Per cent.", "others are read on");
}

#[cfg(unix)]
in_ways! { [stdio modern_http]
fn a_playbook_that_is_a_pipe_or_a_link_to_a_secret(way: Way) {
    let desk = desk();
    for (name, is_pipe) in [("pipe", true), ("link", false)] {
        fs::create_dir_all(desk.path(&format!("skills/{name}"))).unwrap();
        let file = desk.path(&format!("skills/{name}/SKILL.md"));
        if is_pipe {
            assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
        } else {
            std::os::unix::fs::symlink("/proc/self/environ", &file).unwrap();
        }
    }
    let mut proxy = start(&desk, way);
    for name in ["pipe", "link"] {
        let refused = proxy.call("skill_load", json!({"name": name}));
        assert_eq!(refused["structuredContent"]["code"], "unknown_skill", "{refused}");
    }
    assert_eq!(proxy.load("alpha")["body"], "Peel.");
}
}

// What is written

#[cfg(unix)]
#[test]
fn an_index_through_a_link_to_another_file() {
    let desk = desk();
    let other = desk.write("other.md", "Mine.\n");
    std::os::unix::fs::symlink(&other, desk.path("SKILLS-INDEX.md")).unwrap();
    let mut command = gatekey();
    command.args(["index", "--skills"]).arg(desk.path("skills")).current_dir(desk.path(""));
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(fs::read_to_string(&other).unwrap(), "Mine.\n");
}

#[test]
fn skills_that_change_while_they_are_read_all_the_time() {
    let desk = desk();
    let mut proxy = start(&desk, Way::Stdio);
    proxy.load("alpha");
    let file = desk.path("skills/alpha/SKILL.md");
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let writer = std::thread::spawn(move || {
        // Written in place, so that half of it may be there at any time.
        for number in 0_u64.. {
            if stopped.load(Ordering::Relaxed) {
                return;
            }
            let text =
                format!("---\nname: alpha\ndescription: Handles apples.\n---\n{}\n", format!("{number} ").repeat(500));
            fs::write(&file, text).ok();
        }
    });
    let mut n_read = 0;
    wait_until("it was read often", PATIENCE, || {
        let said = resource(&mut proxy, "resources/read", "skill://alpha/SKILL.md");
        if let Some(text) = said["result"]["contents"][0]["text"].as_str() {
            let numbers: std::collections::BTreeSet<&str> =
                text.lines().nth(4).unwrap_or_default().split_whitespace().collect();
            assert!(numbers.len() <= 1, "two versions in one: {text}");
        }
        n_read += 1;
        n_read > 200
    });
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    assert_eq!(text_of(&reference(&mut proxy, "references/100%.md")), "Per cent.");
}
