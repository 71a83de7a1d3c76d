//! Days that stand out from the days around them.
//!
//! A day is compared with the median of its neighbors by a robust z-score: the distance from the median over the
//! usual distance. That is the median one or the mean one, whichever is larger, each scaled to a deviation: the median
//! alone calls every large order odd, since on many days there is none. It is at least one count, so that a single
//! cancellation never stands out.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, DateRange, Limit, OrderStatus},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::analytics::{
        conversion::VisitChannel,
        facts::{Sale, SaleFilter, placed},
        figures::{Figure, mean, median, round2, whole},
        period::{Compare, Scope, Span, czk},
        revenue::count,
    },
    values::words,
};

/// Makes the median distance of a normal distribution its deviation.
const NORMAL: f64 = 0.6745;

/// The same for the mean distance.
const NORMAL_MEAN: f64 = 0.7979;

words!(/// What is counted by day; the first three by visit channel.
Measure {
    Sessions = "sessions",
    Carts = "carts",
    Checkouts = "checkouts",
    Orders = "orders",
    Revenue = "revenue",
    Cancelled = "cancelled",
});

/// What to look at, and how sharply.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnomalyParams {
    /// Days to look at; the last 180 when absent.
    period: Option<DateRange>,
    #[serde(default)]
    #[schemars(description = "Measures; all when absent.", length(max = 6), example = [Measure::Sessions])]
    measures: Vec<Measure>,
    #[serde(default)]
    #[schemars(description = "Visit channels of the measures that have them; all when absent.", length(max = 5), example = [VisitChannel::Paid])]
    channels: Vec<VisitChannel>,
    /// Robust z-score from which a day stands out; lower finds more.
    #[serde(default = "threshold")]
    #[schemars(range(min = 2, max = 20), example = 3.5)]
    threshold: f64,
    /// Days before and after that a day is compared with.
    #[serde(default = "window")]
    #[schemars(range(min = 7, max = 90), example = 28)]
    window: i64,
    #[serde(default = "czk")]
    currency: Currency,
    #[serde(default)]
    limit: Limit,
}

fn threshold() -> f64 {
    3.5
}

fn window() -> i64 {
    28
}

/// Days that stand out.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Anomalies {
    scope: Scope,
    /// Highest score first.
    items: Vec<Anomaly>,
    /// Found, those beyond the limit too.
    found: i64,
    /// Days judged, over all series.
    judged: i64,
}

/// A day that stands out.
#[derive(Debug, Serialize, JsonSchema)]
struct Anomaly {
    day: Date,
    measure: Measure,
    /// For sessions, carts and checkouts.
    channel: Option<VisitChannel>,
    /// Count, or hundredths for revenue; `previous` is the median of the days around.
    value: Figure,
    /// Robust z-score, negative when low.
    score: f64,
    /// Orders of the same day, from the same channel where there is one.
    orders: i64,
    /// What it may mean.
    reading: String,
}

type Days = BTreeMap<Date, i64>;

/// The days around the period, by what they are counted from.
#[derive(Debug)]
struct Data {
    orders: Vec<Sale>,
    /// Sessions, carts and checkouts by channel.
    visits: BTreeMap<VisitChannel, [Days; 3]>,
    around: Span,
}

pub(crate) fn anomalies(ctx: &Ctx<'_>, params: AnomalyParams) -> Result<Anomalies, ShopError> {
    let scope = Scope::new(ctx, params.period, 180, Compare::Nothing, params.currency)?;
    let data = data(ctx, scope.period, &params)?;
    let mut items = Vec::new();
    let mut judged = 0;
    for (measure, channel) in wanted(&params) {
        let days = days(&data, measure, channel);
        let scores = scores(&days, scope.period, params.window);
        for (day, middle, score) in &scores {
            if score.abs() >= params.threshold {
                let value = days.get(day).copied().unwrap_or(0);
                let value = Figure::new(value, Some(whole(*middle)));
                items.push(anomaly(&data, (*day, measure, channel), value, *score));
            }
        }
        judged += count(scores.len());
    }
    items.sort_by(|a, b| {
        let size = |item: &Anomaly| item.score.abs();
        size(b).total_cmp(&size(a)).then((a.day, a.measure, a.channel).cmp(&(b.day, b.measure, b.channel)))
    });
    let found = count(items.len());
    items.truncate(usize::try_from(params.limit.0).unwrap_or(usize::MAX));
    Ok(Anomalies { scope, items, found, judged })
}

/// Measures and channels to look at.
fn wanted(params: &AnomalyParams) -> Vec<(Measure, Option<VisitChannel>)> {
    let all =
        [Measure::Sessions, Measure::Carts, Measure::Checkouts, Measure::Orders, Measure::Revenue, Measure::Cancelled];
    let mut wanted = Vec::new();
    for measure in all {
        if !params.measures.is_empty() && !params.measures.contains(&measure) {
            continue;
        }
        if visit_column(measure).is_none() {
            wanted.push((measure, None));
            continue;
        }
        for channel in VisitChannel::ALL {
            if params.channels.is_empty() || params.channels.contains(&channel) {
                wanted.push((measure, Some(channel)));
            }
        }
    }
    wanted
}

