//! `gatekey eval`: how well search finds the right skills, on a labelled set.

use std::{collections::BTreeMap, path::Path};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    args::Eval,
    eval_catalogue::Catalogue,
    exit::{Exit, Failed},
    output::{Output, count},
};
use crate::search::{MEASURES, mean, measures};

/// One line of a set.
#[derive(Deserialize)]
struct Question {
    query: String,
    /// Names of the right skills; none where no skill is right.
    gold: Vec<String>,
    /// Names of the tools that are needed.
    #[serde(default)]
    gold_tools: Vec<String>,
    /// Of the query.
    lang: Option<String>,
}

/// What came of a question.
struct Answer {
    /// Of a question with a right skill.
    measured: Option<[f64; MEASURES.len()]>,
    lang: Option<String>,
    /// Whether nothing was found that fits.
    is_empty: bool,
    /// Shares of the tools needed that the first skill opens, and that the first five do.
    opened: Option<[f64; 2]>,
    /// A right skill, and the wrong one that came first.
    confusion: Option<(String, String)>,
}

/// Wrong skills that are listed.
const CONFUSIONS: usize = 10;
/// How far down is looked.
const DEPTH: usize = 10;

pub(super) fn run(args: &Eval, output: &Output) -> Result<Exit, Failed> {
    let questions = read::<Question>(&args.set)?;
    let catalogue = Catalogue::of(args, args.setup.config.as_deref(), args.lexical)?;
    let answers = ask(&questions, &catalogue)?;
    let mut data = summary(&answers);
    let query = questions.first().map_or("", |question| question.query.as_str());
    data.insert("ranked_by".into(), catalogue.ranked_by(query).into());
    for (member, name) in ["encoder", "reranker"].into_iter().zip(catalogue.models()) {
        data.insert(member.into(), name.into());
    }
    if let Some(other) = &args.against {
        let is_lexical = other.as_os_str() == "lexical";
        let other = Catalogue::of(args, (!is_lexical).then_some(other), is_lexical)?;
        data.insert("against".into(), compared(&answers, &ask(&questions, &other)?, &questions));
    }
    if output.is_json {
        output.envelope("eval", &data.into(), &[]);
    } else {
        print(output, &data);
    }
    Ok(Exit::Done)
}

/// Reads a file of one JSON value a line.
pub(super) fn read<T: for<'de> Deserialize<'de>>(file: &Path) -> Result<Vec<T>, Failed> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failed::new(Exit::Usage, format!("failed to read `{}`: {error}", file.display())))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            let wrong = |error| Failed::new(Exit::Usage, format!("{}:{}: {error}", file.display(), index + 1));
            serde_json::from_str(line).map_err(wrong)
        })
        .collect()
}

fn ask(questions: &[Question], catalogue: &Catalogue) -> Result<Vec<Answer>, Failed> {
    let is_unknown = |name: &&String| !catalogue.names.contains(name);
    let unknown: Vec<&String> = questions.iter().flat_map(|question| &question.gold).filter(is_unknown).collect();
    if let Some(name) = unknown.first() {
        let message = format!("the set names {} that are not there, first `{name}`", count(unknown.len(), "skill"));
        return Err(Failed::new(Exit::Usage, message));
    }
    Ok(questions.iter().map(|question| answer(question, catalogue)).collect())
}

fn answer(question: &Question, catalogue: &Catalogue) -> Answer {
    let found = catalogue.find(&question.query);
    let positions: Vec<usize> = found.positions.into_iter().take(DEPTH).collect();
    let name = |position: usize| &catalogue.names[position];
    let is_right = |position: usize| question.gold.contains(name(position));
    let places = positions.iter().enumerate().filter(|(_, position)| is_right(**position));
    let ranks: Vec<usize> = places.map(|(rank, _)| rank).collect();
    let right = question.gold.first();
    let opened = |most: usize| {
        let is_opened = |tool: &&String| positions.iter().take(most).any(|skill| catalogue.opens(*skill, tool));
        question.gold_tools.iter().filter(is_opened).count() as f64 / question.gold_tools.len() as f64
    };
    Answer {
        measured: right.map(|_| measures(&ranks, question.gold.len())),
        lang: question.lang.clone(),
        is_empty: positions.is_empty() || found.is_doubtful,
        opened: (!question.gold_tools.is_empty()).then(|| [1, 5].map(opened)),
        confusion: right
            .zip(positions.first().filter(|first| !is_right(**first)))
            .map(|(right, first)| (right.clone(), name(*first).clone())),
    }
}

