//! Cancelling a list: what it took goes back on the shelf.

use rusqlite::params;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{DeliveryListId, OrderStatus, Version},
    ctx::{Ctx, Role},
    error::ShopError,
    groups::{
        deliverylists::{
            edit::{ListEdit, open},
            view::{ListChange, ListStatus},
        },
        orders,
    },
    values::words,
};

words!(/// Why the list is cancelled.
ListCancelReason {
    OrderChanged = "order_changed",
    OutOfStock = "out_of_stock",
    Mistake = "mistake",
    Damaged = "damaged",
    CustomerWaits = "customer_waits",
});

/// Which list, and why.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelParams {
    id: DeliveryListId,
    expected_version: Option<Version>,
    reason: ListCancelReason,
    /// Details for colleagues.
    #[schemars(length(max = 200), example = &"Picked the wrong color.")]
    note: Option<String>,
}

pub(crate) fn cancel(ctx: &Ctx<'_>, params: CancelParams) -> Result<ListChange, ShopError> {
    let mut edit = open(ctx, params.id, params.expected_version)?;
    edit.require(
        &[ListStatus::Draft, ListStatus::Picking, ListStatus::Confirmed],
        "it is cancelled already; make a new one with `deliverylists_create`",
    )?;
    if edit.status == ListStatus::Confirmed {
        ctx.user.check("deliverylists_cancel on a confirmed list", Role::Manager)?;
        refuse_gone(ctx, &edit)?;
        put_back(ctx, &mut edit)?;
    }
    edit.go(ctx, ListStatus::Cancelled, "cancelled_at")?;
    let order = orders::open(ctx, edit.order_id, None)?;
    if matches!(order.status, OrderStatus::Picking | OrderStatus::Packed) {
        let to = rest(ctx, &edit)?;
        edit.move_order(ctx, to)?;
    }
    let reason = match &params.note {
        Some(note) => format!("cancelled, {}: {note}", params.reason),
        None => format!("cancelled, {}", params.reason),
    };
    let next = "make a new list with deliverylists_create, or see orders_get for the order";
    edit.close(ctx, &reason, Some(next.to_owned()))
}

/// Once a parcel is on its way, goods come back as a return.
fn refuse_gone(ctx: &Ctx<'_>, edit: &ListEdit) -> Result<(), ShopError> {
    orders::open(ctx, edit.order_id, None)?.require(
        &[OrderStatus::Confirmed, OrderStatus::OnHold, OrderStatus::Picking, OrderStatus::Packed],
        "the goods have left: use `orders_status_change` to returned, then `orders_refund` with restock",
    )
}

/// Puts back what this list took. Lists that took nothing from the stock have nothing to put back.
fn put_back(ctx: &Ctx<'_>, edit: &mut ListEdit) -> Result<(), ShopError> {
    let sql = "select i.variant_id, v.sku, sum(l.picked) from delivery_list_items l join order_items i on i.id = l.order_item_id
               join variants v on v.id = i.variant_id where l.delivery_list_id = ? group by i.variant_id order by v.sku";
    let picked: Vec<(i64, String, i64)> = ctx.all(sql, [edit.id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let contents = orders::contents(ctx, edit.order_id)?;
    for (variant_id, sku, picked) in picked {
        let taken = contents.iter().find(|piece| piece.variant_id == variant_id).map_or(0, |piece| piece.taken);
        let quantity = picked.min(taken);
        if quantity <= 0 {
            continue;
        }
        orders::untake(ctx, edit.order_id, variant_id, edit.warehouse_id, quantity)?;
        let after: i64 = ctx.value(
            "select on_hand from stock where variant_id = ? and warehouse_id = ?",
            params![variant_id, edit.warehouse_id],
        )?;
        let field = format!("stock[{sku}].on_hand");
        edit.changed(&field, Some(after - quantity), Some(after));
    }
    Ok(())
}

/// Where the order goes back to: picking while another list is at work, else confirmed.
fn rest(ctx: &Ctx<'_>, edit: &ListEdit) -> Result<OrderStatus, ShopError> {
    let others: i64 = ctx.value(
        "select count(*) from delivery_lists where order_id = ? and id <> ? and status in ('picking', 'confirmed')",
        params![edit.order_id, edit.id],
    )?;
    Ok(if others > 0 { OrderStatus::Picking } else { OrderStatus::Confirmed })
}
