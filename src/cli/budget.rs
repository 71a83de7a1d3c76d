//! `gatekey budget`: what every set of skills costs in tokens, in one of several forms.

use std::{path::Path, sync::Arc};

use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::{
    args::{self, BudgetForm, CountedBy},
    exit::{Exit, Failed},
    lock,
    output::{Output, Progress, count},
    setup::{Looked, Prepared, block_on, look, prepare, sent_file},
};
use crate::{
    catalog::Snapshot,
    config::Environment,
    files,
    lock::Lock,
    model::{
        diagnostic::Diagnostic,
        name::{SkillName, did_you_mean},
        principal::Principal,
    },
    report::{Budget, Plan, Source, Wanted, budget, compare, csv, html, markdown, measured, said, text},
    session::{SentRecord, read_sent, servers_digest},
    tokens::Tokenizer,
    wire::era::Era,
};

pub(super) fn run(args: &args::Budget, output: &Output) -> Result<Exit, Failed> {
    let progress = Progress::start();
    let form = form(args, *output);
    if args.compare.is_some() && ![BudgetForm::Table, BudgetForm::Markdown].contains(&form) {
        return Err(
            Failed::new(Exit::Usage, "`--compare` prints Markdown only").hint("leave `--format` and `--json` away")
        );
    }
    let old = args.compare.as_deref().map(read_json).transpose()?;
    let seen = see(args, &progress)?;
    let budget = counted(args, &seen, &progress)?;
    drop(progress);
    let shown = match (&old, form) {
        (Some(old), _) => {
            let file = args.compare.as_deref().unwrap_or(Path::new(""));
            compare(old, &budget)
                .map_err(|error| Failed::new(Exit::Usage, format!("failed to read `{}`: {error}", file.display())))?
        }
        (_, BudgetForm::Table) => text(&budget),
        (_, BudgetForm::Markdown) => markdown(&budget),
        (_, BudgetForm::Csv) => csv(&budget),
        (_, BudgetForm::Html) => html(&budget),
        (_, BudgetForm::Json) => {
            Output::enveloped("report.budget", seen.snapshot.generation, &json!(budget), &seen.findings)
        }
    };
    match &args.output {
        Some(file) => files::write(&files::target(file), shown.as_bytes())
            .map_err(|error| Failed::new(Exit::Usage, format!("failed to write `{}`: {error}", file.display())))?,
        None => output.data(&shown),
    }
    if !output.is_json {
        output.findings(&seen.findings);
        if budget.measured.as_ref().is_some_and(|measured| measured.sessions == 0) {
            output.note("no proxy of these servers has written down what it sent: run one, and end its session");
        }
    }
    Ok(if seen.has_failed { Exit::Upstream } else { Exit::Done })
}

fn form(args: &args::Budget, output: Output) -> BudgetForm {
    if output.is_json { BudgetForm::Json } else { args.format }
}

/// What the report is about.
struct Seen {
    snapshot: Arc<Snapshot>,
    principal: Principal,
    /// Of which somebody reading the numbers must know.
    findings: Vec<Diagnostic>,
    source: Source,
    taken_at: String,
    has_failed: bool,
}

/// The only place that knows where the definitions come from.
fn see(args: &args::Budget, progress: &Progress) -> Result<Seen, Failed> {
    let Prepared { config, principal, .. } = prepare(&args.setup)?;
    let (looked, source, taken_at) = if args.offline {
        let file = lock::file_of(&args.recorded, &config);
        let known = Lock::read(&file).map_err(|error| lock::unreadable(&file, &error))?;
        let newest = known.upstreams.values().map(|upstream| upstream.recorded.clone()).max().unwrap_or_default();
        (lock::look_offline(config, &known, &file), Source::Lock, newest)
    } else {
        progress.tell(format!("asking {}", count(config.upstreams.len(), "upstream")));
        (look(config)?, Source::Live, now())
    };
    let Looked { mut findings, snapshot, has_failed, .. } = looked;
    // What is not there is not counted; all else is `check`'s to tell.
    findings.retain(|finding| ["upstream-unreachable", "lock-missing"].contains(&finding.code));
    Ok(Seen { snapshot, principal, findings, source, taken_at, has_failed })
}

fn counted(args: &args::Budget, seen: &Seen, progress: &Progress) -> Result<Budget, Failed> {
    let snapshot = &seen.snapshot;
    let wanted = Wanted {
        tokenizer: match args.tokenizer {
            CountedBy::O200kBase => Tokenizer::O200kBase,
            CountedBy::Cl100kBase => Tokenizer::Cl100kBase,
            CountedBy::Bytes => Tokenizer::Bytes,
        },
        sets: args.sets.iter().map(|set| chosen(set, snapshot, &seen.principal)).collect::<Result<_, _>>()?,
        window: args.window,
        top: args.top,
        plan: Plan {
            steps: args.steps,
            loads: args.loads,
            result_tokens: args.result,
            call_tokens: args.call,
            cache_read: args.cache_read,
        },
        source: seen.source,
        taken_at: seen.taken_at.clone(),
    };
    let said = block_on(said(snapshot, &seen.principal))?.map_err(|error| Failed::new(Exit::Internal, error))?;
    let on_progress = |n_done: usize, n_all: usize| progress.tell(format!("counted {n_done} of {n_all} texts"));
    let mut budget = budget(snapshot, &seen.principal, &said, &wanted, &on_progress);
    if args.measured {
        budget.measured = Some(measured(&sent(snapshot)?, &said, &budget, &rfc3339));
    }
    Ok(budget)
}