/// Everything that is reported, with means as numbers and intervals beside them.
fn summary(answers: &[Answer]) -> Map<String, Value> {
    let mut data = means(answers.iter().filter_map(|answer| answer.measured));
    let mut languages: BTreeMap<&str, Vec<[f64; MEASURES.len()]>> = BTreeMap::new();
    for (lang, measured) in answers.iter().filter_map(|answer| answer.lang.as_deref().zip(answer.measured)) {
        languages.entry(lang).or_default().push(measured);
    }
    let languages: Map<String, Value> =
        languages.into_iter().map(|(lang, values)| (lang.to_owned(), means(values.into_iter()).into())).collect();
    data.insert("languages".into(), languages.into());
    data.insert("no_answer".into(), no_answer(answers));
    let opened: Vec<[f64; 2]> = answers.iter().filter_map(|answer| answer.opened).collect();
    if !opened.is_empty() {
        let of = |column: usize| rounded(mean(&opened.iter().map(|row| row[column]).collect::<Vec<_>>()).0);
        data.insert("tools".into(), json!({"queries": opened.len(), "opened_by_first": of(0), "opened_by_5": of(1)}));
    }
    let mut confusions: BTreeMap<&(String, String), usize> = BTreeMap::new();
    for confusion in answers.iter().filter_map(|answer| answer.confusion.as_ref()) {
        *confusions.entry(confusion).or_default() += 1;
    }
    let mut confusions: Vec<(&(String, String), usize)> = confusions.into_iter().collect();
    confusions.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let listed = confusions.into_iter().take(CONFUSIONS);
    let listed = listed.map(|((right, found), n)| json!({"right": right, "found": found, "queries": n}));
    data.insert("confusions".into(), listed.collect());
    data
}

/// Of the questions without a right skill, how many were answered so; and of the others.
fn no_answer(answers: &[Answer]) -> Value {
    let count = |has_right: bool, is_empty: bool| {
        let is_it = |answer: &&Answer| answer.measured.is_some() == has_right && answer.is_empty == is_empty;
        answers.iter().filter(is_it).count()
    };
    let (recognised, alarms) = (count(false, true), count(true, true));
    let share = |n: usize, of: usize| if of == 0 { Value::Null } else { rounded(n as f64 / of as f64).into() };
    let (n_empty, n_right) = (recognised + count(false, false), alarms + count(true, false));
    json!({
        "queries": n_empty, "recognised": recognised, "recall": share(recognised, n_empty),
        "precision": share(recognised, recognised + alarms),
        "answerable": n_right, "false_alarms": alarms, "false_alarm_rate": share(alarms, n_right),
    })
}

/// The mean of each measure by its name, the number of queries, and the intervals.
fn means(values: impl Iterator<Item = [f64; MEASURES.len()]>) -> Map<String, Value> {
    let values: Vec<[f64; MEASURES.len()]> = values.collect();
    let mut data = Map::from_iter([("queries".to_owned(), json!(values.len()))]);
    let mut intervals = Map::new();
    for (index, name) in MEASURES.iter().enumerate() {
        let (mean, interval) = mean(&values.iter().map(|row| row[index]).collect::<Vec<_>>());
        data.insert((*name).to_owned(), rounded(mean).into());
        intervals.insert((*name).to_owned(), json!(interval.map(rounded)));
    }
    data.insert("intervals".into(), intervals.into());
    data
}

