//! The whole history of each customer, which lifetime value and churn start from.

use std::collections::BTreeMap;

use crate::{
    common::{Currency, CustomerId},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::analytics::{
        facts::{Sale, SaleFilter, Segment, sales},
        period::Span,
    },
};

/// A customer with all orders that were not cancelled.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) id: CustomerId,
    pub(crate) name: String,
    pub(crate) segment: Segment,
    /// Days of the orders, in order; never empty.
    pub(crate) days: Vec<Date>,
    pub(crate) first: Date,
    pub(crate) last: Date,
    pub(crate) gross: i64,
    pub(crate) net: i64,
    /// Net of the 365 days up to today.
    pub(crate) net_of_year: i64,
}

/// Reads the histories of a segment, of all when none is given, by code.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn histories(
    ctx: &Ctx<'_>,
    segment: Option<Segment>,
    currency: Currency,
) -> Result<Vec<History>, ShopError> {
    let filter = SaleFilter { segment, ..SaleFilter::default() };
    // Longer than any shop's books.
    let all = Span::new(ctx.today.plus_days(-20_000), ctx.today);
    let year = Span::new(ctx.today.plus_days(-364), ctx.today);
    let mut histories: BTreeMap<CustomerId, History> = BTreeMap::new();
    for sale in sales(ctx, all, &filter, currency)? {
        add(&mut histories, &sale, year.contains(sale.day));
    }
    Ok(histories.into_values().collect())
}

fn add(histories: &mut BTreeMap<CustomerId, History>, sale: &Sale, is_of_year: bool) {
    let history = histories.entry(sale.customer_id).or_insert_with(|| History {
        id: sale.customer_id,
        name: sale.customer.clone(),
        segment: sale.segment,
        days: Vec::new(),
        first: sale.day,
        last: sale.day,
        gross: 0,
        net: 0,
        net_of_year: 0,
    });
    history.days.push(sale.day);
    history.last = sale.day;
    history.gross += sale.gross;
    history.net += sale.net();
    if is_of_year {
        history.net_of_year += sale.net();
    }
}
