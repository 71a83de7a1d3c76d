//! Calling an order off before it leaves.

use rusqlite::params;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{OrderId, OrderStatus, PaymentStatus, Version},
    ctx::Ctx,
    error::ShopError,
    groups::orders::{edit::open, stock, view::OrderChange},
    values::words,
};

words!(/// Why the order is called off.
CancelReason {
    Customer = "customer",
    OutOfStock = "out_of_stock",
    Unpaid = "unpaid",
    Fraud = "fraud",
    Duplicate = "duplicate",
});

/// Which order, and why.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelParams {
    id: OrderId,
    expected_version: Option<Version>,
    reason: CancelReason,
    /// Details for colleagues.
    #[schemars(length(max = 200), example = &"Ordered twice by mistake, see ORD-000213.")]
    note: Option<String>,
}

/// What is cancelled along with the order: table, states that can still be, name of the change.
const ALONG: [(&str, &str, &str); 3] = [
    ("delivery_lists", "('draft', 'picking', 'confirmed')", "delivery_lists"),
    ("shipments", "('created')", "shipments"),
    ("invoices", "('draft')", "invoices"),
];

pub(crate) fn cancel(ctx: &Ctx<'_>, params: CancelParams) -> Result<OrderChange, ShopError> {
    let mut edit = open(ctx, params.id, params.expected_version)?;
    edit.require(
        &[OrderStatus::New, OrderStatus::Confirmed, OrderStatus::OnHold, OrderStatus::Picking, OrderStatus::Packed],
        "after it has left use `orders_status_change` to returned, then `orders_refund`",
    )?;
    stock::release_all(ctx, edit.id, edit.warehouse_id)?;
    let reason = match &params.note {
        Some(note) => format!("{}: {note}", params.reason),
        None => params.reason.to_string(),
    };
    ctx.run(
        "update orders set status = 'cancelled', cancelled_at = ?, cancel_reason = ? where id = ?",
        params![ctx.now(), reason, edit.id],
    )?;
    let from = edit.status;
    edit.changed("status", Some(from), Some(OrderStatus::Cancelled));
    for (table, states, field) in ALONG {
        let n_rows = ctx.run(
            &format!(
                "update {table} set status = 'cancelled', version = version + 1, updated_at = ?
                 where order_id = ? and status in {states}"
            ),
            params![ctx.now(), edit.id],
        )?;
        if n_rows > 0 {
            edit.changed(field, None::<i64>, Some(format!("{n_rows} cancelled")));
        }
    }
    let is_paid = matches!(edit.payment, PaymentStatus::Paid | PaymentStatus::Partial | PaymentStatus::PartRefunded);
    let follow_up = is_paid.then(|| "pay the money back with orders_refund".to_owned());
    edit.close(ctx, "status", &format!("{from} -> cancelled: {reason}"), follow_up)
}
