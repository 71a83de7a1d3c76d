//! Confirming a list: the goods leave the stock.

use rusqlite::params;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{DeliveryListId, OrderStatus, Version},
    ctx::Ctx,
    error::ShopError,
    groups::{
        deliverylists::{
            edit::{ListEdit, open},
            view::{ListChange, ListLine, ListStatus, lines_of},
        },
        orders,
    },
};

/// Which list, and how.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfirmParams {
    id: DeliveryListId,
    expected_version: Option<Version>,
    /// Count every line as picked in full, without setting each with deliverylists_item_set.
    #[serde(default)]
    #[schemars(example = true)]
    all_picked: bool,
    /// Confirm although pieces are missing; the order keeps them and stays in picking.
    #[serde(default)]
    #[schemars(example = true)]
    allow_short: bool,
}

pub(crate) fn confirm(ctx: &Ctx<'_>, params: ConfirmParams) -> Result<ListChange, ShopError> {
    let mut edit = open(ctx, params.id, params.expected_version)?;
    edit.require(
        &[ListStatus::Picking],
        "start with `deliverylists_pick_start`; a confirmed list stays so until it is cancelled",
    )?;
    check_order(ctx, &edit)?;
    if params.all_picked {
        ctx.run("update delivery_list_items set picked = quantity where delivery_list_id = ?", [edit.id])?;
    }
    let lines = lines_of(ctx, edit.id)?;
    let missing = check_lines(&edit, &lines, params.allow_short)?;
    take(ctx, &mut edit, &lines)?;
    edit.go(ctx, ListStatus::Confirmed, "confirmed_at")?;
    let left: i64 = orders::contents(ctx, edit.order_id)?.iter().map(|piece| piece.waiting).sum();
    let follow_up = if left > 0 {
        edit.move_order(ctx, OrderStatus::Picking)?;
        format!("{left} pieces of the order are not taken yet: deliverylists_create for what is on no list")
    } else {
        edit.move_order(ctx, OrderStatus::Packed)?;
        "create the parcel with balikobot_shipment_create".to_owned()
    };
    let message = match missing {
        0 => "confirmed in full".to_owned(),
        missing => format!("confirmed, {missing} pieces missing"),
    };
    edit.close(ctx, &message, Some(follow_up))
}

fn check_order(ctx: &Ctx<'_>, edit: &ListEdit) -> Result<(), ShopError> {
    let order = orders::open(ctx, edit.order_id, None)?;
    order.require(
        &[OrderStatus::Confirmed, OrderStatus::Picking, OrderStatus::Packed],
        "take the order off hold with `orders_status_change`, or cancel the list",
    )?;
    if order.warehouse_id == edit.warehouse_id {
        return Ok(());
    }
    Err(ShopError::state(
        format!("order {} ships from another warehouse than {}", order.id, edit.id),
        "cancel the list with `deliverylists_cancel` and make a new one",
    ))
}

/// Refuses empty lists, missing pieces and pieces that are not there; returns how many are missing.
fn check_lines(edit: &ListEdit, lines: &[ListLine], allow_short: bool) -> Result<i64, ShopError> {
    let picked: i64 = lines.iter().map(|line| line.picked).sum();
    let missing: i64 = lines.iter().map(|line| line.quantity - line.picked).sum();
    if picked == 0 {
        return Err(ShopError::state(
            format!("nothing is picked on {}", edit.id),
            "set what is picked with `deliverylists_item_set`, or cancel it with `deliverylists_cancel`",
        ));
    }
    for line in lines {
        // Two lines may share a variant, so the shelf is compared with all of them.
        let needed: i64 = lines.iter().filter(|other| other.sku == line.sku).map(|other| other.picked).sum();
        if needed > line.on_hand {
            return Err(ShopError::state(
                format!("{}: {needed} picked, {} on hand", line.sku.0, line.on_hand),
                "set what was really found with `deliverylists_item_set`",
            ));
        }
    }
    if missing > 0 && !allow_short {
        let short: Vec<String> = lines
            .iter()
            .filter(|line| line.picked < line.quantity)
            .map(|line| format!("line {}: {} of {}", line.line, line.picked, line.quantity))
            .collect();
        return Err(ShopError::state(
            format!("{missing} pieces are missing ({})", short.join(", ")),
            "pick them, or confirm with `allow_short`, or with `all_picked` if they are there",
        ));
    }
    Ok(missing)
}

fn take(ctx: &Ctx<'_>, edit: &mut ListEdit, lines: &[ListLine]) -> Result<(), ShopError> {
    for line in lines.iter().filter(|line| line.picked > 0) {
        let variant_id: i64 = ctx.value("select id from variants where sku = ?", params![line.sku.0])?;
        orders::take(ctx, edit.order_id, variant_id, edit.warehouse_id, line.picked)?;
        let after: i64 = ctx.value(
            "select on_hand from stock where variant_id = ? and warehouse_id = ?",
            [variant_id, edit.warehouse_id],
        )?;
        let field = format!("stock[{}].on_hand", line.sku.0);
        edit.changed(&field, Some(after + line.picked), Some(after));
    }
    Ok(())
}
