//! The search over orders: many filters, and sums over all matches.

use rusqlite::params_from_iter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{
        Country, Currency, DateRange, Limit, MoneyRange, Offset, OrderStatus, PaymentMethod, PaymentStatus,
        SalesChannel, Sku, Warehouse,
    },
    ctx::{Ctx, Listing},
    error::ShopError,
    groups::orders::view::{CARD_COLUMNS, CARD_TABLES, OrderCard, card},
    query::Filter,
};

/// What to look for; conditions add up, values within one list are alternatives.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchParams {
    /// Part of the customer's name or e-mail, or of a note.
    #[schemars(length(min = 2, max = 80), example = &"gift")]
    text: Option<String>,
    #[serde(default)]
    #[schemars(description = "States.", example = [OrderStatus::OnHold])]
    status: Vec<OrderStatus>,
    #[serde(default)]
    #[schemars(description = "Sales channels.", example = [SalesChannel::Eshop])]
    channel: Vec<SalesChannel>,
    #[serde(default)]
    #[schemars(description = "Payment states.", example = [PaymentStatus::Unpaid, PaymentStatus::Partial])]
    payment_status: Vec<PaymentStatus>,
    #[serde(default)]
    #[schemars(description = "Payment methods.", example = [PaymentMethod::Cod])]
    payment_method: Vec<PaymentMethod>,
    /// Orders with this variant among their lines.
    sku: Option<Sku>,
    /// Country of the shipping address.
    country: Option<Country>,
    warehouse: Option<Warehouse>,
    /// Code of the carrier.
    #[schemars(regex(pattern = "^[a-z]{3,10}$"), example = &"dpx")]
    carrier: Option<String>,
    /// Total of the order.
    total: Option<MoneyRange>,
    /// Day it was placed.
    placed: Option<DateRange>,
    /// Day it left the warehouse.
    shipped: Option<DateRange>,
    /// Not yet shipped, returned or cancelled, and placed at least this many days ago.
    #[schemars(range(min = 0, max = 400), example = 3)]
    waiting_days: Option<i64>,
    #[serde(default)]
    limit: Limit,
    #[serde(default)]
    offset: Offset,
}

/// Matches and their sums.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Found {
    /// Newest first.
    items: Vec<OrderCard>,
    /// Matches on all pages.
    total: i64,
    /// Pass as `offset` for the next page; absent on the last.
    next_offset: Option<u32>,
    /// Over all matches, per currency and state.
    sums: Vec<Sum>,
}

/// Number and worth of matches.
#[derive(Debug, Serialize, JsonSchema)]
struct Sum {
    currency: Currency,
    status: OrderStatus,
    orders: i64,
    total_cents: i64,
}

pub(crate) fn search(ctx: &Ctx<'_>, params: SearchParams) -> Result<Found, ShopError> {
    let filter = filter(ctx, &params)?;
    let listing = Listing {
        columns: CARD_COLUMNS,
        from: CARD_TABLES,
        order: "o.placed_at desc, o.id desc",
        limit: params.limit,
        offset: params.offset,
    };
    let page = ctx.page(listing, &filter, card)?;
    let sql = format!(
        "select o.currency, o.status, count(*), sum(o.total_cents) from {CARD_TABLES}{}
         group by o.currency, o.status order by o.currency, o.status",
        filter.to_sql()
    );
    let sums = ctx.all(&sql, params_from_iter(&filter.values), |row| {
        Ok(Sum { currency: row.get(0)?, status: row.get(1)?, orders: row.get(2)?, total_cents: row.get(3)? })
    })?;
    Ok(Found { items: page.items, total: page.total, next_offset: page.next_offset, sums })
}

fn filter(ctx: &Ctx<'_>, params: &SearchParams) -> Result<Filter, ShopError> {
    let mut filter = Filter::default();
    if let Some(text) = &params.text {
        filter.contains(&["c.name", "c.email", "o.customer_note", "o.internal_note"], text);
    }
    filter.any("o.status", &params.status)?;
    filter.any("o.channel", &params.channel)?;
    filter.any("o.payment_status", &params.payment_status)?;
    filter.any("o.payment_method", &params.payment_method)?;
    let sku = params.sku.as_ref().map(|sku| &sku.0);
    filter.bind(
        "o.id in (select order_id from order_items i join variants v on v.id = i.variant_id where v.sku = ?)",
        sku,
    )?;
    filter.bind("(select country from addresses a where a.id = o.shipping_address_id) = ?", params.country.as_ref())?;
    filter.bind("w.code = ?", params.warehouse.as_ref())?;
    filter.bind("o.carrier_id = (select id from carriers where code = ?)", params.carrier.as_ref())?;
    filter.money("o.total_cents", "o.currency", "total", params.total.as_ref())?;
    filter.days("o.placed_at", "placed", params.placed.as_ref())?;
    filter.days("o.shipped_at", "shipped", params.shipped.as_ref())?;
    if let Some(days) = params.waiting_days {
        filter.push("o.status in ('new', 'confirmed', 'on_hold', 'picking', 'packed')");
        let last_day = ctx.today.plus_days(-days);
        filter.bind("substr(o.placed_at, 1, 10) <= ?", Some(&last_day))?;
    }
    Ok(filter)
}
