//! Moving lines of an order into an order of their own.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Change, OrderId, Version},
    ctx::Ctx,
    error::ShopError,
    groups::orders::{
        edit::{Edit, event, open, paid_cents, recompute, settle},
        items::{find, trim_lists},
        view::{OrderState, state_of},
    },
};

/// Pieces of a line to move.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SplitLine {
    /// Number of the line, from orders_get.
    #[schemars(range(min = 1), example = 2)]
    line: i64,
    /// Pieces; all of the line when absent.
    #[schemars(range(min = 1, max = 500), example = 1)]
    quantity: Option<i64>,
}

/// What to split off.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SplitParams {
    id: OrderId,
    expected_version: Option<Version>,
    /// What goes into the new order; something must stay.
    #[schemars(length(min = 1, max = 50), example = serde_json::json!([{"line": 2, "quantity": 1}]))]
    lines: Vec<SplitLine>,
    /// Why.
    #[schemars(length(min = 3, max = 200), example = &"boots arrive next week")]
    reason: String,
}

/// Both orders.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Split {
    order: OrderState,
    /// What was split off.
    part: OrderState,
    /// What differs from before, one entry per field of the first order.
    changes: Vec<Change>,
}

pub(crate) fn split(ctx: &Ctx<'_>, params: SplitParams) -> Result<Split, ShopError> {
    let mut edit = open(ctx, params.id, params.expected_version)?;
    edit.require_open()?;
    if edit.refunded_cents > 0 {
        return Err(ShopError::state(
            format!("order {} was refunded in part, which cannot be divided", edit.id),
            "ship it whole, or cancel it and create two orders",
        ));
    }
    refuse_fixed_discounts(ctx, edit.id)?;
    let part = copy_head(ctx, edit.id)?;
    for (index, line) in params.lines.iter().enumerate() {
        move_line(ctx, &mut edit, part, line, index)?;
    }
    let left: i64 = ctx.value("select count(*) from order_items where order_id = ?", [edit.id])?;
    if left == 0 {
        return Err(ShopError::invalid("lines", "all of the order", "a part of it: something must stay"));
    }
    recompute(ctx, part)?;
    move_payments(ctx, edit.id, part)?;
    recompute(ctx, edit.id)?;
    event(ctx, part, "placed", &format!("split from {}: {}", edit.id, params.reason))?;
    let message = format!("split off {part}: {}", params.reason);
    let change = edit.close(ctx, "split", &message, None)?;
    Ok(Split { order: change.order, part: state_of(ctx, part)?, changes: change.changes })
}

/// A fixed amount belongs to neither half by rule, so a person has to decide first.
fn refuse_fixed_discounts(ctx: &Ctx<'_>, id: OrderId) -> Result<(), ShopError> {
    let n_fixed: i64 = ctx.value("select count(*) from discounts where order_id = ? and percent is null", [id])?;
    if n_fixed == 0 {
        return Ok(());
    }
    Err(ShopError::state(
        format!("order {id} has discounts of a fixed amount, which cannot be divided"),
        "ship it whole, or cancel it and create two orders",
    ))
}

fn copy_head(ctx: &Ctx<'_>, id: OrderId) -> Result<OrderId, ShopError> {
    let part = OrderId(ctx.insert(
        "insert into orders (customer_id, status, channel, source, warehouse_id, currency, items_cents, discount_cents,
             shipping_cents, total_cents, payment_method, payment_status, billing_address_id, shipping_address_id,
             carrier_id, customer_note, internal_note, parent_id, placed_at, updated_at)
         select customer_id, status, channel, source, warehouse_id, currency, 0, 0, 0, 0, payment_method, payment_status,
             billing_address_id, shipping_address_id, carrier_id, customer_note, internal_note, id, placed_at, ?2
         from orders where id = ?1",
        params![id, ctx.now()],
    )?);
    ctx.run(
        "insert into discounts (order_id, percent, amount_cents, reason, user_id, created_at)
         select ?2, percent, 0, reason, user_id, created_at from discounts where order_id = ?1 and item_id is null",
        params![id, part],
    )?;
    Ok(part)
}

/// Books the part's share of what was paid over to it.
fn move_payments(ctx: &Ctx<'_>, id: OrderId, part: OrderId) -> Result<(), ShopError> {
    let part_cents: i64 = ctx.value("select total_cents from orders where id = ?", [part])?;
    let share = paid_cents(ctx, id)?.min(part_cents);
    if share > 0 {
        for (order, cents, text) in
            [(id, -share, format!("moved to {part}")), (part, share, format!("moved from {id}"))]
        {
            ctx.run(
                "insert into payments (order_id, amount_cents, currency, method, paid_on, reference, user_id, created_at)
                 select ?1, ?2, currency, method, ?4, ?3, ?5, ?6 from payments where order_id = ?7 order by id limit 1",
                params![order, cents, text, ctx.today, ctx.user.id, ctx.now(), id],
            )?;
        }
    }
    settle(ctx, part)
}

fn move_line(ctx: &Ctx<'_>, edit: &mut Edit, part: OrderId, line: &SplitLine, index: usize) -> Result<(), ShopError> {
    let found = find(ctx, edit.id, line.line, &format!("lines[{index}].line"))?;
    let quantity = line.quantity.unwrap_or(found.quantity);
    if quantity > found.quantity {
        let allowed = format!("1 to {}, what the line has", found.quantity);
        return Err(ShopError::invalid(&format!("lines[{index}].quantity"), quantity, &allowed));
    }
    let number = i64::try_from(index).unwrap_or(i64::MAX) + 1;
    let item_id = ctx.insert(
        "insert into order_items (order_id, line, variant_id, quantity, unit_cents, total_cents, vat_percent, cost_cents)
         select ?2, ?3, variant_id, ?4, unit_cents, 0, vat_percent, cost_cents from order_items where id = ?1",
        params![found.item_id, part, number, quantity],
    )?;
    ctx.run(
        "insert into discounts (order_id, item_id, percent, amount_cents, reason, user_id, created_at)
         select ?2, ?3, percent, 0, reason, user_id, created_at from discounts where item_id = ?1",
        params![found.item_id, part, item_id],
    )?;
    trim_lists(ctx, found.item_id, found.quantity - quantity)?;
    if quantity == found.quantity {
        ctx.run("delete from discounts where item_id = ?", [found.item_id])?;
        ctx.run("delete from order_items where id = ?", [found.item_id])?;
    } else {
        ctx.run("update order_items set quantity = quantity - ? where id = ?", [quantity, found.item_id])?;
    }
    let (before, after) = (found.quantity, found.quantity - quantity);
    edit.changed(&format!("lines[{}].quantity", line.line), Some(before), Some(after));
    Ok(())
}