/// What another configuration makes of the same questions: its means, the differences to it with their intervals, and the
/// questions whose first right skill is elsewhere.
fn compared(own: &[Answer], other: &[Answer], questions: &[Question]) -> Value {
    let mut data = means(other.iter().filter_map(|answer| answer.measured));
    let pairs: Vec<_> = own.iter().zip(other).filter_map(|(own, other)| own.measured.zip(other.measured)).collect();
    let difference = |(index, name): (usize, &&str)| {
        let (mean, interval) = mean(&pairs.iter().map(|(own, other)| own[index] - other[index]).collect::<Vec<_>>());
        ((*name).to_owned(), json!({"mean": rounded(mean), "interval": interval.map(rounded)}))
    };
    data.insert("difference".into(), MEASURES.iter().enumerate().map(difference).collect::<Map<_, _>>().into());
    let reciprocal = |answer: &Answer| answer.measured.map(|[.., reciprocal, _]| reciprocal);
    let moved = |is_better: fn(f64, f64) -> bool| -> Value {
        let all = own.iter().zip(other).zip(questions);
        let moved = all
            .filter(|((own, other), _)| reciprocal(own).zip(reciprocal(other)).is_some_and(|(a, b)| is_better(a, b)));
        moved.map(|(_, question)| Value::from(question.query.as_str())).collect()
    };
    data.insert("better".into(), moved(|own, other| own > other));
    data.insert("worse".into(), moved(|own, other| own < other));
    data.into()
}

fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

fn print(output: &Output, data: &Map<String, Value>) {
    let percent = |value: &Value| value.as_f64().map_or_else(String::new, |value| format!("{:.1}", value * 100.0));
    let row = |name: &str, group: &Value| -> Vec<String> {
        let cell = |measure: &&str| {
            let [low, high] = [0, 1].map(|end| percent(&group["intervals"][measure][end]));
            format!("{} ({low}–{high})", percent(&group[*measure]))
        };
        [name.to_owned(), group["queries"].to_string()].into_iter().chain(MEASURES.iter().map(cell)).collect()
    };
    let all = Value::Object(data.clone());
    let mut rows = vec![row("all", &all)];
    rows.extend(all["languages"].as_object().into_iter().flatten().map(|(lang, group)| row(lang, group)));
    if all["against"].is_object() {
        rows.push(row("against", &all["against"]));
        let cell = |measure: &&str| {
            let difference = &all["against"]["difference"][measure];
            let [low, high] = [0, 1].map(|end| percent(&difference["interval"][end]));
            format!("{} ({low}–{high})", percent(&difference["mean"]))
        };
        rows.push([String::from("difference"), String::new()].into_iter().chain(MEASURES.iter().map(cell)).collect());
    }
    let head: Vec<&str> = ["set", "queries"].into_iter().chain(MEASURES).collect();
    output.table(&head, &rows);
    let models = ["encoder", "reranker"].map(|member| all[member].as_str().map(|name| format!("; {member} `{name}`")));
    let models = models.map(Option::unwrap_or_default).concat();
    output.note(&format!("ranked by {}{models}", all["ranked_by"].as_str().unwrap_or_default()));
    let counts = &all["no_answer"];
    output.note(&format!(
        "no right skill: {} of {} recognised; {} of {} others went without an answer",
        counts["recognised"], counts["queries"], counts["false_alarms"], counts["answerable"]
    ));
    if let Some(tools) = data.get("tools") {
        let [first, five] = ["opened_by_first", "opened_by_5"].map(|share| percent(&tools[share]));
        output.note(&format!("of the tools needed, the first skill opens {first} %, the first five {five} %"));
    }
    for confusion in all["confusions"].as_array().into_iter().flatten() {
        let [right, found] = ["right", "found"].map(|name| confusion[name].as_str().unwrap_or_default());
        output.note(&format!("{} × `{found}` first instead of `{right}`", confusion["queries"]));
    }
}
