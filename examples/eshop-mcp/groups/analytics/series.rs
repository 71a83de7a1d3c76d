//! Revenue over time.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, DateRange},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::analytics::{
        facts::{Sale, SaleFilter, sales},
        figures::{Figure, mean, whole},
        period::{Compare, Grain, Scope, czk, previous, step_start},
        revenue::count,
    },
};

/// Which orders, and how fine.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeriesParams {
    /// Days of the orders; the last 30 when absent.
    period: Option<DateRange>,
    #[serde(default = "day")]
    grain: Grain,
    #[serde(default = "previous")]
    compare: Compare,
    #[serde(default = "czk")]
    currency: Currency,
    #[serde(default)]
    filter: SaleFilter,
    /// Steps in a moving average, the step itself and those before it; no average when absent.
    #[schemars(range(min = 2, max = 30), example = 7)]
    smooth: Option<usize>,
}

fn day() -> Grain {
    Grain::Day
}

/// The series.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Series {
    scope: Scope,
    grain: Grain,
    /// All steps of the period in order, those without orders too.
    points: Vec<Point>,
    /// Net over the period.
    net_cents: Figure,
    /// Start of the step with the highest net.
    best: Option<Date>,
    /// Start of the step with the lowest net.
    worst: Option<Date>,
    /// Mean change of net from a step to the next, by least squares.
    trend_cents: i64,
}

/// A step in time; the first and last may be cut by the period.
#[derive(Debug, Serialize, JsonSchema)]
struct Point {
    start: Date,
    orders: i64,
    pieces: i64,
    /// After refunds, VAT included.
    net_cents: i64,
    /// Net from the first step on.
    cumulative_cents: i64,
    /// Moving average of net; absent on the steps before it is full.
    smooth_cents: Option<i64>,
    /// Net of the same days of the compared ones.
    previous_cents: Option<i64>,
}

pub(crate) fn series(ctx: &Ctx<'_>, params: SeriesParams) -> Result<Series, ShopError> {
    let scope = Scope::new(ctx, params.period, 30, params.compare, params.currency)?;
    let grain = params.grain;
    let now = sales(ctx, scope.period, &params.filter, params.currency)?;
    let mut steps: BTreeMap<Date, Vec<&Sale>> = BTreeMap::new();
    for offset in 0..scope.period.days {
        let start = step_start(scope.period.from.plus_days(offset), grain);
        steps.entry(start.max(scope.period.from)).or_default();
    }
    for sale in &now {
        let start = step_start(sale.day, grain).max(scope.period.from);
        steps.entry(start).or_default().push(sale);
    }
    let earlier = match scope.compared {
        Some(span) => {
            let shift = scope.period.from.days_since(span.from);
            let mut earlier: BTreeMap<Date, i64> = BTreeMap::new();
            for sale in sales(ctx, span, &params.filter, params.currency)? {
                let start = step_start(sale.day.plus_days(shift), grain).max(scope.period.from);
                *earlier.entry(start).or_insert(0) += sale.net();
            }
            Some(earlier)
        }
        None => None,
    };
    let mut points = points(&steps, earlier.as_ref());
    if let Some(n_steps) = params.smooth {
        smooth(&mut points, n_steps);
    }
    let total = points.iter().map(|point| point.net_cents).sum();
    let extreme = |highest: bool| {
        let sign = if highest { -1 } else { 1 };
        points.iter().min_by_key(|point| sign * point.net_cents).map(|point| point.start)
    };
    Ok(Series {
        scope,
        grain,
        net_cents: Figure::new(total, earlier.map(|earlier| earlier.values().sum())),
        best: extreme(true),
        worst: extreme(false),
        trend_cents: trend(&points),
        points,
    })
}

fn points(steps: &BTreeMap<Date, Vec<&Sale>>, earlier: Option<&BTreeMap<Date, i64>>) -> Vec<Point> {
    let mut cumulative = 0;
    steps
        .iter()
        .map(|(start, sales)| {
            let sum = |of: fn(&Sale) -> i64| sales.iter().map(|sale| of(sale)).sum::<i64>();
            let net = sum(Sale::net);
            cumulative += net;
            Point {
                start: *start,
                orders: count(sales.len()),
                pieces: sum(|sale| sale.pieces),
                net_cents: net,
                cumulative_cents: cumulative,
                smooth_cents: None,
                previous_cents: earlier.map(|earlier| earlier.get(start).copied().unwrap_or(0)),
            }
        })
        .collect()
}

fn smooth(points: &mut [Point], n_steps: usize) {
    let nets: Vec<f64> = points.iter().map(|point| point.net_cents as f64).collect();
    for (point, window) in points.iter_mut().skip(n_steps - 1).zip(nets.windows(n_steps)) {
        point.smooth_cents = mean(window).map(whole);
    }
}

fn trend(points: &[Point]) -> i64 {
    let n = points.len() as f64;
    let middle = (n - 1.0) / 2.0;
    let average = points.iter().map(|point| point.net_cents as f64).sum::<f64>() / n.max(1.0);
    let (mut products, mut squares) = (0.0, 0.0);
    for (at, point) in (0_i32..).zip(points) {
        let x = f64::from(at) - middle;
        products += x * (point.net_cents as f64 - average);
        squares += x * x;
    }
    if squares > 0.0 { whole(products / squares) } else { 0 }
}
