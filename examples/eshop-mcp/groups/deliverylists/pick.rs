//! Starting to pick.

use rusqlite::params;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{DeliveryListId, OrderStatus, Version, first},
    ctx::Ctx,
    error::ShopError,
    groups::{
        deliverylists::{
            edit::{open, picker_id},
            view::{ListChange, ListStatus},
        },
        orders,
    },
};

/// Which list, and who picks.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PickParams {
    id: DeliveryListId,
    expected_version: Option<Version>,
    /// Login of the person who picks; when absent, the one the list names, or else you.
    #[schemars(regex(pattern = "^[a-z]{2,20}$"), example = &"petr")]
    picker: Option<String>,
}

pub(crate) fn start(ctx: &Ctx<'_>, params: PickParams) -> Result<ListChange, ShopError> {
    let mut edit = open(ctx, params.id, params.expected_version)?;
    edit.require(
        &[ListStatus::Draft],
        "picking starts once; go on with `deliverylists_item_set` and `deliverylists_confirm`",
    )?;
    orders::open(ctx, edit.order_id, None)?.require(
        &[OrderStatus::Confirmed, OrderStatus::Picking],
        "move the order on with `orders_status_change`, or cancel the list",
    )?;
    let sql = "select u.login from delivery_lists d join users u on u.id = d.picker_id where d.id = ?";
    let before: Option<String> = ctx.one(sql, [edit.id], first)?;
    let login = params.picker.or_else(|| before.clone()).unwrap_or_else(|| ctx.user.login.clone());
    let picker = picker_id(ctx, &login)?;
    ctx.run("update delivery_lists set picker_id = ? where id = ?", params![picker, edit.id])?;
    if before.as_ref() != Some(&login) {
        edit.changed("picker", before, Some(&login));
    }
    edit.go(ctx, ListStatus::Picking, "picking_at")?;
    edit.move_order(ctx, OrderStatus::Picking)?;
    let next = "set what is picked with deliverylists_item_set, then deliverylists_confirm";
    edit.close(ctx, &format!("{login} picks"), Some(next.to_owned()))
}
