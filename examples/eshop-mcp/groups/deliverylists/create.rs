//! Making a delivery list for what an order still has to be picked.

use rusqlite::params;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{DeliveryListId, OrderId, OrderStatus, Version},
    ctx::Ctx,
    error::ShopError,
    groups::{
        deliverylists::{
            edit::{self, ListEdit, picker_id},
            view::ListChange,
        },
        orders,
    },
};

/// Pieces of a line to pick.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PickLine {
    /// Number of the order's line, from orders_get.
    #[schemars(range(min = 1), example = 1)]
    line: i64,
    /// Pieces; all that are on no list yet when absent.
    #[schemars(range(min = 1, max = 500), example = 1)]
    quantity: Option<i64>,
}

/// What to pick.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateParams {
    order_id: OrderId,
    /// Version of the order, as orders_get gave it; when it has a newer one, the call fails with `conflict`.
    #[schemars(example = 3)]
    expected_version: Option<Version>,
    /// Lines to pick now; everything that is on no list yet when absent.
    #[serde(default)]
    #[schemars(length(max = 50), example = serde_json::json!([{"line": 1, "quantity": 1}]))]
    lines: Vec<PickLine>,
    /// Login of the person meant to pick.
    #[schemars(regex(pattern = "^[a-z]{2,20}$"), example = &"petr")]
    picker: Option<String>,
    /// Note for the picker, printed on the list.
    #[schemars(length(min = 2, max = 300), example = &"Wrap the stove separately.")]
    note: Option<String>,
}

/// A line of the order with pieces on no list.
#[derive(Debug)]
struct Open {
    item_id: i64,
    line: i64,
    sku: String,
    /// Pieces on no list that is alive.
    quantity: i64,
}

pub(crate) fn create(ctx: &Ctx<'_>, params: CreateParams) -> Result<ListChange, ShopError> {
    let order =
        orders::open(ctx, params.order_id, params.expected_version).map_err(|error| at_order(error, "order_id"))?;
    order.require(
        &[OrderStatus::Confirmed, OrderStatus::Picking],
        "confirm the order with `orders_status_change` first",
    )?;
    let wanted = wanted(open_lines(ctx, params.order_id)?, &params)?;
    let picker = params.picker.as_deref().map(|login| picker_id(ctx, login)).transpose()?;
    // The closing of the edit raises the version to 1.
    let id = DeliveryListId(ctx.insert(
        "insert into delivery_lists (order_id, warehouse_id, status, picker_id, note, created_at, updated_at, version)
         values (?1, ?2, 'draft', ?3, ?4, ?5, ?5, 0)",
        params![params.order_id, order.warehouse_id, picker, params.note, ctx.now()],
    )?);
    let mut edit = edit::open(ctx, id, None)?;
    for open in wanted {
        add(ctx, &mut edit, &open)?;
    }
    orders::event(ctx, params.order_id, "edit", &format!("delivery list {id} made"))?;
    let message = format!("made for {}", params.order_id);
    edit.close(ctx, &message, Some("start picking with deliverylists_pick_start".to_owned()))
}

/// Lines of the order and how much of each no living list has.
fn open_lines(ctx: &Ctx<'_>, id: OrderId) -> Result<Vec<Open>, ShopError> {
    let sql = "select i.id, i.line, v.sku, i.quantity - (select coalesce(sum(case d.status when 'confirmed' then l.picked else l.quantity end), 0)
                   from delivery_list_items l join delivery_lists d on d.id = l.delivery_list_id
                   where l.order_item_id = i.id and d.status <> 'cancelled')
               from order_items i join variants v on v.id = i.variant_id where i.order_id = ? order by i.line";
    ctx.all(sql, [id], |row| {
        Ok(Open { item_id: row.get(0)?, line: row.get(1)?, sku: row.get(2)?, quantity: row.get(3)? })
    })
}

/// Chooses lines and quantities as the caller wants them.
fn wanted(open: Vec<Open>, params: &CreateParams) -> Result<Vec<Open>, ShopError> {
    let id = params.order_id;
    if params.lines.is_empty() {
        let rest: Vec<Open> = open.into_iter().filter(|line| line.quantity > 0).collect();
        if rest.is_empty() {
            return Err(ShopError::state(
                format!("all pieces of order {id} are on delivery lists"),
                "see them with `deliverylists_list`, or cancel one with `deliverylists_cancel`",
            ));
        }
        return Ok(rest);
    }
    let mut chosen: Vec<Open> = Vec::new();
    for (index, wish) in params.lines.iter().enumerate() {
        let field = format!("lines[{index}].line");
        let found = open.iter().find(|open| open.line == wish.line);
        let found = found
            .ok_or_else(|| ShopError::not_found("line", format!("{} in {id}", wish.line), "orders_get").at(&field))?;
        if chosen.iter().any(|open| open.line == wish.line) {
            return Err(ShopError::invalid(&field, wish.line, "each line once"));
        }
        let quantity = wish.quantity.unwrap_or(found.quantity);
        if quantity > found.quantity || quantity == 0 {
            let message =
                format!("line {} has {} pieces on no list, {} wanted", wish.line, found.quantity, quantity.max(1));
            let hint = "take fewer, or cancel the other list with `deliverylists_cancel`";
            return Err(ShopError::state(message, hint).at(&format!("lines[{index}].quantity")));
        }
        chosen.push(Open { sku: found.sku.clone(), quantity, ..*found });
    }
    Ok(chosen)
}

/// Adds a line; its shelf is the one that the variant was last picked from.
fn add(ctx: &Ctx<'_>, edit: &mut ListEdit, open: &Open) -> Result<(), ShopError> {
    ctx.run(
        "insert into delivery_list_items (delivery_list_id, order_item_id, quantity, location)
         values (?1, ?2, ?3, coalesce((select l.location from delivery_list_items l join order_items i on i.id = l.order_item_id
             where i.variant_id = (select variant_id from order_items where id = ?2) order by l.id desc limit 1), 'unknown'))",
        params![edit.id, open.item_id, open.quantity],
    )?;
    let added = format!("{} x {}", open.quantity, open.sku);
    edit.changed(&format!("lines[{}]", open.line), None::<i64>, Some(added));
    Ok(())
}

/// Names the argument that holds the order, where the order's own tools say `id`.
fn at_order(error: ShopError, field: &str) -> ShopError {
    match &error {
        ShopError::Refused(refusal) if refusal.field.as_deref() == Some("id") => error.at(field),
        _ => error,
    }
}
