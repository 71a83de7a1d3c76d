//! `gatekey index`: the catalogue in a file that clients load, once or kept fresh, here and beside `gatekey proxy`.

use std::{error::Error as _, path::PathBuf};

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{
    args::Index,
    exit::{Exit, Failed},
    index_file::{IndexError, Outcome, put, whole},
    output::{Output, count},
    setup::{Looked, Prepared, block_on, config_file, look, prepare_from},
    signals::Signals,
};
use crate::{
    app::App,
    catalog::Snapshot,
    config::{Config, Watch},
    gateway::{INDEX_MARKERS, MiniIndex, mini_index},
    model::{
        diagnostic::{Diagnostic, Severity},
        principal::Principal,
    },
    reload::Again,
    wire::era::Era,
};

/// Where the index goes unless somebody says otherwise.
const FILE: &str = "SKILLS-INDEX.md";

pub(super) fn run(args: &Index, output: &Output) -> Result<Exit, Failed> {
    let prepared = prepared(args)?;
    if args.watch { watch(args, prepared, *output) } else { once(args, prepared, *output) }
}

/// Reads the config, which needs no upstreams here; given folders take the place of its own.
fn prepared(args: &Index) -> Result<Prepared, Failed> {
    // Folders stand for themselves: a config is only looked for where none are given.
    let file = if args.skills.is_empty() { config_file(&args.setup) } else { args.setup.config.clone() };
    let Prepared { mut config, findings, principal, again } = prepare_from(&args.setup, file)?;
    let folders = args.skills.clone();
    let adjust = move |config: &mut Config| {
        if !folders.is_empty() {
            config.skills = folders.iter().cloned().map(Into::into).collect();
        }
        if config.watch == Watch::Off {
            // Whoever says `--watch` means it.
            config.watch = Watch::Auto;
        }
    };
    adjust(&mut config);
    if config.skills.is_empty() && config.upstreams.is_empty() {
        let hint = "name a folder with `--skills DIR`, or list `skills` in `gatekey.toml`";
        return Err(Failed::new(Exit::Usage, "there is neither a folder with skills nor an upstream").hint(hint));
    }
    let Again { file, findings: known, read } = again.unwrap_or_else(Again::without_config);
    let read = move |text| {
        let mut loaded = read(text);
        loaded.config.iter_mut().for_each(&adjust);
        loaded
    };
    let again = Some(Again { file, findings: known, read: Box::new(read) });
    Ok(Prepared { config, findings, principal, again })
}

fn once(args: &Index, prepared: Prepared, output: Output) -> Result<Exit, Failed> {
    let Looked { mut findings, snapshot, has_failed, .. } = look(prepared.config)?;
    findings.extend(prepared.findings);
    let written = Written::write(args, &snapshot, &prepared.principal, &findings)?;
    written.show(output, &findings);
    Ok(if has_failed { Exit::Upstream } else { Exit::Done })
}

fn watch(args: &Index, prepared: Prepared, output: Output) -> Result<Exit, Failed> {
    let Prepared { config, findings: _, principal, again } = prepared;
    block_on(async {
        let mut signals = Signals::new()?;
        let mut app = App::start(config, again)?;
        app.pool.introduce(Era::Modern, "{}");
        // With those of the config.
        output.findings(&of_weight(&app.files().findings));
        let (failing, failed) = oneshot::channel();
        // Only what fails at once ends us; later the file may be in somebody's hands.
        let mut failing = Some(failing);
        let args = args.clone();
        let mut last = None;
        app.on_snapshots(move |snapshot| {
            let outcome = Written::write(&args, snapshot, &principal, &[]);
            let is_first = failing.is_some();
            match (outcome, failing.take()) {
                (Ok(written), _) => {
                    if is_first || written.outcome != Some(Outcome::Unchanged) {
                        written.show(output, &[]);
                    }
                    last = None;
                }
                // Nobody waits only where we are ending anyway.
                (Err(error), Some(failing)) => drop(failing.send(error)),
                (Err(error), None) if last.as_ref() != Some(&error.message) => {
                    output.error(&error);
                    last = Some(error.message);
                }
                (Err(_), None) => {}
            }
        });
        let ended = tokio::select! {
            exit = signals.next() => Ok(exit),
            Ok(error) = failed => Err(error),
        };
        tokio::select! {
            () = app.stop() => ended,
            // The second signal ends us at once; the guard ends what is left.
            exit = signals.next() => Ok(exit),
        }
    })?
}

