//! What the tests share: the proxy as a process spoken to in raw lines, other programs, fixtures, and waiting with a
//! deadline.

pub(crate) mod cases;
pub(crate) mod desk;
pub(crate) mod http;
pub(crate) mod issuer;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod raw;
pub(crate) mod running;
pub(crate) mod suite;
pub(crate) mod ways;

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::{Duration, Instant},
};

/// The project's folder.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// An example's program. `cargo test` builds an example that has tests as those only, so the programs are built here,
/// once a run.
pub(crate) fn example(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let profile = Path::new(env!("CARGO_BIN_EXE_gatekey")).parent().expect("the program has a folder");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--examples", "--target-dir"]).current_dir(root());
        build.arg(profile.parent().expect("the profile has a folder"));
        // Cargo tells tests of their package in variables that ring's build script looks at: with them, all that stands on
        // ring would be built anew here, and once more by the next build from a shell.
        for (name, _) in std::env::vars_os() {
            if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|start| name.to_string_lossy().starts_with(start)) {
                build.env_remove(name);
            }
        }
        if profile.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().is_ok_and(|status| status.success()), "the examples are built");
        profile.join("examples")
    });
    folder.join(name)
}

/// The folder with the installed servers and clients, `target/real` unless the environment names another one; the first
/// test that needs them installs them.
pub(crate) fn installed() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::var_os("GATEKEY_REAL").map_or_else(|| root().join("target/real"), PathBuf::from);
        let status = Command::new(root().join("tests/real/setup")).arg(&folder).status().expect("python3 is there");
        assert!(status.success(), "tests/real/setup failed");
        folder
    })
}

/// Waits until `is_so`, looking again every few milliseconds.
pub(crate) fn wait_until(what: &str, most: Duration, mut is_so: impl FnMut() -> bool) {
    assert!(comes_true(most, &mut is_so), "not within {most:?}: {what}");
}

/// Whether it becomes so in time.
pub(crate) fn comes_true(most: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + most;
    while !is_so() {
        if Instant::now() >= deadline {
            return false;
        }
        pause();
    }
    true
}

#[expect(clippy::disallowed_methods, reason = "other processes tell nobody when they have changed")]
fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}

/// Whether a process is there and no zombie.
pub(crate) fn is_running(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = state.rsplit(')').next().unwrap_or_default().trim_start().chars().next();
    if cfg!(target_os = "linux") {
        return state.is_some_and(|state| state != 'Z' && state != 'X');
    }
    Command::new("ps").args(["-p", &pid.to_string()]).output().is_ok_and(|out| out.status.success())
}

/// Every process below `pid`.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let output = Command::new("ps").args(["-e", "-o", "pid=,ppid="]).output().expect("ps is there");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let pairs: Vec<(u32, u32)> = text
        .lines()
        .filter_map(|line| {
            let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
            Some((numbers.next()?, numbers.next()?))
        })
        .collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(pairs.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
        next += 1;
    }
    found.split_off(1)
}

/// The middle one of many measured times.
pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
