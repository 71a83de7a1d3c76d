//! What running proxies really sent, beside what the budget says of it. Proxies keep bytes only, so tokens are told by the
//! ratio that the same texts have here.

use serde::Serialize;

use super::{budget::Budget, said::Said, task::as_float};
use crate::{
    model::sent::{Amount, SentAs},
    session::SentRecord,
};

/// What running proxies really sent.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// Clients that got anything; all those without sessions that one proxy had are one.
    pub sessions: usize,
    /// When the oldest of them was written down last.
    pub since: Option<String>,
    /// When the newest was.
    pub until: Option<String>,
    /// By what it was for, in the order of a session; what never came is left out.
    pub parts: Vec<MeasuredPart>,
}

/// What was sent for one purpose.
#[derive(Debug, Clone, Serialize)]
pub struct MeasuredPart {
    /// `instructions`, `first_list`, `list`, `load`, `discovery`, `refusal`, `result`.
    pub what: &'static str,
    /// How often.
    pub n: usize,
    /// Of all.
    pub bytes: usize,
    /// Of all, by the ratio of the same texts.
    pub tokens: usize,
    /// Of each.
    pub mean_tokens: usize,
    /// What the budget says of each, where it says something.
    pub estimate: Option<usize>,
}

/// Adds up `records`, of proxies of the same servers. `date` tells a time in seconds since 1970.
pub fn measured(records: &[SentRecord], said: &Said, budget: &Budget, date: &dyn Fn(i64) -> String) -> Measured {
    let start = budget.start.iter().max_by_key(|start| start.bytes);
    let (mut load_bytes, mut load_tokens) = (0, 0);
    for (name, load) in &said.loads {
        let row = budget.rows.iter().find(|row| row.set == name.as_str());
        let none = budget.rows.first().map_or(0, |row| row.list_tokens);
        load_bytes += load.bytes;
        load_tokens += row.map_or(0, |row| row.dispatch_tokens.saturating_sub(none));
    }
    let list_bytes: usize = said.starts.iter().map(super::Start::list_bytes).sum();
    let list_tokens: usize = budget.start.iter().map(|start| start.list).sum();
    let instructions_bytes: usize = said.starts.iter().map(|start| start.instructions.len()).sum();
    let instructions_tokens: usize = budget.start.iter().map(|start| start.instructions).sum();
    let ratio = |tokens: usize, bytes: usize| as_float(tokens) / as_float(bytes.max(1));
    let of_kind = |kind: SentAs| match kind {
        SentAs::Instructions => (ratio(instructions_tokens, instructions_bytes), start.map(|start| start.instructions)),
        SentAs::FirstList => (ratio(list_tokens, list_bytes), start.map(|start| start.list)),
        SentAs::List => (ratio(list_tokens, list_bytes), None),
        SentAs::Load => (ratio(load_tokens, load_bytes), Some(load_tokens / said.loads.len().max(1))),
        SentAs::Discovery | SentAs::Refusal => (ratio(budget.full.tokens, budget.full.bytes), None),
        SentAs::Result => (ratio(budget.full.tokens, budget.full.bytes), Some(budget.plan.result_tokens)),
    };
    let sum = |index: usize| {
        records
            .iter()
            .filter_map(|record| record.amounts.get(index))
            .fold(Amount::default(), |all, amount| Amount { n: all.n + amount.n, bytes: all.bytes + amount.bytes })
    };
    let mut parts = Vec::new();
    for (index, kind) in SentAs::ALL.into_iter().enumerate() {
        let Amount { n, bytes } = sum(index);
        let (n, bytes) = (usize::try_from(n).unwrap_or_default(), usize::try_from(bytes).unwrap_or_default());
        if n > 0 {
            let (ratio, estimate) = of_kind(kind);
            let tokens = super::sections::whole(as_float(bytes) * ratio);
            parts.push(MeasuredPart { what: kind.as_str(), n, bytes, tokens, mean_tokens: tokens / n, estimate });
        }
    }
    let times = || records.iter().filter_map(|record| i64::try_from(record.at).ok());
    Measured { sessions: records.len(), since: times().min().map(date), until: times().max().map(date), parts }
}
