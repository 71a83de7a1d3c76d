//! Which customers bring most.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Country, Currency, CustomerId, DateRange, Limit},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::analytics::{
        facts::{Sale, SaleFilter, Segment, first_orders, sales},
        figures::{Figure, mean_cents, percent},
        period::{Compare, Scope, czk, previous},
        revenue::count,
    },
    values::words,
};

words!(/// What to rank by.
    CustomerMeasure { Net = "net", Orders = "orders", AverageOrder = "average_order" });

/// Which orders, and how to rank.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CustomersParams {
    /// Days of the orders; the last 90 when absent.
    period: Option<DateRange>,
    #[serde(default = "previous")]
    compare: Compare,
    #[serde(default = "czk")]
    currency: Currency,
    #[serde(default = "net")]
    by: CustomerMeasure,
    #[serde(default)]
    limit: Limit,
}

fn net() -> CustomerMeasure {
    CustomerMeasure::Net
}

/// The ranking.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TopCustomers {
    scope: Scope,
    items: Vec<TopCustomer>,
    /// Customers that ordered in the period.
    customers: Figure,
    /// Net of all of them.
    net_cents: Figure,
    /// Share of net that the tenth with the highest net bring, at least one customer.
    top_tenth_percent: Option<f64>,
}

/// A customer and what they brought.
#[derive(Debug, Serialize, JsonSchema)]
struct TopCustomer {
    rank: i64,
    customer_id: CustomerId,
    name: String,
    segment: Segment,
    /// Of the last order's shipping address.
    country: Country,
    orders: i64,
    /// After refunds, VAT included.
    net_cents: Figure,
    /// Of the net of all customers.
    share_percent: Option<f64>,
    /// gross / orders.
    average_order_cents: i64,
    /// Of all time.
    first_order_on: Option<Date>,
    /// In the period.
    last_order_on: Date,
}

/// Customers with their orders.
type Accounts = BTreeMap<CustomerId, Account>;

/// Orders of one customer.
#[derive(Debug)]
struct Account {
    last: Sale,
    orders: i64,
    gross: i64,
    net: i64,
}

impl Account {
    fn measure(&self, by: CustomerMeasure) -> i64 {
        match by {
            CustomerMeasure::Net => self.net,
            CustomerMeasure::Orders => self.orders,
            CustomerMeasure::AverageOrder => mean_cents(self.gross, self.orders),
        }
    }
}

pub(crate) fn top(ctx: &Ctx<'_>, params: CustomersParams) -> Result<TopCustomers, ShopError> {
    let scope = Scope::new(ctx, params.period, 90, params.compare, params.currency)?;
    let now = accounts(sales(ctx, scope.period, &SaleFilter::default(), params.currency)?);
    let before = match scope.compared {
        Some(span) => Some(accounts(sales(ctx, span, &SaleFilter::default(), params.currency)?)),
        None => None,
    };
    let firsts = first_orders(ctx)?;
    let all = net_of(&now);
    let mut nets: Vec<i64> = now.values().map(|account| account.net).collect();
    nets.sort_unstable_by_key(|net| -net);
    let tenth: i64 = nets.iter().take(nets.len().div_ceil(10)).sum();
    let items = items(&params, &now, before.as_ref(), &firsts);
    Ok(TopCustomers {
        scope,
        items,
        customers: Figure::new(count(now.len()), before.as_ref().map(|before| count(before.len()))),
        net_cents: Figure::new(all, before.as_ref().map(net_of)),
        top_tenth_percent: percent(tenth, all),
    })
}

fn items(
    params: &CustomersParams,
    now: &Accounts,
    before: Option<&Accounts>,
    firsts: &BTreeMap<CustomerId, Date>,
) -> Vec<TopCustomer> {
    let all = net_of(now);
    let mut ranked: Vec<(&CustomerId, &Account)> = now.iter().collect();
    ranked.sort_by_key(|(id, account)| (-account.measure(params.by), **id));
    (1..)
        .zip(ranked)
        .take(usize::try_from(params.limit.0).unwrap_or(usize::MAX))
        .map(|(rank, (id, account))| {
            let earlier = before.map(|before| before.get(id).map_or(0, |account| account.net));
            TopCustomer {
                rank,
                customer_id: *id,
                name: account.last.customer.clone(),
                segment: account.last.segment,
                country: account.last.country,
                orders: account.orders,
                net_cents: Figure::new(account.net, earlier),
                share_percent: percent(account.net, all),
                average_order_cents: mean_cents(account.gross, account.orders),
                first_order_on: firsts.get(id).copied(),
                last_order_on: account.last.day,
            }
        })
        .collect()
}

fn net_of(accounts: &Accounts) -> i64 {
    accounts.values().map(|account| account.net).sum()
}

fn accounts(sales: Vec<Sale>) -> Accounts {
    let mut accounts = Accounts::new();
    // Sales come by day, so the last one stays.
    for sale in sales {
        let account = accounts.entry(sale.customer_id).or_insert_with(|| Account {
            last: sale.clone(),
            orders: 0,
            gross: 0,
            net: 0,
        });
        account.orders += 1;
        account.gross += sale.gross;
        account.net += sale.net();
        account.last = sale;
    }
    accounts
}
