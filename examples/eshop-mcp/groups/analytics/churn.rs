//! Customers who stay away longer than is usual for them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, CustomerId, Limit},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::analytics::{
        accounts::{History, histories},
        facts::Segment,
        figures::{median, percent, round2, whole},
        period::czk,
        revenue::count,
    },
    values::words,
};

/// Shortest usual gap in days: nobody is late after a week.
const SHORTEST_GAP: f64 = 14.0;

words!(/// Risk by days away over the usual gap: watch from 1, high from 2, lost from 3.
    Risk { Low = "low", Watch = "watch", High = "high", Lost = "lost" });

/// Whose risk.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChurnParams {
    segment: Option<Segment>,
    /// Orders that a customer must have; fewer than two show no gap.
    #[serde(default = "three")]
    #[schemars(range(min = 2, max = 20), example = 3)]
    min_orders: usize,
    /// Lowest risk to list; counts cover all.
    #[serde(default = "watch")]
    #[schemars(example = Risk::High)]
    min_risk: Risk,
    #[serde(default = "czk")]
    currency: Currency,
    #[serde(default)]
    limit: Limit,
}

fn three() -> usize {
    3
}

fn watch() -> Risk {
    Risk::Watch
}

/// Counts and customers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Churn {
    /// Of all amounts.
    #[schemars(with = "String")]
    currency: Currency,
    /// All four, from low to lost.
    levels: Vec<Level>,
    /// Highest net of the last year first.
    customers: Vec<AtRisk>,
    /// Customers left out because they have too few orders.
    too_few_orders: i64,
}

/// Customers of a risk.
#[derive(Debug, Serialize, JsonSchema)]
struct Level {
    risk: Risk,
    customers: i64,
    share_percent: Option<f64>,
    /// Net of the last 365 days.
    net_of_year_cents: i64,
}

/// A customer.
#[derive(Debug, Serialize, JsonSchema)]
struct AtRisk {
    customer_id: CustomerId,
    name: String,
    segment: Segment,
    risk: Risk,
    orders: i64,
    last_order_on: Date,
    days_away: i64,
    /// Median of days between orders, at least 14.
    usual_gap_days: f64,
    /// days_away / usual_gap.
    times_usual: f64,
    /// When the next order was due by the usual gap.
    due_on: Date,
    /// Net of the last 365 days, VAT included.
    net_of_year_cents: i64,
}

pub(crate) fn churn(ctx: &Ctx<'_>, params: ChurnParams) -> Result<Churn, ShopError> {
    let histories = histories(ctx, params.segment, params.currency)?;
    let (known, unknown): (Vec<&History>, Vec<&History>) =
        histories.iter().partition(|history| history.days.len() >= params.min_orders);
    let mut customers: Vec<AtRisk> = known.iter().map(|history| at_risk(ctx, history)).collect();
    let levels = [Risk::Low, Risk::Watch, Risk::High, Risk::Lost]
        .into_iter()
        .map(|risk| {
            let here: Vec<&AtRisk> = customers.iter().filter(|c| c.risk == risk).collect();
            Level {
                risk,
                customers: count(here.len()),
                share_percent: percent(count(here.len()), count(customers.len())),
                net_of_year_cents: here.iter().map(|c| c.net_of_year_cents).sum(),
            }
        })
        .collect();
    customers.retain(|customer| customer.risk >= params.min_risk);
    customers.sort_by_key(|customer| (-customer.net_of_year_cents, customer.customer_id));
    customers.truncate(usize::try_from(params.limit.0).unwrap_or(usize::MAX));
    Ok(Churn { currency: params.currency, levels, customers, too_few_orders: count(unknown.len()) })
}

fn at_risk(ctx: &Ctx<'_>, history: &History) -> AtRisk {
    let gaps: Vec<f64> = history
        .days
        .windows(2)
        .filter_map(|pair| match pair {
            [earlier, later] => Some(later.days_since(*earlier) as f64),
            _ => None,
        })
        .collect();
    let gap = median(&gaps).unwrap_or(SHORTEST_GAP).max(SHORTEST_GAP);
    let days_away = ctx.today.days_since(history.last);
    let times = days_away as f64 / gap;
    let risk = match times {
        times if times >= 3.0 => Risk::Lost,
        times if times >= 2.0 => Risk::High,
        times if times >= 1.0 => Risk::Watch,
        _ => Risk::Low,
    };
    AtRisk {
        customer_id: history.id,
        name: history.name.clone(),
        segment: history.segment,
        risk,
        orders: count(history.days.len()),
        last_order_on: history.last,
        days_away,
        usual_gap_days: round2(gap),
        times_usual: round2(times),
        due_on: history.last.plus_days(whole(gap)),
        net_of_year_cents: history.net_of_year,
    }
}
