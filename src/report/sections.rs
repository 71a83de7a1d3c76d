//! A budget as titled tables, which text, Markdown and HTML then show in their own ways: every form says the same.

use super::{
    budget::Budget,
    measured::MeasuredPart,
    surface::Surface,
    task::{Cost, Task},
};
use crate::wire::era::Era;

/// A titled table, and what is to be known about it.
pub(super) struct Section {
    pub(super) title: String,
    /// Name of each column, and whether it holds numbers.
    pub(super) head: Vec<(&'static str, bool)>,
    pub(super) rows: Vec<Vec<String>>,
    /// Sentences.
    pub(super) notes: Vec<String>,
}

/// Tasks that are shown; the JSON has all.
const TASKS: usize = 20;

/// The line that every form has: by what was counted, from where, when.
pub(super) fn provenance(budget: &Budget) -> String {
    let estimate = if budget.is_estimate { " ÷ 4 (an estimate, no tokenizer)" } else { "" };
    format!("Tokens by {}{estimate}, {}, {}.", budget.tokenizer, budget.source.as_str(), budget.taken_at)
}

/// All tables of a budget.
pub(super) fn sections(budget: &Budget) -> Vec<Section> {
    let mut all = vec![sets(budget), start(budget), tasks(budget), tools(budget), parameters(budget)];
    all.extend(measured(budget));
    all.retain(|section| !section.rows.is_empty());
    all
}

fn sets(budget: &Budget) -> Section {
    let row = |row: &super::Row| {
        vec![
            row.set.clone(),
            row.tools.to_string(),
            thousands(row.list_tokens),
            percent(row.saved_percent),
            percent(row.window_percent),
            thousands(row.dispatch_tokens),
            percent(row.dispatch_saved_percent),
            row.break_even_calls.map_or_else(|| "–".into(), |calls| format!("{calls:.1}")),
        ]
    };
    let full = budget.full;
    Section {
        title: "What each set of skills costs".into(),
        head: vec![
            ("set", false),
            ("tools", true),
            ("in the list", true),
            ("saved", true),
            ("of window", true),
            ("by key", true),
            ("saved", true),
            ("break-even", true),
        ],
        rows: budget.rows.iter().map(row).collect(),
        notes: vec![
            format!(
                "Full registry, as without gatekey: {} tools, {} tokens, {} of a window of {}.",
                full.tools,
                thousands(full.tokens),
                percent(full.window_percent),
                thousands(budget.window)
            ),
            "In the list: the definitions of all tools then open, as `tools/list` has them. By key: those always open, and the results of `skill_load` with playbook and signatures.".into(),
            "Break-even: loads = (full registry − start of a modern client) ÷ mean result of a load; after so many, listing everything would have cost no more.".into(),
        ],
    }
}

fn start(budget: &Budget) -> Section {
    let row = |surface: &Surface| {
        vec![
            era(surface.era).into(),
            format!("{} ({} tools)", thousands(surface.meta_tools), surface.n_meta_tools),
            thousands(surface.catalogue),
            thousands(surface.core_body),
            format!("{} ({} tools)", thousands(surface.core_tools), surface.n_core_tools),
            thousands(surface.list),
            percent(surface.list_percent_of_full),
            thousands(surface.instructions),
            thousands(surface.total),
            percent(surface.percent_of_full),
        ]
    };
    Section {
        title: "What a fresh client gets".into(),
        head: vec![
            ("start", false),
            ("meta-tools", true),
            ("catalogue", true),
            ("core skill", true),
            ("core tools", true),
            ("list", true),
            ("of full", true),
            ("instructions", true),
            ("sum", true),
            ("of full", true),
        ],
        rows: budget.start.iter().map(row).collect(),
        notes: vec!["Not every client passes the instructions on; they repeat the catalogue for those that do.".into()],
    }
}

fn tasks(budget: &Budget) -> Section {
    let plan = budget.plan;
    let row = |task: &Task| {
        let [plain, cached] = Budget::shares(task);
        let costs = |cost: &Cost| [thousands(cost.sent), thousands(whole(cost.with_cache))];
        let ways = [&task.direct, &task.dispatch, &task.list].into_iter().flat_map(costs);
        let mut row = vec![task.set.clone(), task.discovery_calls.to_string()];
        row.extend(ways);
        row.push(format!("{} / {}", percent(plain), percent(cached)));
        row
    };
    let mut notes = vec![
        format!(
            "Inputs: {} calls of tools, {} skill{} loaded before (in the row `mean`; a set loads its own), {} tokens a result, {} a call and {} more by key, a cached token at {} of the price.",
            plan.steps,
            plan.loads,
            if plan.loads == 1 { "" } else { "s" },
            plan.result_tokens,
            plan.call_tokens,
            budget.call_overhead_tokens,
            plan.cache_read
        ),
        "Every request sends the menu and all that came before: sent = Σ over requests (menu + calls and results so far), one request a call and one for the answer. With a prompt cache: new tokens + cached ones × their price; a list that changes makes the whole request new.".into(),
        "The last column is without and with a cache. Not in it: the system prompt, the user's words and the model's own, which are the same in each way.".into(),
    ];
    if budget.tasks.len() > TASKS {
        notes.push(format!("{} more tasks are in the JSON.", budget.tasks.len() - TASKS));
    }
    Section {
        title: format!("What a task of {} calls sends to the model", plan.steps),
        head: vec![
            ("skills", false),
            ("loads", true),
            ("all listed", true),
            ("cached", true),
            ("by key", true),
            ("cached", true),
            ("growing list", true),
            ("cached", true),
            ("by key ÷ all listed", true),
        ],
        rows: budget.tasks.iter().take(TASKS).map(row).collect(),
        notes,
    }
}

fn tools(budget: &Budget) -> Section {
    let row = |tool: &super::HeavyTool| {
        vec![tool.name.clone(), tool.upstream.clone(), thousands(tool.tokens), percent(tool.percent_of_full)]
    };
    Section {
        title: "The heaviest tools".into(),
        head: vec![("tool", false), ("upstream", false), ("tokens", true), ("of full", true)],
        rows: budget.heaviest_tools.iter().map(row).collect(),
        notes: vec![],
    }
}

fn parameters(budget: &Budget) -> Section {
    let row = |parameter: &super::HeavyParameter| {
        vec![
            parameter.name.clone(),
            thousands(parameter.tokens),
            parameter.n_tools.to_string(),
            thousands(parameter.total_tokens),
            parameter.example.clone(),
        ]
    };
    Section {
        title: "The heaviest parameters".into(),
        head: vec![("parameter", false), ("tokens", true), ("in tools", true), ("together", true), ("such as", false)],
        rows: budget.heaviest_parameters.iter().map(row).collect(),
        notes: vec![],
    }
}

fn measured(budget: &Budget) -> Option<Section> {
    let measured = budget.measured.as_ref()?;
    let row = |part: &MeasuredPart| {
        vec![
            part.what.to_owned(),
            thousands(part.n),
            thousands(part.bytes),
            thousands(part.tokens),
            thousands(part.mean_tokens),
            part.estimate.map_or_else(|| "–".into(), thousands),
        ]
    };
    let between = match (&measured.since, &measured.until) {
        (Some(since), Some(until)) => format!(" between {since} and {until}"),
        _ => String::new(),
    };
    Some(Section {
        title: "What running proxies really sent".into(),
        head: vec![("what", false), ("times", true), ("bytes", true), ("tokens", true), ("each", true), ("estimate", true)],
        rows: measured.parts.iter().map(row).collect(),
        notes: vec![
            format!("{} sessions of these servers{between}.", measured.sessions),
            "Only bytes are kept. They are told as tokens by the ratio that the same texts have in this report: instructions, list and loads by their own, all else by the definitions'.".into(),
        ],
    })
}

fn era(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy client",
        Era::Modern => "modern client",
    }
}

pub(super) fn percent(number: f64) -> String {
    format!("{number:.1} %")
}

/// `12345` as `12,345`.
pub(super) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rounded count that is not negative")]
pub(super) fn whole(number: f64) -> usize {
    number.round() as usize
}
