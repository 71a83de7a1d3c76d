//! Setting one line of a delivery list: planned and picked pieces, and the shelf.

use rusqlite::params;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{DeliveryListId, Version},
    ctx::Ctx,
    error::ShopError,
    groups::deliverylists::{
        edit::{ListEdit, open},
        view::{ListChange, ListStatus},
    },
};

/// What to set; what is absent stays.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ItemParams {
    id: DeliveryListId,
    expected_version: Option<Version>,
    /// Number of the order's line, as deliverylists_get shows it.
    #[schemars(range(min = 1), example = 1)]
    line: i64,
    /// Pieces to pick, only in draft; 0 takes the line off the list.
    #[schemars(range(min = 0, max = 500), example = 2)]
    quantity: Option<i64>,
    /// Pieces found and taken so far, only while picking; the whole count, not an addition.
    #[schemars(range(min = 0, max = 500), example = 1)]
    picked: Option<i64>,
    /// Shelf where the goods really are: aisle, rack, level.
    #[schemars(regex(pattern = "^[A-D][0-9]{2}-[1-9]$"), example = &"B07-3")]
    location: Option<String>,
}

/// A line as it stands.
#[derive(Debug)]
struct Line {
    row: i64,
    sku: String,
    quantity: i64,
    picked: i64,
    location: String,
    /// Most that may be planned: ordered, less what other lists have.
    most: i64,
    on_hand: i64,
}

pub(crate) fn set(ctx: &Ctx<'_>, params: ItemParams) -> Result<ListChange, ShopError> {
    let mut edit = open(ctx, params.id, params.expected_version)?;
    edit.require(
        &[ListStatus::Draft, ListStatus::Picking],
        "cancel it with `deliverylists_cancel` and make a new one with `deliverylists_create`",
    )?;
    let line = find(ctx, &edit, params.line)?;
    if let Some(quantity) = params.quantity.filter(|q| *q != line.quantity) {
        plan(ctx, &mut edit, &params, &line, quantity)?;
    }
    if let Some(picked) = params.picked.filter(|p| *p != line.picked) {
        pick(ctx, &mut edit, &params, &line, picked)?;
    }
    if let Some(location) = params.location.filter(|l| *l != line.location) {
        ctx.run("update delivery_list_items set location = ? where id = ?", params![location, line.row])?;
        let field = format!("lines[{}].location", params.line);
        edit.changed(&field, Some(line.location), Some(location));
    }
    if edit.changes.is_empty() {
        return Err(ShopError::state(
            format!("line {} of {} already is so", params.line, edit.id),
            "give a `quantity`, `picked` or `location` that differs from `deliverylists_get`",
        ));
    }
    let message = format!("set line {}, {}", params.line, line.sku);
    edit.close(ctx, &message, None)
}

fn find(ctx: &Ctx<'_>, edit: &ListEdit, number: i64) -> Result<Line, ShopError> {
    let sql = "select l.id, v.sku, l.quantity, l.picked, l.location, coalesce(s.on_hand, 0),
                   i.quantity - (select coalesce(sum(case d.status when 'confirmed' then x.picked else x.quantity end), 0)
                       from delivery_list_items x join delivery_lists d on d.id = x.delivery_list_id
                       where x.order_item_id = i.id and x.id <> l.id and d.status <> 'cancelled')
               from delivery_list_items l join order_items i on i.id = l.order_item_id join variants v on v.id = i.variant_id
               left join stock s on s.variant_id = v.id and s.warehouse_id = ?3
               where l.delivery_list_id = ?1 and i.line = ?2";
    let found = ctx.one(sql, params![edit.id, number, edit.warehouse_id], |row| {
        Ok(Line {
            row: row.get(0)?,
            sku: row.get(1)?,
            quantity: row.get(2)?,
            picked: row.get(3)?,
            location: row.get(4)?,
            on_hand: row.get(5)?,
            most: row.get(6)?,
        })
    })?;
    found.ok_or_else(|| {
        let place = format!("{number} in {}", edit.id);
        ShopError::not_found("line", place, "deliverylists_get").at("line")
    })
}

fn plan(ctx: &Ctx<'_>, edit: &mut ListEdit, params: &ItemParams, line: &Line, quantity: i64) -> Result<(), ShopError> {
    edit.require(
        &[ListStatus::Draft],
        "while picking set `picked`; what is missing stays with the order when the list is confirmed",
    )
    .map_err(|error| error.at("quantity"))?;
    if quantity > line.most {
        let allowed = format!("up to {}, ordered and on no other list", line.most);
        return Err(ShopError::invalid("quantity", quantity, &allowed));
    }
    if quantity > 0 {
        ctx.run("update delivery_list_items set quantity = ? where id = ?", [quantity, line.row])?;
    } else {
        let n_lines: i64 =
            ctx.value("select count(*) from delivery_list_items where delivery_list_id = ?", [edit.id])?;
        if n_lines == 1 {
            return Err(ShopError::state(
                format!("{} would be left without lines", edit.id),
                "cancel it with `deliverylists_cancel`",
            )
            .at("quantity"));
        }
        ctx.run("delete from delivery_list_items where id = ?", [line.row])?;
    }
    let field = format!("lines[{}].quantity", params.line);
    edit.changed(&field, Some(line.quantity), Some(quantity));
    Ok(())
}

fn pick(ctx: &Ctx<'_>, edit: &mut ListEdit, params: &ItemParams, line: &Line, picked: i64) -> Result<(), ShopError> {
    edit.require(&[ListStatus::Picking], "start with `deliverylists_pick_start`")
        .map_err(|error| error.at("picked"))?;
    let most = line.quantity.min(line.on_hand);
    if picked > most {
        let allowed = format!("up to {most}: {} to pick, {} of {} on hand", line.quantity, line.on_hand, line.sku);
        return Err(ShopError::invalid("picked", picked, &allowed));
    }
    ctx.run("update delivery_list_items set picked = ? where id = ?", [picked, line.row])?;
    let field = format!("lines[{}].picked", params.line);
    edit.changed(&field, Some(line.picked), Some(picked));
    Ok(())
}
