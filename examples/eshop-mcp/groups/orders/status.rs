//! The states of an order and the ways between them.

use rusqlite::params;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{OrderId, OrderStatus, PaymentMethod, PaymentStatus, Version},
    ctx::Ctx,
    error::ShopError,
    groups::orders::{
        edit::{Edit, open},
        stock,
        view::OrderChange,
    },
    values::words,
};

words!(/// State to go to; `cancelled` is reached with orders_cancel only.
TargetStatus {
    Confirmed = "confirmed",
    OnHold = "on_hold",
    Picking = "picking",
    Packed = "packed",
    Shipped = "shipped",
    Delivered = "delivered",
    Returned = "returned",
});

/// Where to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatusParams {
    id: OrderId,
    expected_version: Option<Version>,
    to: TargetStatus,
    /// Why; required for `on_hold` and `returned`.
    #[schemars(length(min = 3, max = 200), example = &"waiting for a size 45")]
    reason: Option<String>,
}

impl TargetStatus {
    fn status(self) -> OrderStatus {
        match self {
            Self::Confirmed => OrderStatus::Confirmed,
            Self::OnHold => OrderStatus::OnHold,
            Self::Picking => OrderStatus::Picking,
            Self::Packed => OrderStatus::Packed,
            Self::Shipped => OrderStatus::Shipped,
            Self::Delivered => OrderStatus::Delivered,
            Self::Returned => OrderStatus::Returned,
        }
    }
}

/// The states that follow a state.
pub(crate) fn next(status: OrderStatus) -> &'static [OrderStatus] {
    match status {
        OrderStatus::New => &[OrderStatus::Confirmed, OrderStatus::OnHold],
        OrderStatus::Confirmed => &[OrderStatus::Picking, OrderStatus::OnHold],
        OrderStatus::OnHold => &[OrderStatus::Confirmed],
        OrderStatus::Picking => &[OrderStatus::Packed, OrderStatus::OnHold],
        OrderStatus::Packed => &[OrderStatus::Shipped],
        OrderStatus::Shipped => &[OrderStatus::Delivered, OrderStatus::Returned],
        OrderStatus::Delivered => &[OrderStatus::Returned],
        OrderStatus::Returned | OrderStatus::Cancelled => &[],
    }
}

pub(crate) fn change(ctx: &Ctx<'_>, params: StatusParams) -> Result<OrderChange, ShopError> {
    let mut edit = open(ctx, params.id, params.expected_version)?;
    let to = params.to.status();
    check(&edit, to, params.reason.as_deref())?;
    let now = ctx.now();
    match to {
        OrderStatus::Shipped => {
            stock::ship_all(ctx, edit.id, edit.warehouse_id)?;
            ctx.run("update orders set shipped_at = ? where id = ?", params![now, edit.id])?;
        }
        OrderStatus::Delivered => {
            ctx.run("update orders set delivered_at = ? where id = ?", params![now, edit.id])?;
        }
        _ => {}
    }
    ctx.run("update orders set status = ? where id = ?", params![to, edit.id])?;
    let from = edit.status;
    edit.changed("status", Some(from), Some(to));
    let reason = params.reason.map_or_else(String::new, |reason| format!(": {reason}"));
    let follow_up = match (to, edit.method) {
        (OrderStatus::Packed, _) => Some("create the parcel with balikobot_shipment_create"),
        (OrderStatus::Delivered, PaymentMethod::Cod) => {
            Some("record the carrier's payment with invoices_payment_record")
        }
        (OrderStatus::Returned, _) => Some("refund and restock with orders_refund"),
        _ => None,
    };
    edit.close(ctx, "status", &format!("{from} -> {to}{reason}"), follow_up.map(str::to_owned))
}

fn check(edit: &Edit, to: OrderStatus, reason: Option<&str>) -> Result<(), ShopError> {
    let allowed = next(edit.status);
    if !allowed.contains(&to) {
        let words: Vec<&str> = allowed.iter().map(|status| status.as_str()).collect();
        let hint = if words.is_empty() {
            format!("{} is final", edit.status)
        } else {
            format!("from {} it can go to {}", edit.status, words.join(" or "))
        };
        let message = format!("order {} is {} and cannot become {to}", edit.id, edit.status);
        return Err(ShopError::state(message, hint).at("to"));
    }
    if matches!(to, OrderStatus::OnHold | OrderStatus::Returned) && reason.is_none() {
        return Err(ShopError::invalid("reason", "missing", "a reason, because somebody will ask"));
    }
    let pays_first = matches!(edit.method, PaymentMethod::Card | PaymentMethod::BankTransfer);
    if to == OrderStatus::Confirmed && pays_first && edit.payment == PaymentStatus::Unpaid {
        return Err(ShopError::state(
            format!("order {} is paid by {} and nothing has come in", edit.id, edit.method),
            "record the payment with `invoices_payment_record`, or change the method with `orders_update`",
        ));
    }
    Ok(())
}