/// What costs over `most` tokens: skills with all of their tools in the list, and what a fresh client gets.
pub(super) fn over(snapshot: &Arc<Snapshot>, principal: &Principal, most: usize) -> Result<Vec<Diagnostic>, Failed> {
    let said = block_on(said(snapshot, principal))?.map_err(|error| Failed::new(Exit::Internal, error))?;
    let wanted = Wanted {
        tokenizer: Tokenizer::O200kBase,
        sets: Vec::new(),
        window: 0,
        top: 0,
        plan: Plan { steps: 0, loads: 0, result_tokens: 0, call_tokens: 0, cache_read: 0.0 },
        source: Source::Live,
        taken_at: String::new(),
    };
    let budget = budget(snapshot, principal, &said, &wanted, &|_, _| ());
    let mut found = Vec::new();
    for start in budget.start.iter().filter(|start| start.total > most) {
        let era = if start.era == Era::Modern { "newer" } else { "older" };
        let message = format!("a fresh client of the {era} protocol gets {} tokens, over {most}", start.total);
        let hint = "lower `catalog-budget-tokens`, or let fewer tools be open at all times";
        found.push(Diagnostic::warning("budget-start", message).hint(hint));
    }
    for row in budget.rows.iter().filter(|row| row.list_tokens > most) {
        // Not the sets without a skill or with all of them: nobody loads those.
        let Some(skill) = snapshot.skills.get(row.set.as_str()) else { continue };
        let message = format!("`{}` has {} tokens in the list, over {most}", skill.name, row.list_tokens);
        let finding = Diagnostic::warning("budget-skill", message).hint("split it, or open fewer tools with it");
        let place = snapshot.map.as_ref().and_then(|map| map.skills.get(&skill.name)).map(|(place, _)| place.clone());
        found.push(match place {
            Some(place) => finding.at(place),
            None => finding,
        });
    }
    Ok(found)
}

/// What running proxies of the same servers wrote down.
fn sent(snapshot: &Snapshot) -> Result<Vec<SentRecord>, Failed> {
    let Some(file) = sent_file(&Environment::of_process()) else { return Ok(Vec::new()) };
    let mut records = read_sent(&file)
        .map_err(|error| Failed::new(Exit::Usage, format!("failed to read `{}`: {error}", file.display())))?;
    let servers = servers_digest(snapshot.config.upstreams.iter().map(|upstream| upstream.name.as_str()));
    records.retain(|record| record.servers == servers);
    Ok(records)
}

/// The skills of `a+b`, which the caller must be able to load.
fn chosen(set: &str, snapshot: &Snapshot, principal: &Principal) -> Result<Vec<SkillName>, Failed> {
    let mut skills = Vec::new();
    for name in set.split('+').map(str::trim) {
        let is_core = snapshot.core.as_ref().is_some_and(|core| core.as_str() == name);
        match snapshot.skills.get(name).filter(|skill| snapshot.knows_skill(skill, principal)) {
            // It is loaded as it is.
            Some(_) if is_core => {}
            Some(skill) if skills.contains(&skill.name) => {}
            Some(skill) => skills.push(skill.name.clone()),
            None => {
                let failed = Failed::new(Exit::Usage, format!("`--set {set}`: there is no skill `{name}`"));
                let known = || snapshot.skills.keys().map(SkillName::as_str);
                return Err(match did_you_mean(name, known()).first() {
                    Some(close) => failed.hint(format!("did you mean `{close}`?")),
                    None => failed.hint("`gatekey skills list` shows them all"),
                });
            }
        }
    }
    Ok(skills)
}

/// In RFC 3339, to the second; `SOURCE_DATE_EPOCH` makes reports reproducible.
pub(super) fn now() -> String {
    let fixed = Environment::of_process().value("SOURCE_DATE_EPOCH").and_then(|seconds| seconds.parse().ok());
    rfc3339(fixed.unwrap_or_else(|| OffsetDateTime::now_utc().unix_timestamp()))
}

fn rfc3339(seconds: i64) -> String {
    let date = OffsetDateTime::from_unix_timestamp(seconds).ok();
    date.and_then(|date| date.format(&Rfc3339).ok()).unwrap_or_default()
}

fn read_json(file: &Path) -> Result<Value, Failed> {
    let failed = |error: &dyn std::fmt::Display| {
        Failed::new(Exit::Usage, format!("failed to read `{}`: {error}", file.display()))
    };
    let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
    serde_json::from_str(&text).map_err(|error| failed(&error).hint("make one with `gatekey budget --json`"))
}
