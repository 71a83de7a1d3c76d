//! Revenue of a period in one look.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, CustomerId, DateRange},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::analytics::{
        facts::{Sale, SaleFilter, first_orders, sales},
        figures::{Figure, mean_cents, percent},
        period::{Compare, Scope, Span, czk, previous},
    },
    values::words,
};

words!(/// What to break the sum down by.
SaleGroup {
    Channel = "channel",
    Country = "country",
    Segment = "segment",
    Warehouse = "warehouse",
    PaymentMethod = "payment_method",
    Currency = "currency",
    Source = "source",
});

/// Which orders, and how to sum them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SummaryParams {
    /// Days of the orders; the last 30 when absent.
    period: Option<DateRange>,
    #[serde(default = "previous")]
    compare: Compare,
    #[serde(default = "czk")]
    currency: Currency,
    #[serde(default)]
    filter: SaleFilter,
    group_by: Option<SaleGroup>,
}

/// Sums and their parts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Summary {
    scope: Scope,
    totals: Totals,
    /// By `group_by`, largest first.
    groups: Vec<Group>,
}

/// Amounts in hundredths, VAT included.
#[derive(Debug, Serialize, JsonSchema)]
struct Totals {
    orders: Figure,
    pieces: Figure,
    /// Goods at full price.
    goods_cents: Figure,
    discounts_cents: Figure,
    shipping_cents: Figure,
    /// goods - discounts + shipping.
    gross_cents: Figure,
    refunds_cents: Figure,
    /// gross - refunds.
    net_cents: Figure,
    /// gross / orders.
    average_order_cents: Figure,
    customers: Figure,
    /// Customers whose first order falls into the period.
    new_customers: Figure,
}

/// Part of the sum.
#[derive(Debug, Serialize, JsonSchema)]
struct Group {
    key: String,
    orders: i64,
    net_cents: Figure,
    /// Of the net sum.
    share_percent: Option<f64>,
    average_order_cents: i64,
}

pub(crate) fn summary(ctx: &Ctx<'_>, params: SummaryParams) -> Result<Summary, ShopError> {
    let scope = Scope::new(ctx, params.period, 30, params.compare, params.currency)?;
    let read = |span: Span| sales(ctx, span, &params.filter, params.currency);
    let now = read(scope.period)?;
    let before = scope.compared.map(read).transpose()?;
    let firsts = first_orders(ctx)?;
    let totals = totals(&scope, &now, before.as_deref(), &firsts);
    let groups = match params.group_by {
        Some(by) => groups(by, &now, before.as_deref()),
        None => Vec::new(),
    };
    Ok(Summary { scope, totals, groups })
}

fn totals(scope: &Scope, now: &[Sale], before: Option<&[Sale]>, firsts: &BTreeMap<CustomerId, Date>) -> Totals {
    let figure = |measure: &dyn Fn(&[Sale]) -> i64| Figure::new(measure(now), before.map(measure));
    let sum = |of: fn(&Sale) -> i64| figure(&|sales| sales.iter().map(of).sum());
    let new = |sales: &[Sale], span: Span| {
        let customers = customers(sales);
        let new = |id: &&CustomerId| firsts.get(*id).is_some_and(|day| span.contains(*day));
        count(customers.iter().filter(new).count())
    };
    Totals {
        orders: figure(&|sales| count(sales.len())),
        pieces: sum(|sale| sale.pieces),
        goods_cents: sum(|sale| sale.gross + sale.discounts - sale.shipping),
        discounts_cents: sum(|sale| sale.discounts),
        shipping_cents: sum(|sale| sale.shipping),
        gross_cents: sum(|sale| sale.gross),
        refunds_cents: sum(|sale| sale.refunds),
        net_cents: sum(Sale::net),
        average_order_cents: figure(&average),
        customers: figure(&|sales| count(customers(sales).len())),
        new_customers: Figure::new(
            new(now, scope.period),
            before.zip(scope.compared).map(|(sales, span)| new(sales, span)),
        ),
    }
}

fn customers(sales: &[Sale]) -> BTreeSet<CustomerId> {
    sales.iter().map(|sale| sale.customer_id).collect()
}

fn average(sales: &[Sale]) -> i64 {
    mean_cents(sales.iter().map(|sale| sale.gross).sum(), count(sales.len()))
}

/// A length as a number of the report.
pub(crate) fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn groups(by: SaleGroup, now: &[Sale], before: Option<&[Sale]>) -> Vec<Group> {
    let split = |sales: &[Sale]| {
        let mut parts: BTreeMap<String, Vec<Sale>> = BTreeMap::new();
        for sale in sales {
            parts.entry(key(by, sale)).or_default().push(sale.clone());
        }
        parts
    };
    let net = |sales: &[Sale]| sales.iter().map(Sale::net).sum::<i64>();
    let (parts, parts_before) = (split(now), before.map(split));
    let all = net(now);
    let keys: BTreeSet<String> = parts.keys().chain(parts_before.iter().flat_map(BTreeMap::keys)).cloned().collect();
    let mut groups: Vec<Group> = keys
        .into_iter()
        .map(|key| {
            let sales = parts.get(&key).map_or(&[][..], Vec::as_slice);
            let earlier = parts_before.as_ref().map(|parts| parts.get(&key).map_or(0, |sales| net(sales)));
            Group {
                orders: count(sales.len()),
                net_cents: Figure::new(net(sales), earlier),
                share_percent: percent(net(sales), all),
                average_order_cents: average(sales),
                key,
            }
        })
        .collect();
    groups.sort_by_key(|group| (-group.net_cents.value, group.key.clone()));
    groups
}

fn key(by: SaleGroup, sale: &Sale) -> String {
    match by {
        SaleGroup::Channel => sale.channel.to_string(),
        SaleGroup::Country => sale.country.to_string(),
        SaleGroup::Segment => sale.segment.to_string(),
        SaleGroup::Warehouse => sale.warehouse.to_string(),
        SaleGroup::PaymentMethod => sale.method.to_string(),
        SaleGroup::Currency => sale.currency.to_string(),
        SaleGroup::Source => sale.source.clone(),
    }
}
