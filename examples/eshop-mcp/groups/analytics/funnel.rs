//! How far orders get, and how long each step takes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, DateRange, OrderId, OrderStatus},
    ctx::Ctx,
    error::ShopError,
    groups::analytics::{
        facts::{Sale, SaleFilter, placed},
        figures::{Figure, median, percent, quantile, round2},
        period::{Compare, Scope, Span, czk, previous},
        revenue::count,
    },
};

/// Which orders.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FunnelParams {
    /// Days of the orders; the last 30 when absent.
    period: Option<DateRange>,
    #[serde(default = "previous")]
    compare: Compare,
    #[serde(default = "czk")]
    currency: Currency,
    #[serde(default)]
    filter: SaleFilter,
}

/// The way of the orders.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Funnel {
    scope: Scope,
    /// From placed to delivered.
    stages: Vec<Stage>,
    cancelled: Figure,
    returned: Figure,
    /// Where the orders of the period stand now.
    now: Vec<Standing>,
}

/// A stage and who reached it.
#[derive(Debug, Serialize, JsonSchema)]
struct Stage {
    /// `placed`, or the state of the order.
    stage: String,
    /// Orders that reached it, whatever became of them later.
    orders: Figure,
    of_placed_percent: Option<f64>,
    of_previous_percent: Option<f64>,
    /// Worth of these orders.
    value_cents: i64,
    /// Hours from the stage before, where both moments are known.
    median_hours: Option<f64>,
    /// Nine of ten took at most so many hours.
    p90_hours: Option<f64>,
}

/// Orders in a state.
#[derive(Debug, Serialize, JsonSchema)]
struct Standing {
    status: OrderStatus,
    orders: i64,
    /// Days since the oldest of them was placed.
    oldest_days: i64,
}

/// Stages after `placed`.
const STAGES: [OrderStatus; 5] =
    [OrderStatus::Confirmed, OrderStatus::Picking, OrderStatus::Packed, OrderStatus::Shipped, OrderStatus::Delivered];

/// Seconds at which each order reached each stage, `None` where only the state tells.
type Reached = BTreeMap<OrderId, BTreeMap<usize, Option<i64>>>;

pub(crate) fn funnel(ctx: &Ctx<'_>, params: FunnelParams) -> Result<Funnel, ShopError> {
    let scope = Scope::new(ctx, params.period, 30, params.compare, params.currency)?;
    let moments = moments(ctx)?;
    let read = |span: Span| -> Result<(Vec<Sale>, Reached), ShopError> {
        let orders = placed(ctx, span, &params.filter, params.currency)?;
        let reached = reached(&orders, &moments);
        Ok((orders, reached))
    };
    let now = read(scope.period)?;
    let before = scope.compared.map(read).transpose()?;
    let stages = (0..=STAGES.len()).map(|at| stage(at, &now, before.as_ref())).collect();
    let in_state = |status: OrderStatus| {
        let n =
            |(orders, _): &(Vec<Sale>, Reached)| count(orders.iter().filter(|order| order.status == status).count());
        Figure::new(n(&now), before.as_ref().map(n))
    };
    Ok(Funnel {
        scope,
        stages,
        cancelled: in_state(OrderStatus::Cancelled),
        returned: in_state(OrderStatus::Returned),
        now: standings(ctx, &now.0),
    })
}

/// Reads when orders came into a state for the first time: order and stage, with seconds.
fn moments(ctx: &Ctx<'_>) -> Result<BTreeMap<(OrderId, usize), i64>, ShopError> {
    let sql = "select order_id, kind, message, unixepoch(at) from order_events where kind in ('placed', 'status') order by at desc, id desc";
    let events: Vec<(OrderId, String, String, i64)> =
        ctx.all(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let mut moments = BTreeMap::new();
    for (id, kind, message, at) in events {
        let stage = if kind == "placed" {
            Some(0)
        } else {
            let to = message.split("-> ").nth(1).unwrap_or_default();
            let to = to.split(':').next().unwrap_or_default();
            STAGES.iter().position(|stage| stage.as_str() == to).map(|at| at + 1)
        };
        if let Some(stage) = stage {
            // The latest come first, so the earliest stays.
            moments.insert((id, stage), at);
        }
    }
    Ok(moments)
}

fn reached(orders: &[Sale], moments: &BTreeMap<(OrderId, usize), i64>) -> Reached {
    orders
        .iter()
        .map(|order| {
            let by_state = match order.status {
                OrderStatus::Returned => STAGES.len(),
                status => STAGES.iter().position(|stage| *stage == status).map_or(0, |at| at + 1),
            };
            let by_event = (0..=STAGES.len()).filter(|at| moments.contains_key(&(order.id, *at))).max().unwrap_or(0);
            let stages = (0..=by_state.max(by_event)).map(|at| (at, moments.get(&(order.id, at)).copied())).collect();
            (order.id, stages)
        })
        .collect()
}

fn stage(at: usize, now: &(Vec<Sale>, Reached), before: Option<&(Vec<Sale>, Reached)>) -> Stage {
    let n = |(_, reached): &(Vec<Sale>, Reached), at: usize| {
        count(reached.values().filter(|stages| stages.contains_key(&at)).count())
    };
    let (orders, reached) = now;
    let value = orders
        .iter()
        .filter(|order| reached.get(&order.id).is_some_and(|stages| stages.contains_key(&at)))
        .map(|order| order.gross)
        .sum();
    let hours: Vec<f64> = at.checked_sub(1).map_or_else(Vec::new, |earlier| {
        let took = |stages: &BTreeMap<usize, Option<i64>>| {
            let seconds = stages.get(&at)?.as_ref()? - stages.get(&earlier)?.as_ref()?;
            Some(seconds.max(0) as f64 / 3600.0)
        };
        reached.values().filter_map(took).collect()
    });
    Stage {
        stage: match at.checked_sub(1).and_then(|at| STAGES.get(at)) {
            Some(status) => status.to_string(),
            None => "placed".to_owned(),
        },
        orders: Figure::new(n(now, at), before.map(|before| n(before, at))),
        of_placed_percent: percent(n(now, at), n(now, 0)),
        of_previous_percent: at.checked_sub(1).and_then(|earlier| percent(n(now, at), n(now, earlier))),
        value_cents: value,
        median_hours: median(&hours).map(round2),
        p90_hours: quantile(&hours, 90).map(round2),
    }
}

fn standings(ctx: &Ctx<'_>, orders: &[Sale]) -> Vec<Standing> {
    let mut by_status: BTreeMap<OrderStatus, (i64, i64)> = BTreeMap::new();
    for order in orders {
        let (n, oldest) = by_status.entry(order.status).or_default();
        *n += 1;
        *oldest = (*oldest).max(ctx.today.days_since(order.day));
    }
    by_status.into_iter().map(|(status, (orders, oldest_days))| Standing { status, orders, oldest_days }).collect()
}
