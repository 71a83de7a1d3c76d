//! Starts the parts: every contender in every scenario, in turn, round after round.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use crate::{
    Result,
    contender::{Contender, Upstream, contenders, own_program},
    process::Process,
    sample::Outcome,
    scenario::{Scenario, Transport, named},
    table::{Results, table},
    task::Task,
};

/// How long an upstream over HTTP may take to listen.
const UPSTREAM_PATIENCE: Duration = Duration::from_secs(10);
/// What a quick run leaves of the time.
const QUICK: f64 = 0.15;

/// What is run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How often everything is measured; the table shows medians
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only these scenarios, by name with commas between
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Without these contenders, by name with commas between
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    /// One short round: whether everything works, not how fast it is
    #[arg(long)]
    quick: bool,
}

/// Runs it all; fails where a call through something of ours did.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let scenarios = named(&options.only)?;
    let (mut contenders, missing) = contenders();
    contenders.retain(|contender| !options.without.iter().any(|name| name == contender.name()));
    let rounds = if options.quick { 1 } else { options.rounds };
    let mut results = Results { outcomes: BTreeMap::new(), contenders, missing, rounds };
    let mut has_failed = false;
    for round in 0..rounds {
        for scenario in &scenarios {
            // Another one begins each round, so that nobody always follows the same.
            for turn in 0..results.contenders.len() {
                let contender = results.contenders[(round + turn) % results.contenders.len()].clone();
                let Some(outcome) = measure(&contender, scenario, options.quick)? else { continue };
                eprintln!("[{}/{rounds}] {} {}: {}", round + 1, scenario.name, contender.name(), brief(&outcome));
                has_failed |= contender.is_own() && is_failure(&outcome);
                results.outcomes.entry((scenario.name, contender.name())).or_default().insert(round, outcome);
            }
        }
    }
    println!("{}", table(&scenarios, &results));
    eprintln!("load at the end: {}", fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// `None` where the contender has no part in the scenario.
fn measure(contender: &Contender, scenario: &Scenario, is_quick: bool) -> Result<Option<Outcome>> {
    let folder = tempfile::tempdir()?;
    let n_upstreams = if contender.is_single() { 1 } else { scenario.n_upstreams };
    let mut upstreams = Vec::new();
    let mut servers = Vec::new();
    for number in 0..n_upstreams {
        let mut upstream = upstream(scenario, number)?;
        // Nobody to start it for: the direct client does so itself.
        if scenario.upstream == Transport::Http && *contender != Contender::Direct {
            let command = [&upstream.command[..], &["--http".to_owned()]].concat();
            let server = Process::start(&command, &BTreeMap::new(), false)?;
            upstream.url = Some(server.url(UPSTREAM_PATIENCE)?);
            servers.push(server);
        }
        upstreams.push(upstream);
    }
    let task = task(contender, scenario, &upstreams, folder.path(), is_quick)?;
    task.map(|task| load(&task)).transpose()
}

fn upstream(scenario: &Scenario, number: usize) -> Result<Upstream> {
    let mut command = vec![own_program()?, "echo".into()];
    for (option, value) in [
        ("--prefix", format!("u{number}")),
        ("--tools", scenario.n_tools.to_string()),
        ("--start-ms", scenario.start_ms.to_string()),
    ] {
        command.extend([option.to_owned(), value]);
    }
    Ok(Upstream { name: format!("up{number}"), command, url: None })
}

fn task(
    contender: &Contender,
    scenario: &Scenario,
    upstreams: &[Upstream],
    folder: &Path,
    is_quick: bool,
) -> Result<Option<Task>> {
    let launch = contender.launch(scenario, upstreams, folder)?;
    Ok(launch.map(|launch| Task {
        command: launch.command,
        env: launch.env,
        front: launch.front,
        skills: launch.skills,
        tools: (0..upstreams.len()).map(|number| format!("u{number}echo")).collect(),
        work: scenario.work,
        lanes: scenario.lanes,
        bytes: scenario.bytes,
        seconds: scenario.seconds * if is_quick { QUICK } else { 1.0 },
    }))
}

fn load(task: &Task) -> Result<Outcome> {
    let mut command = Command::new(own_program()?);
    command.arg("load").arg(serde_json::to_string(task)?).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output()?;
    Ok(serde_json::from_slice(&output.stdout).unwrap_or_else(|_| Outcome::Failed(format!("load: {}", output.status))))
}

/// Whether a call went wrong. What was not measured at all is said in the table.
fn is_failure(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Measured(sample) => sample.n_errors > 0,
        Outcome::Failed(_) => true,
        Outcome::NotMeasured(_) => false,
    }
}

fn brief(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Measured(sample) => format!("{:.0} µs, {} calls", sample.p50_us, sample.n_calls),
        Outcome::Failed(reason) => format!("failed: {reason}"),
        Outcome::NotMeasured(reason) => format!("not measured: {reason}"),
    }
}