/// Place among the columns of visits.
fn visit_column(measure: Measure) -> Option<usize> {
    match measure {
        Measure::Sessions => Some(0),
        Measure::Carts => Some(1),
        Measure::Checkouts => Some(2),
        Measure::Orders | Measure::Revenue | Measure::Cancelled => None,
    }
}

fn data(ctx: &Ctx<'_>, period: Span, params: &AnomalyParams) -> Result<Data, ShopError> {
    let around = Span::new(period.from.plus_days(-params.window), period.to.plus_days(params.window));
    let sql = "select day, channel, sessions, carts, checkouts from visits where day between ? and ? order by day";
    let rows: Vec<(Date, VisitChannel, [i64; 3])> = ctx.all(sql, [around.from, around.to], |row| {
        Ok((row.get(0)?, row.get(1)?, [row.get(2)?, row.get(3)?, row.get(4)?]))
    })?;
    let mut visits: BTreeMap<VisitChannel, [Days; 3]> = BTreeMap::new();
    for (day, channel, counts) in rows {
        for (days, count) in visits.entry(channel).or_default().iter_mut().zip(counts) {
            days.insert(day, count);
        }
    }
    // Days before the first visit and from today on are not over or were not recorded.
    let recorded = visits.values().flat_map(|[sessions, ..]| sessions.keys());
    let first = recorded.clone().min().copied().unwrap_or(around.from);
    let last = recorded.max().copied().unwrap_or(around.to);
    let around = Span::new(around.from.max(first), around.to.min(last));
    Ok(Data { orders: placed(ctx, around, &SaleFilter::default(), params.currency)?, visits, around })
}

/// A series; days of orders without any count as zero.
fn days(data: &Data, measure: Measure, channel: Option<VisitChannel>) -> Days {
    if let (Some(column), Some(channel)) = (visit_column(measure), channel) {
        let days = data.visits.get(&channel).and_then(|days| days.get(column));
        return days.cloned().unwrap_or_default();
    }
    let mut days: Days = (0..data.around.days.max(0)).map(|offset| (data.around.from.plus_days(offset), 0)).collect();
    for order in &data.orders {
        let is_cancelled = order.status == OrderStatus::Cancelled;
        *days.entry(order.day).or_insert(0) += match measure {
            Measure::Revenue if !is_cancelled => order.net(),
            Measure::Cancelled => i64::from(is_cancelled),
            Measure::Orders => 1,
            _ => 0,
        };
    }
    days
}

/// Median of the days around, and score, for each day of the period that can be judged.
fn scores(days: &Days, period: Span, window: i64) -> Vec<(Date, f64, f64)> {
    let mut scores = Vec::new();
    for (day, value) in days.range(period.from..=period.to) {
        let around = days.range(day.plus_days(-window)..=day.plus_days(window));
        let others: Vec<f64> = around.filter(|(other, _)| *other != day).map(|(_, value)| *value as f64).collect();
        let Some(middle) = median(&others) else {
            continue;
        };
        let distances: Vec<f64> = others.iter().map(|value| (value - middle).abs()).collect();
        let usual = median(&distances).unwrap_or(0.0) / NORMAL;
        let scale = usual.max(mean(&distances).unwrap_or(0.0) / NORMAL_MEAN);
        scores.push((*day, middle, (*value as f64 - middle) / scale.max(1.0)));
    }
    scores
}

fn anomaly(
    data: &Data,
    (day, measure, channel): (Date, Measure, Option<VisitChannel>),
    value: Figure,
    score: f64,
) -> Anomaly {
    let of_channel = |order: &&Sale| channel.is_none_or(|channel| order.source == channel.as_str());
    let orders = data.orders.iter().filter(|order| order.day == day);
    let orders = count(orders.filter(of_channel).count());
    let is_low = score < 0.0;
    let reading = match (measure, is_low, orders) {
        (Measure::Sessions, false, orders) if orders * 100 < value.value => {
            "clicks that bring hardly any orders: check campaigns, and whether people made them"
        }
        (Measure::Sessions, false, _) => "more visitors: see which campaign ran",
        (Measure::Sessions, true, _) => "fewer visitors: check tracking and campaigns",
        (Measure::Carts | Measure::Checkouts, false, 0) => "carts without orders: check payment and shipping prices",
        (Measure::Cancelled, false, _) => "cancellations: see their reasons with orders_get",
        (Measure::Orders | Measure::Revenue, false, _) => "strong day: a sale, a large order or a season",
        (_, true, _) => "weak day: check whether the e-shop worked",
        _ => "more than usual",
    };
    Anomaly { day, measure, channel, value, score: round2(score), orders, reading: reading.to_owned() }
}
