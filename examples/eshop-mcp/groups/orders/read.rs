//! One order with everything about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Address, OrderId, OrderStatus},
    ctx::Ctx,
    error::ShopError,
    groups::orders::{
        status,
        view::{OrderCard, OrderLine, Papers, address, card_of, lines_of, papers_of},
    },
};

/// Which order.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetParams {
    id: OrderId,
}

/// An order with lines, addresses, papers and moments.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OrderSheet {
    order: OrderCard,
    lines: Vec<OrderLine>,
    discounts: Vec<Discount>,
    billing: Address,
    shipping: Address,
    /// Code of the carrier; absent when picked up at the store.
    carrier: Option<String>,
    customer_note: Option<String>,
    /// Seen by staff only.
    internal_note: Option<String>,
    papers: Papers,
    /// The order that this one was split from.
    parent: Option<OrderId>,
    /// Orders that were split off from this one.
    parts: Vec<OrderId>,
    shipped_at: Option<String>,
    delivered_at: Option<String>,
    cancelled_at: Option<String>,
    cancel_reason: Option<String>,
    /// States that orders_status_change accepts now.
    next_statuses: Vec<OrderStatus>,
}

/// A discount that was granted.
#[derive(Debug, Serialize, JsonSchema)]
struct Discount {
    /// The line it is for; absent for the whole order.
    line: Option<i64>,
    /// Absent for a fixed amount.
    percent: Option<i64>,
    amount_cents: i64,
    reason: String,
}

pub(crate) fn get(ctx: &Ctx<'_>, params: GetParams) -> Result<OrderSheet, ShopError> {
    let id = params.id;
    let order = card_of(ctx, id)?;
    let next_statuses = status::next(order.status).to_vec();
    let discounts = discounts_of(ctx, id)?;
    let lines = lines_of(ctx, id)?;
    let papers = papers_of(ctx, id)?;
    let parts = ctx.all("select id from orders where parent_id = ? order by id", [id], |r| r.get(0))?;
    let (billing_id, shipping_id): (i64, i64) =
        ctx.db.query_row("select billing_address_id, shipping_address_id from orders where id = ?", [id], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let (billing, shipping) = (address(ctx, billing_id)?, address(ctx, shipping_id)?);
    let sql =
        "select k.code, o.customer_note, o.internal_note, o.parent_id, o.shipped_at, o.delivered_at, o.cancelled_at,
                   o.cancel_reason from orders o left join carriers k on k.id = o.carrier_id where o.id = ?";
    Ok(ctx.db.query_row(sql, [id], |row| {
        Ok(OrderSheet {
            order,
            lines,
            discounts,
            billing,
            shipping,
            carrier: row.get(0)?,
            customer_note: row.get(1)?,
            internal_note: row.get(2)?,
            papers,
            parent: row.get(3)?,
            parts,
            shipped_at: row.get(4)?,
            delivered_at: row.get(5)?,
            cancelled_at: row.get(6)?,
            cancel_reason: row.get(7)?,
            next_statuses,
        })
    })?)
}

fn discounts_of(ctx: &Ctx<'_>, id: OrderId) -> Result<Vec<Discount>, ShopError> {
    ctx.all(
        "select i.line, d.percent, d.amount_cents, d.reason from discounts d left join order_items i on i.id = d.item_id
         where d.order_id = ? order by d.id",
        [id],
        |row| {
            Ok(Discount {
                line: row.get(0)?,
                percent: row.get(1)?,
                amount_cents: row.get(2)?,
                reason: row.get(3)?,
            })
        },
    )
}
