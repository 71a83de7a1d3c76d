//! The official conformance suite: run against a URL, read back check by check, and two runs compared.

use std::{
    collections::BTreeSet,
    fmt::{self, Display, Formatter},
    path::Path,
    process::Command,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use serde_json::Value;

use super::{installed, running::Running};

/// A run takes some 20 s. One that hangs in every scenario is not worth waiting for.
const MOST: Duration = Duration::from_secs(300);
/// How many characters are shown of an error and of the details; a schema violation quotes the whole message.
const SHOWN: usize = 1000;

/// What a run found.
pub(crate) struct Report {
    /// Whether no scored scenario failed; which ones are scored, the suite knows.
    pub(crate) conforms: bool,
    checks: Vec<Check>,
    /// What the suite printed.
    pub(crate) said: String,
}

/// One check of one scenario.
#[derive(Debug)]
pub(crate) struct Check {
    scenario: String,
    id: String,
    /// Tells checks of one id apart.
    name: String,
    /// SUCCESS, FAILURE, WARNING, SKIPPED or INFO.
    status: String,
    error: String,
    details: String,
}

impl Check {
    /// What it is called in every run.
    fn key(&self) -> (&str, &str, &str) {
        (&self.scenario, &self.id, &self.name)
    }

    pub(crate) fn has_passed(&self) -> bool {
        self.status == "SUCCESS"
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.status == "FAILURE"
    }

    pub(crate) fn is_skipped(&self) -> bool {
        self.status == "SKIPPED"
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

impl Display for Check {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { scenario, id, name, status, error, details } = self;
        write!(f, "{scenario}: {id} ({name}) {status}: {error:.SHOWN$}")?;
        if details.is_empty() { Ok(()) } else { write!(f, "\n    {details:.SHOWN$}") }
    }
}

/// Runs all scenarios of a revision, scored or not.
pub(crate) fn run(url: &str, revision: &str) -> Report {
    run_with(url, &["--requirements", revision])
}

/// Runs one scenario on the wire of a revision, also if the revision does not list it.
pub(crate) fn run_scenario(url: &str, revision: &str, scenario: &str) -> Report {
    run_with(url, &["--scenario", scenario, "--spec-version", revision, "--force"])
}

fn run_with(url: &str, selection: &[&str]) -> Report {
    // Some checks give an answer half a second, so runs do not compete with each other.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let results = tempfile::tempdir().expect("there is room");
    let mut command = Command::new(installed().join("bin/node"));
    command.arg(installed().join("npm/node_modules/@modelcontextprotocol/conformance/dist/index.js"));
    command.args(["server", "--url", url]).args(selection).arg("-o").arg(results.path());
    let mut suite = Running::start(command);
    let status = suite.end(MOST);
    let said = suite.said();
    let checks = checks(results.path());
    assert!(!checks.is_empty(), "no checks: {status:?}\n{said}");
    Report { conforms: status.is_some_and(|status| status.success()), checks, said }
}

/// Reads `server-SCENARIO-TIME/checks.json` of every scenario.
fn checks(results: &Path) -> Vec<Check> {
    let mut checks = Vec::new();
    for folder in std::fs::read_dir(results).expect("the folder is there").flatten() {
        let name = folder.file_name().to_string_lossy().into_owned();
        let scenario = name.strip_prefix("server-").unwrap_or(&name);
        let scenario = scenario.get(..scenario.len() - "-2026-07-28T00-00-00-000Z".len()).unwrap_or(scenario);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let Ok(file) = std::fs::read(folder.path().join("checks.json")) else {
            checks.push(Check {
                scenario: scenario.to_owned(),
                id: "not-finished".to_owned(),
                name: "NotFinished".to_owned(),
                status: "FAILURE".to_owned(),
                error: "the scenario broke off".to_owned(),
                details: String::new(),
            });
            continue;
        };
        let found: Vec<Value> = serde_json::from_slice(&file).expect("checks.json holds a list");
        checks.extend(found.iter().map(|check| Check {
            scenario: scenario.to_owned(),
            id: text(&check["id"]),
            name: text(&check["name"]),
            status: text(&check["status"]),
            error: text(&check["errorMessage"]),
            details: check.get("details").map(Value::to_string).unwrap_or_default(),
        }));
    }
    checks.sort_by(|a, b| a.key().cmp(&b.key()));
    checks
}

impl Report {
    /// One line or more for every check that `is_bad`; empty if there is none.
    pub(crate) fn list(&self, is_bad: impl Fn(&Check) -> bool) -> String {
        let bad: Vec<String> = self.checks.iter().filter(|check| is_bad(check)).map(Check::to_string).collect();
        bad.join("\n")
    }

    /// Every check that fails in the `other` run and not here, and every one that passes here and is skipped or not reached
    /// there; empty if there is none.
    pub(crate) fn lost_in(&self, other: &Self) -> String {
        let failed: BTreeSet<_> = self.checks.iter().filter(|check| check.has_failed()).map(Check::key).collect();
        let reached: BTreeSet<_> = other.checks.iter().filter(|check| !check.is_skipped()).map(Check::key).collect();
        let newly_failed = other.checks.iter().filter(|check| check.has_failed() && !failed.contains(&check.key()));
        let left_out = self.checks.iter().filter(|check| check.has_passed() && !reached.contains(&check.key()));
        let left_out =
            left_out.map(|check| format!("{}: {} ({}) was not reached", check.scenario, check.id, check.name));
        let lost: Vec<String> = newly_failed.map(Check::to_string).chain(left_out).collect();
        lost.join("\n")
    }
}
