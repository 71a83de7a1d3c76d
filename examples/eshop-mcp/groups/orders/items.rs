//! Adding and removing pieces of an order.

use rusqlite::params;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{OrderId, Sku, Version},
    ctx::Ctx,
    error::ShopError,
    groups::orders::{
        edit::{Edit, open, recompute},
        price, stock,
        view::OrderChange,
    },
};

/// What to add.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddParams {
    id: OrderId,
    expected_version: Option<Version>,
    sku: Sku,
    /// Pieces to add.
    #[schemars(range(min = 1, max = 500), example = 1)]
    quantity: i64,
    /// Price of one piece in hundredths; today's price of the customer's list when absent. Other prices take role manager.
    #[schemars(range(min = 1, max = 100_000_000), example = 149_000)]
    unit_cents: Option<i64>,
}

pub(crate) fn add(ctx: &Ctx<'_>, params: AddParams) -> Result<OrderChange, ShopError> {
    let mut edit = open(ctx, params.id, params.expected_version)?;
    edit.require_open()?;
    let variant = stock::sellable(ctx, &params.sku, "sku")?;
    stock::reserve(ctx, variant.id, edit.warehouse_id, params.quantity).map_err(|error| error.at("quantity"))?;
    let list_cents = price::unit_cents(ctx, variant.id, edit.customer_id, edit.currency)?;
    let unit_cents = params.unit_cents.unwrap_or(list_cents);
    if unit_cents != list_cents {
        ctx.user.check("orders_item_add with `unit_cents`", crate::ctx::Role::Manager)?;
    }
    let same: Option<(i64, i64, i64)> = ctx.one(
        "select line, quantity, unit_cents from order_items where order_id = ? and variant_id = ? and unit_cents = ?",
        params![edit.id, variant.id, unit_cents],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    match same {
        Some((line, before, _)) => {
            set_quantity(ctx, &mut edit, line, before, before + params.quantity)?;
        }
        None => {
            let line: i64 =
                ctx.value("select coalesce(max(line), 0) + 1 from order_items where order_id = ?", [edit.id])?;
            ctx.run(
                "insert into order_items (order_id, line, variant_id, quantity, unit_cents, total_cents, vat_percent, cost_cents)
                 values (?1, ?2, ?3, ?4, ?5, ?4 * ?5, ?6, ?7)",
                params![edit.id, line, variant.id, params.quantity, unit_cents, variant.vat_percent, variant.cost_cents],
            )?;
            let added = format!("{} x {}", params.quantity, params.sku.0);
            edit.changed(&format!("lines[{line}]"), None::<i64>, Some(added));
        }
    }
    recompute(ctx, edit.id)?;
    let message = format!("added {} x {}", params.quantity, params.sku.0);
    edit.close(ctx, "item", &message, None)
}

/// What to remove.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoveParams {
    id: OrderId,
    expected_version: Option<Version>,
    /// Number of the line, from orders_get.
    #[schemars(range(min = 1), example = 2)]
    line: i64,
    /// Pieces to remove; all of the line when absent.
    #[schemars(range(min = 1, max = 500), example = 1)]
    quantity: Option<i64>,
}

pub(crate) fn remove(ctx: &Ctx<'_>, params: RemoveParams) -> Result<OrderChange, ShopError> {
    let mut edit = open(ctx, params.id, params.expected_version)?;
    edit.require_open()?;
    let line = find(ctx, edit.id, params.line, "line")?;
    let quantity = params.quantity.unwrap_or(line.quantity);
    let most = line.quantity - line.refunded_quantity;
    if quantity > most {
        let allowed = format!("1 to {most}, what the line has and was not refunded");
        return Err(ShopError::invalid("quantity", quantity, &allowed));
    }
    let left: i64 = ctx.value("select sum(quantity) from order_items where order_id = ?", [edit.id])?;
    if left == quantity {
        return Err(ShopError::state(
            format!("order {} would be left without lines", edit.id),
            "cancel it with `orders_cancel`",
        ));
    }
    stock::release(ctx, line.variant_id, edit.warehouse_id, quantity)?;
    trim_lists(ctx, line.item_id, line.quantity - quantity)?;
    if quantity == line.quantity {
        ctx.run("delete from discounts where item_id = ?", [line.item_id])?;
        ctx.run("delete from order_items where id = ?", [line.item_id])?;
        let removed = format!("{quantity} x {}", line.sku);
        edit.changed(&format!("lines[{}]", params.line), Some(removed), None::<i64>);
    } else {
        set_quantity(ctx, &mut edit, params.line, line.quantity, line.quantity - quantity)?;
    }
    recompute(ctx, edit.id)?;
    edit.close(ctx, "item", &format!("removed {quantity} x {}", line.sku), None)
}

/// A line as writes need it.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) item_id: i64,
    pub(crate) variant_id: i64,
    pub(crate) sku: String,
    pub(crate) quantity: i64,
    pub(crate) total_cents: i64,
    pub(crate) refunded_quantity: i64,
}

/// Finds a line by its number; `field` is the argument's name for errors.
///
/// # Errors
/// `Refused` with `not_found`, naming the lines there are.
pub(crate) fn find(ctx: &Ctx<'_>, id: OrderId, line: i64, field: &str) -> Result<Line, ShopError> {
    let sql = "select i.id, i.variant_id, v.sku, i.quantity, i.total_cents, i.refunded_quantity
               from order_items i join variants v on v.id = i.variant_id where i.order_id = ? and i.line = ?";
    let found = ctx.one(sql, params![id, line], |row| {
        Ok(Line {
            item_id: row.get(0)?,
            variant_id: row.get(1)?,
            sku: row.get(2)?,
            quantity: row.get(3)?,
            total_cents: row.get(4)?,
            refunded_quantity: row.get(5)?,
        })
    })?;
    found.ok_or_else(|| ShopError::not_found("line", format!("{line} in {id}"), "orders_get").at(field))
}

fn set_quantity(ctx: &Ctx<'_>, edit: &mut Edit, line: i64, from: i64, to: i64) -> Result<(), ShopError> {
    ctx.run("update order_items set quantity = ? where order_id = ? and line = ?", params![to, edit.id, line])?;
    edit.changed(&format!("lines[{line}].quantity"), Some(from), Some(to));
    Ok(())
}

/// Takes pieces that an order no longer has from its delivery lists.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn trim_lists(ctx: &Ctx<'_>, item_id: i64, left: i64) -> Result<(), ShopError> {
    ctx.run(
        "update delivery_list_items set quantity = min(quantity, ?2), picked = min(picked, ?2) where order_item_id = ?1",
        [item_id, left],
    )?;
    ctx.run("delete from delivery_list_items where order_item_id = ? and quantity = 0", [item_id])?;
    Ok(())
}
