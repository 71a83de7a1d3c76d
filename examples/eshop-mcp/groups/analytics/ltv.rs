//! What a customer has brought and may bring yet.

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
        figures::{mean_cents, per, whole},
        period::czk,
        revenue::count,
    },
};

/// Mean length of a month in days.
const MONTH: f64 = 30.44;

/// Whose value, and how far ahead.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LtvParams {
    /// Only this customer in `customers`.
    customer_id: Option<CustomerId>,
    segment: Option<Segment>,
    /// Months to look ahead.
    #[serde(default = "twelve")]
    #[schemars(range(min = 1, max = 36), example = 12)]
    horizon_months: i64,
    /// A customer whose last order is older counts as gone and is expected to bring nothing.
    #[serde(default = "half_year")]
    #[schemars(range(min = 30, max = 400), example = 180)]
    active_days: i64,
    #[serde(default = "czk")]
    currency: Currency,
    #[serde(default)]
    limit: Limit,
}

fn twelve() -> i64 {
    12
}

fn half_year() -> i64 {
    180
}

/// Values by segment and customer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ltv {
    /// Of all amounts.
    #[schemars(with = "String")]
    currency: Currency,
    segments: Vec<SegmentValue>,
    /// Highest value first.
    customers: Vec<CustomerValue>,
    /// Value of all customers together.
    value_cents: i64,
}

/// A segment in the mean of its customers.
#[derive(Debug, Serialize, JsonSchema)]
struct SegmentValue {
    segment: Segment,
    /// Customers with at least one order.
    customers: i64,
    /// Those with an order in the last `active_days`.
    active: i64,
    orders_per_customer: Option<f64>,
    /// gross / orders.
    average_order_cents: i64,
    net_per_customer_cents: i64,
    expected_per_customer_cents: i64,
    value_per_customer_cents: i64,
}

/// A customer.
#[derive(Debug, Serialize, JsonSchema)]
struct CustomerValue {
    customer_id: CustomerId,
    name: String,
    segment: Segment,
    first_order_on: Date,
    last_order_on: Date,
    orders: i64,
    /// So far, after refunds, VAT included.
    net_cents: i64,
    /// net / months since the first order, at least three.
    monthly_cents: i64,
    /// monthly * horizon for active customers, else zero.
    expected_cents: i64,
    /// net + expected.
    value_cents: i64,
    is_active: bool,
}

pub(crate) fn ltv(ctx: &Ctx<'_>, params: LtvParams) -> Result<Ltv, ShopError> {
    let histories = histories(ctx, params.segment, params.currency)?;
    let mut customers: Vec<CustomerValue> = histories.iter().map(|history| value(ctx, history, &params)).collect();
    let segments = [Segment::Retail, Segment::Club, Segment::Wholesale]
        .into_iter()
        .filter_map(|segment| segment_value(segment, &histories, &customers))
        .collect();
    let value_cents = customers.iter().map(|customer| customer.value_cents).sum();
    if let Some(id) = params.customer_id {
        customers.retain(|customer| customer.customer_id == id);
        if customers.is_empty() {
            let kind = "customer with orders in this segment";
            return Err(ShopError::not_found(kind, id, "customers_list").at("customer_id"));
        }
    }
    customers.sort_by_key(|customer| (-customer.value_cents, customer.customer_id));
    customers.truncate(usize::try_from(params.limit.0).unwrap_or(usize::MAX));
    Ok(Ltv { currency: params.currency, segments, customers, value_cents })
}

fn value(ctx: &Ctx<'_>, history: &History, params: &LtvParams) -> CustomerValue {
    // A first order of yesterday says little about a month, so a quarter is the least.
    let months = (ctx.today.days_since(history.first) as f64 / MONTH).max(3.0);
    let monthly = whole(history.net as f64 / months);
    let is_active = ctx.today.days_since(history.last) <= params.active_days;
    let expected = if is_active { monthly * params.horizon_months } else { 0 };
    CustomerValue {
        customer_id: history.id,
        name: history.name.clone(),
        segment: history.segment,
        first_order_on: history.first,
        last_order_on: history.last,
        orders: count(history.days.len()),
        net_cents: history.net,
        monthly_cents: monthly,
        expected_cents: expected,
        value_cents: history.net + expected,
        is_active,
    }
}

fn segment_value(segment: Segment, histories: &[History], customers: &[CustomerValue]) -> Option<SegmentValue> {
    let here: Vec<&CustomerValue> = customers.iter().filter(|customer| customer.segment == segment).collect();
    let n = count(here.len());
    let sum = |of: fn(&CustomerValue) -> i64| here.iter().map(|c| of(c)).sum::<i64>();
    let orders = sum(|customer| customer.orders);
    let gross = histories.iter().filter(|history| history.segment == segment).map(|history| history.gross).sum();
    (n > 0).then(|| SegmentValue {
        segment,
        customers: n,
        active: sum(|customer| i64::from(customer.is_active)),
        orders_per_customer: per(orders, n),
        average_order_cents: mean_cents(gross, orders),
        net_per_customer_cents: mean_cents(sum(|c| c.net_cents), n),
        expected_per_customer_cents: mean_cents(sum(|c| c.expected_cents), n),
        value_per_customer_cents: mean_cents(sum(|c| c.value_cents), n),
    })
}
