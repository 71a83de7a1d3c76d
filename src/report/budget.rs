//! What every set of skills costs: a snapshot and what the gateway says of it → a [`Budget`].

use serde::Serialize;

use super::{
    heavy::{self, HeavyParameter, HeavyTool},
    measured::Measured,
    said::{Said, Start},
    surface::{Surface, surface},
    table::{Against, Counted, Row, Tally, round, sets},
    task::{Menus, Opening, Plan, Task, as_float, task},
};
use crate::{
    catalog::{Registered, Snapshot},
    model::{name::SkillName, principal::Principal},
    tokens::{Counter, Tokenizer},
    wire::era::Era,
};

/// What is asked.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// By which tokens are counted.
    pub tokenizer: Tokenizer,
    /// Sets besides none, each skill and all; the snapshot knows their skills.
    pub sets: Vec<Vec<SkillName>>,
    /// Tokens of a context window.
    pub window: usize,
    /// Heaviest tools and parameters that are shown.
    pub top: usize,
    /// The task that is estimated.
    pub plan: Plan,
    /// Where the definitions come from.
    pub source: Source,
    /// When they were looked at, in RFC 3339.
    pub taken_at: String,
}

/// Where the definitions come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The upstreams were asked.
    Live,
    /// They stand in `gatekey.lock`.
    Lock,
}

impl Source {
    /// In a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live from the upstreams",
            Self::Lock => "from gatekey.lock",
        }
    }
}

/// Everything that upstreams list, as they list it.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Full {
    /// Tools.
    pub tools: usize,
    /// Of their definitions.
    pub tokens: usize,
    /// Of the same.
    pub bytes: usize,
    /// Share of the context window, in percent.
    pub window_percent: f64,
}

