//! Customers by the month of their first order, and who came back.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, CustomerId, DateRange},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::analytics::{
        accounts::{History, histories},
        facts::{Sale, SaleFilter, Segment, sales},
        figures::{mean_cents, percent},
        period::{Compare, Scope, Span, czk, month, months_between},
        revenue::count,
    },
};

/// Which customers, and how far to follow them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CohortParams {
    /// Days of the first orders; the last 365 when absent.
    period: Option<DateRange>,
    /// Months to follow after the first.
    #[serde(default = "six")]
    #[schemars(range(min = 1, max = 13), example = 6)]
    months: i64,
    #[serde(default = "czk")]
    currency: Currency,
    segment: Option<Segment>,
}

fn six() -> i64 {
    6
}

/// Cohorts and their mean.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Cohorts {
    scope: Scope,
    /// By month, the earliest first; months without first orders are left out.
    cohorts: Vec<Cohort>,
    /// Over all cohorts that have reached the month, weighted by customers.
    average: Vec<Retention>,
}

/// Customers with their first order in a month.
#[derive(Debug, Serialize, JsonSchema)]
struct Cohort {
    /// `YYYY-MM`.
    month: String,
    customers: i64,
    /// Net per customer over all months shown.
    net_per_customer_cents: i64,
    /// From month 0, that of the first order, on; up to the present month.
    months: Vec<Cell>,
}

/// A cohort in one of its months.
#[derive(Debug, Serialize, JsonSchema)]
struct Cell {
    /// Months after the first.
    offset: i64,
    /// Customers that ordered.
    active: i64,
    retention_percent: Option<f64>,
    orders: i64,
    /// After refunds, VAT included.
    net_cents: i64,
    /// False for the present month.
    is_complete: bool,
}

/// Mean of a month.
#[derive(Debug, Serialize, JsonSchema)]
struct Retention {
    offset: i64,
    /// Customers of the cohorts that count.
    customers: i64,
    active: i64,
    retention_percent: Option<f64>,
}

pub(crate) fn cohorts(ctx: &Ctx<'_>, params: CohortParams) -> Result<Cohorts, ShopError> {
    let scope = Scope::new(ctx, params.period, 365, Compare::Nothing, params.currency)?;
    let mut members: BTreeMap<String, (Date, BTreeSet<CustomerId>)> = BTreeMap::new();
    for History { id, first: day, .. } in histories(ctx, params.segment, params.currency)? {
        if scope.period.contains(day) {
            let (first, ids) = members.entry(month(day)).or_insert_with(|| (day, BTreeSet::new()));
            *first = day.min(*first);
            ids.insert(id);
        }
    }
    let filter = SaleFilter { segment: params.segment, ..SaleFilter::default() };
    let until = Span::new(scope.period.from, ctx.today.max(scope.period.to));
    let orders = sales(ctx, until, &filter, params.currency)?;
    let cohorts: Vec<Cohort> = members
        .into_iter()
        .map(|(month, (first, ids))| {
            let last = params.months.min(months_between(first, ctx.today));
            cohort(ctx, month, first, &ids, &orders, last)
        })
        .collect();
    Ok(Cohorts { average: average(&cohorts, params.months), scope, cohorts })
}

fn cohort(ctx: &Ctx<'_>, month: String, first: Date, ids: &BTreeSet<CustomerId>, orders: &[Sale], last: i64) -> Cohort {
    let customers = count(ids.len());
    let months: Vec<Cell> = (0..=last)
        .map(|offset| {
            let here: Vec<&Sale> = orders
                .iter()
                .filter(|sale| ids.contains(&sale.customer_id))
                .filter(|sale| months_between(first, sale.day) == offset)
                .collect();
            let active: BTreeSet<CustomerId> = here.iter().map(|sale| sale.customer_id).collect();
            Cell {
                offset,
                active: count(active.len()),
                retention_percent: percent(count(active.len()), customers),
                orders: count(here.len()),
                net_cents: here.iter().map(|sale| sale.net()).sum(),
                is_complete: offset < months_between(first, ctx.today),
            }
        })
        .collect();
    let net: i64 = months.iter().map(|cell| cell.net_cents).sum();
    Cohort { month, customers, net_per_customer_cents: mean_cents(net, customers), months }
}

fn average(cohorts: &[Cohort], months: i64) -> Vec<Retention> {
    (0..=months)
        .filter_map(|offset| {
            let cells: Vec<(i64, i64)> = cohorts
                .iter()
                .filter_map(|cohort| {
                    let cell = cohort.months.iter().find(|cell| cell.offset == offset)?;
                    Some((cohort.customers, cell.active))
                })
                .collect();
            let customers: i64 = cells.iter().map(|(customers, _)| customers).sum();
            let active: i64 = cells.iter().map(|(_, active)| active).sum();
            (customers > 0).then(|| Retention {
                offset,
                customers,
                active,
                retention_percent: percent(active, customers),
            })
        })
        .collect()
}
