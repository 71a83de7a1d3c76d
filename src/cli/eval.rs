//! `gatekey eval`: how well search finds the right skills, on a labelled set.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    args::Eval,
    exit::{Exit, Failed},
    output::Output,
    setup::{block_on, prepare, start},
};
use crate::{
    catalog::Snapshot,
    config::Config,
    gateway::META_TOOLS,
    reload::Files,
    search::{MEASURES, mean, measures},
};

/// One line of a set.
#[derive(Deserialize)]
struct Question {
    query: String,
    /// Names of the right skills; none where no skill is right.
    gold: Vec<String>,
    /// Of the query.
    lang: Option<String>,
}

/// What is looked at of a ranking.
const DEPTH: usize = 10;

pub(super) fn run(args: &Eval, output: &Output) -> Result<Exit, Failed> {
    let questions = read(&args.set)?;
    let snapshot = catalogue(args)?;
    let unknown: Vec<&str> = questions
        .iter()
        .flat_map(|question| &question.gold)
        .map(String::as_str)
        .filter(|name| !snapshot.skills.contains_key(*name))
        .collect();
    if let Some(name) = unknown.first() {
        let message = format!("the set names {} skills that are not there, first `{name}`", unknown.len());
        return Err(Failed::new(Exit::Usage, message));
    }
    let mut groups: BTreeMap<String, Vec<[f64; MEASURES.len()]>> = BTreeMap::new();
    let (mut unanswered, mut confusions) = ([0_usize; 4], BTreeMap::new());
    for question in &questions {
        let found: Vec<&str> = snapshot
            .find_skills(&question.query)
            .iter()
            .filter(|(skill, _)| !skill.is_hidden)
            .take(DEPTH)
            .map(|(skill, _)| skill.name.as_str())
            .collect();
        let has_gold = usize::from(!question.gold.is_empty());
        unanswered[2 * has_gold] += 1;
        unanswered[2 * has_gold + 1] += usize::from(found.is_empty());
        if has_gold == 0 {
            continue;
        }
        let is_right = |name: &&str| question.gold.iter().any(|gold| gold == name);
        let places = found.iter().enumerate().filter(|(_, name)| is_right(name));
        let ranks: Vec<usize> = places.map(|(rank, _)| rank).collect();
        if let Some(first) = found.first().filter(|name| !is_right(name)) {
            *confusions.entry((question.gold[0].clone(), (*first).to_owned())).or_insert(0_usize) += 1;
        }
        let measured = measures(&ranks, question.gold.len());
        groups.entry("all".into()).or_default().push(measured);
        if let Some(lang) = &question.lang {
            groups.entry(lang.clone()).or_default().push(measured);
        }
    }
    let mut confusions: Vec<((String, String), usize)> = confusions.into_iter().collect();
    confusions.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    confusions.truncate(DEPTH);
    let groups: Vec<(String, usize, Map<String, Value>)> =
        groups.into_iter().map(|(name, values)| (name, values.len(), summary(&values))).collect();
    print(output, &groups, unanswered, &confusions);
    Ok(Exit::Done)
}

fn read(set: &Path) -> Result<Vec<Question>, Failed> {
    let text = std::fs::read_to_string(set)
        .map_err(|error| Failed::new(Exit::Usage, format!("failed to read `{}`: {error}", set.display())))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            let wrong = |error| Failed::new(Exit::Usage, format!("{}:{}: {error}", set.display(), index + 1));
            serde_json::from_str(line).map_err(wrong)
        })
        .collect()
}

fn catalogue(args: &Eval) -> Result<Arc<Snapshot>, Failed> {
    if !args.skills.is_empty() {
        let config = Config { skills: args.skills.clone(), ..Config::default() };
        return Ok(Arc::new(Files::read(config).snapshot(0, Vec::new(), META_TOOLS)));
    }
    let prepared = prepare(&args.setup)?;
    block_on(async {
        let app = start(prepared.config)?;
        app.all_answered().await;
        let snapshot = app.store.load();
        app.stop().await;
        Ok(snapshot)
    })?
}

/// Each measure with its mean and interval.
fn summary(values: &[[f64; MEASURES.len()]]) -> Map<String, Value> {
    let of = |(index, name): (usize, &&str)| {
        let column: Vec<f64> = values.iter().map(|row| row[index]).collect();
        let (mean, interval) = mean(&column);
        let rounded = |value: f64| (value * 10_000.0).round() / 10_000.0;
        ((*name).to_owned(), json!({"mean": rounded(mean), "interval": interval.map(rounded)}))
    };
    MEASURES.iter().enumerate().map(of).collect()
}

fn print(
    output: &Output,
    groups: &[(String, usize, Map<String, Value>)],
    [n_empty, n_seen, n_right, n_missed]: [usize; 4],
    confusions: &[((String, String), usize)],
) {
    let no_answer = json!({"queries": n_empty, "recognised": n_seen, "answerable": n_right, "false_alarms": n_missed});
    if output.is_json {
        let groups: Map<String, Value> = groups
            .iter()
            .map(|(name, n, measured)| {
                let mut group = measured.clone();
                group.insert("queries".into(), json!(n));
                (name.clone(), Value::Object(group))
            })
            .collect();
        let confusions: Vec<Value> = confusions
            .iter()
            .map(|((right, found), n)| json!({"right": right, "found": found, "queries": n}))
            .collect();
        let data = json!({"groups": groups, "no_answer": no_answer, "confusions": confusions});
        return output.envelope("eval", &data, &[]);
    }
    let head: Vec<&str> = ["set", "queries"].into_iter().chain(MEASURES).collect();
    let percent = |value: &Value| value.as_f64().map_or_else(String::new, |value| format!("{:.1}", value * 100.0));
    let cell = |measured: &Value| {
        let [low, high] = [0, 1].map(|end| percent(&measured["interval"][end]));
        format!("{} ({low}–{high})", percent(&measured["mean"]))
    };
    let row = |(name, n, measured): &(String, usize, Map<String, Value>)| {
        let cells = MEASURES.iter().map(|name| cell(&measured[*name]));
        [name.clone(), n.to_string()].into_iter().chain(cells).collect()
    };
    output.table(&head, &groups.iter().map(row).collect::<Vec<Vec<String>>>());
    if n_empty > 0 {
        output.note(&format!(
            "no right skill: {n_seen} of {n_empty} recognised; {n_missed} of {n_right} others went without an answer"
        ));
    }
    for ((right, found), n) in confusions {
        output.note(&format!("{n} × `{found}` first instead of `{right}`"));
    }
}