/// What every set of skills costs.
#[derive(Debug, Clone, Serialize)]
pub struct Budget {
    /// By which tokens are counted.
    pub tokenizer: String,
    /// Whether that is no real tokenizer.
    pub is_estimate: bool,
    /// Where the definitions come from.
    pub source: Source,
    /// When they were looked at.
    pub taken_at: String,
    /// Tokens of a context window.
    pub window: usize,
    /// Whether calls carry an `intent`, which lengthens definitions: `off`, `optional` or `required`.
    pub intent: String,
    /// As without gatekey.
    pub full: Full,
    /// None, each skill from the lightest on, chosen sets, all.
    pub rows: Vec<Row>,
    /// What a fresh client costs, in each era.
    pub start: Vec<Surface>,
    /// The heaviest first.
    pub heaviest_tools: Vec<HeavyTool>,
    /// The heaviest first.
    pub heaviest_parameters: Vec<HeavyParameter>,
    /// What the tasks assume.
    pub plan: Plan,
    /// Tokens by which a call by key is longer than one by name.
    pub call_overhead_tokens: usize,
    /// A task that loads as many skills as the plan says, each as heavy as all are on average; then one for each set.
    pub tasks: Vec<Task>,
    /// What running proxies really sent, beside which the estimates stand; only where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

/// Counts everything. `on_progress` is told how many texts of how many are counted.
pub fn budget(
    snapshot: &Snapshot,
    principal: &Principal,
    said: &Said,
    wanted: &Wanted,
    on_progress: &(dyn Fn(usize, usize) + Sync),
) -> Budget {
    let intent = snapshot.config.intent;
    let tools: Vec<&Registered> = snapshot.registry.tools().iter().collect();
    let definitions: Vec<&str> = tools.iter().map(|tool| &*tool.tool.definition).collect();
    let mut counter = Counter::new(wanted.tokenizer);
    // What costs time is counted first, on all cores.
    let mut texts = definitions.clone();
    texts.extend(tools.iter().map(|tool| tool.listed(intent)));
    texts.extend(said.loads.values().map(|load| load.text.as_str()));
    texts.extend(said.starts.iter().flat_map(Start::texts));
    counter.learn(&texts, on_progress);

    let full_tokens = counter.count_list(&definitions);
    let start: Vec<Surface> =
        said.starts.iter().map(|start| surface(snapshot, start, full_tokens, &mut counter)).collect();
    let start_tokens = start.iter().find(|surface| surface.era == Era::Modern).map_or(0, |surface| surface.total);
    let against = Against { full_tokens, start_tokens };
    let parts = tools.iter().map(|tool| counter.part(tool.listed(intent))).collect();
    let is_always = |position: &usize| snapshot.is_always_open(*position) && snapshot.is_shown(*position, principal);
    let always = (0..tools.len()).filter(is_always).collect();
    let tally = Tally { snapshot, principal, said, wanted, against, parts, always };
    let counted: Vec<Counted> =
        sets(snapshot, said, &wanted.sets).into_iter().map(|set| tally.count(set, &mut counter)).collect();
    let call_overhead_tokens = counted.iter().map(|counted| counted.overhead).max().unwrap_or_default();
    let menus = |overhead| Menus { full: full_tokens, start: start_tokens, overhead };
    let mut tasks = vec![task(
        "mean".into(),
        wanted.plan,
        menus(call_overhead_tokens),
        &vec![mean(&counted, said.loads.len()); wanted.plan.loads.min(said.loads.len())],
    )];
    tasks.extend(
        counted
            .iter()
            .map(|counted| task(counted.row.set.clone(), wanted.plan, menus(counted.overhead), &counted.openings)),
    );
    let heaviest_tools = heavy::tools(&tools, &tally.parts, full_tokens, wanted.top);
    let heaviest_parameters = heavy::parameters(&tools, wanted.top, &mut counter);
    let bytes = definitions.iter().map(|definition| definition.len()).sum();
    let window_percent = super::table::percent(full_tokens, wanted.window);
    Budget {
        tokenizer: wanted.tokenizer.to_string(),
        is_estimate: wanted.tokenizer.is_estimate(),
        source: wanted.source,
        taken_at: wanted.taken_at.clone(),
        window: wanted.window,
        intent: format!("{intent:?}").to_lowercase(),
        full: Full { tools: tools.len(), tokens: full_tokens, bytes, window_percent },
        rows: sorted(counted.into_iter().map(|counted| counted.row).collect(), said.loads.len()),
        start,
        heaviest_tools,
        heaviest_parameters,
        plan: wanted.plan,
        call_overhead_tokens,
        tasks: rounded(tasks),
        measured: None,
    }
}

/// The opening of a skill as heavy as all are on average; single skills follow the empty set.
fn mean(counted: &[Counted], n_skills: usize) -> Opening {
    let all: Vec<Opening> = counted.iter().skip(1).take(n_skills).flat_map(|single| single.openings.clone()).collect();
    let n = all.len().max(1);
    let sum = |what: fn(&Opening) -> usize| all.iter().map(what).sum::<usize>() / n;
    Opening { load: sum(|opening| opening.load), schemas: sum(|opening| opening.schemas) }
}

/// Single skills, which follow the empty set, from the lightest on.
fn sorted(mut rows: Vec<Row>, n_skills: usize) -> Vec<Row> {
    if let Some(single) = rows.get_mut(1..=n_skills) {
        single.sort_by(|a, b| (a.list_tokens, &a.set).cmp(&(b.list_tokens, &b.set)));
    }
    rows
}

fn rounded(mut tasks: Vec<Task>) -> Vec<Task> {
    for task in &mut tasks {
        for cost in [&mut task.direct, &mut task.dispatch, &mut task.list] {
            cost.with_cache = round(cost.with_cache).round();
        }
    }
    tasks
}

impl Budget {
    /// Which share of what listing everything costs a task costs by key, in percent: without a prompt cache, and with one.
    pub fn shares(task: &Task) -> [f64; 2] {
        let share = |part: f64, whole: f64| if whole > 0.0 { round(100.0 * part / whole) } else { 0.0 };
        [
            share(as_float(task.dispatch.sent), as_float(task.direct.sent)),
            share(task.dispatch.with_cache, task.direct.with_cache),
        ]
    }
}

impl Start {
    /// Of the list's definitions.
    pub(super) fn list_bytes(&self) -> usize {
        self.own.iter().chain(&self.always).map(String::len).sum()
    }

    /// Every text of it.
    fn texts(&self) -> impl Iterator<Item = &str> {
        self.own.iter().chain(&self.always).map(String::as_str).chain([self.instructions.as_str()])
    }
}