/// Keeps the file of the config fresh for as long as it is called with what is new. What goes wrong costs nobody anything
/// and is said once.
pub(super) fn keeper(principal: Principal) -> impl FnMut(&Snapshot) + Send {
    let mut last: Option<String> = None;
    move |snapshot| {
        let options = &snapshot.config.index;
        let Some(file) = &options.file else { return };
        let index = mini_index(snapshot, &principal, options.budget_tokens);
        match put(file, &index.text) {
            Ok(outcome) => {
                last = None;
                let (outcome, n_skills) = (outcome.as_str(), index.n_skills);
                tracing::debug!(file = %file.display(), outcome, n_skills, "the index is in its file");
            }
            Err(error) => {
                let error = reason(&error);
                if last.as_ref() != Some(&error) {
                    tracing::warn!(%error, "the index is not kept fresh");
                }
                last = Some(error);
            }
        }
    }
}

/// An index that was made, and what became of it.
struct Written {
    index: MiniIndex,
    budget_tokens: usize,
    /// Where it is; printed where nowhere.
    file: PathBuf,
    outcome: Option<Outcome>,
}

impl Written {
    fn write(
        args: &Index,
        snapshot: &Snapshot,
        principal: &Principal,
        findings: &[Diagnostic],
    ) -> Result<Self, Failed> {
        let options = &snapshot.config.index;
        let budget_tokens = args.budget.unwrap_or(options.budget_tokens);
        let file = args.output.clone().or_else(|| options.file.clone()).unwrap_or_else(|| FILE.into());
        let index = mini_index(snapshot, principal, budget_tokens);
        let is_lost = |finding: &&Diagnostic| finding.is_error() && finding.code.starts_with("skill");
        if index.n_skills == 0 && findings.iter().any(|finding| is_lost(&finding)) {
            let findings = findings.iter().filter(is_lost).cloned().collect();
            return Err(Failed { findings, ..Failed::new(Exit::Invalid, "there is no skill that can be read") });
        }
        let outcome = if args.stdout { None } else { Some(put(&file, &index.text).map_err(|error| failed(&error))?) };
        Ok(Self { index, budget_tokens, file, outcome })
    }

    fn show(&self, output: Output, findings: &[Diagnostic]) {
        let Self { index, budget_tokens, file, outcome } = self;
        if output.is_json {
            output.envelope("index", &self.json(), findings);
            return;
        }
        match outcome {
            None => output.data(&whole(&index.text)),
            Some(outcome) => output.data(&format!(
                "{}: {}, {}, {}, {} of {budget_tokens} tokens (estimated)",
                file.display(),
                outcome.as_str(),
                count(index.n_skills, "skill"),
                index.level,
                index.n_tokens
            )),
        }
        output.findings(&of_weight(findings));
    }

    fn json(&self) -> Value {
        let Self { index, budget_tokens, file, outcome } = self;
        let mut data = json!({"outcome": outcome.map_or("printed", Outcome::as_str), "skills": index.n_skills,
            "level": index.level, "tokens": index.n_tokens, "budget_tokens": budget_tokens});
        let (member, value) = match outcome {
            Some(_) => ("file", json!(file)),
            None => ("text", json!(whole(&index.text))),
        };
        data[member] = value;
        data
    }
}

/// Notes are for `gatekey check`.
fn of_weight(findings: &[Diagnostic]) -> Vec<Diagnostic> {
    findings.iter().filter(|finding| finding.severity != Severity::Note).cloned().collect()
}

fn failed(error: &IndexError) -> Failed {
    let [start, end] = INDEX_MARKERS;
    match error {
        IndexError::NoPlace { .. } => Failed::new(Exit::Usage, reason(error)).hint(format!(
            "write the lines `{start}` and `{end}` where it should stand, or name another file with `--output`"
        )),
        IndexError::Markers { .. } => Failed::new(Exit::Invalid, reason(error))
            .hint(format!("`{start}` and after it `{end}` must stand there once, each on a line of its own")),
        IndexError::Read { .. } | IndexError::Write { .. } => Failed::new(Exit::Usage, reason(error)),
    }
}

/// What went wrong, and why.
fn reason(error: &IndexError) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
