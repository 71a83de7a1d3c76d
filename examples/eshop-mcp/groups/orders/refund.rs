//! Money back to the customer: discounts before the order leaves, refunds after it was paid.

use rusqlite::params;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{OrderId, PaymentStatus, Version},
    ctx::Ctx,
    error::ShopError,
    groups::orders::{
        edit::{Edit, open, paid_cents, recompute},
        items::find,
        stock,
        view::OrderChange,
    },
    values::words,
};

/// Discounts may take this much of what a line or the order costs.
const MAX_DISCOUNT_PERCENT: i64 = 50;

/// The discount.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiscountParams {
    id: OrderId,
    expected_version: Option<Version>,
    /// Number of the line; the whole order when absent.
    #[schemars(range(min = 1), example = 1)]
    line: Option<i64>,
    /// Percent of the price; either this or `amount_cents`.
    #[schemars(range(min = 1, max = 50), example = 10)]
    percent: Option<i64>,
    /// Fixed amount in hundredths of the order's currency; either this or `percent`.
    #[schemars(range(min = 1, max = 100_000_000), example = 20_000)]
    amount_cents: Option<i64>,
    /// Why; kept with the discount.
    #[schemars(length(min = 3, max = 100), example = &"late delivery")]
    reason: String,
}

pub(crate) fn discount(ctx: &Ctx<'_>, params: DiscountParams) -> Result<OrderChange, ShopError> {
    let mut edit = open(ctx, params.id, params.expected_version)?;
    edit.require_open()?;
    let line = params.line.map(|line| find(ctx, edit.id, line, "line")).transpose()?;
    let base = match &line {
        Some(line) => line.total_cents,
        None => ctx.value("select items_cents - discount_cents from orders where id = ?", [edit.id])?,
    };
    let amount = match (params.percent, params.amount_cents) {
        (Some(percent), None) => base * percent / 100,
        (None, Some(amount)) => amount,
        _ => {
            return Err(ShopError::invalid(
                "percent",
                "not the only one of `percent` and `amount_cents`",
                "exactly one of them",
            ));
        }
    };
    let most = base * MAX_DISCOUNT_PERCENT / 100;
    if amount > most {
        let allowed = format!("up to {most}, half of what is left to pay for it");
        return Err(ShopError::invalid("amount_cents", amount, &allowed));
    }
    ctx.run(
        "insert into discounts (order_id, item_id, percent, amount_cents, reason, user_id, created_at) values (?, ?, ?, ?, ?, ?, ?)",
        params![
            edit.id,
            line.as_ref().map(|line| line.item_id),
            params.percent,
            amount,
            params.reason,
            ctx.user.id,
            ctx.now()
        ],
    )?;
    recompute(ctx, edit.id)?;
    let place = params.line.map_or_else(|| "order".to_owned(), |line| format!("lines[{line}]"));
    edit.changed(&format!("{place}.discount"), None::<i64>, Some(amount));
    let message = format!("discount on {place}: {}", params.reason);
    edit.close(ctx, "discount", &message, None)
}

words!(/// Why the customer gets money back.
RefundReason {
    ChangedMind = "changed_mind",
    Damaged = "damaged",
    WrongItem = "wrong_item",
    NotAsDescribed = "not_as_described",
    Late = "late",
    Goodwill = "goodwill",
});
words!(/// How the money goes back; `original` is the way it came.
    RefundMethod { Original = "original", BankTransfer = "bank_transfer", Voucher = "voucher" });

/// Pieces of a line to refund.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefundLine {
    /// Number of the line, from orders_get.
    #[schemars(range(min = 1), example = 1)]
    line: i64,
    /// Pieces.
    #[schemars(range(min = 1, max = 500), example = 1)]
    quantity: i64,
}

/// The refund.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefundParams {
    id: OrderId,
    expected_version: Option<Version>,
    /// Pieces to pay back at what they cost after discounts; either this or `amount_cents`.
    #[serde(default)]
    #[schemars(length(max = 50), example = serde_json::json!([{"line": 1, "quantity": 1}]))]
    lines: Vec<RefundLine>,
    /// Amount in hundredths without reference to lines; either this or `lines`.
    #[schemars(range(min = 1, max = 100_000_000), example = 20_000)]
    amount_cents: Option<i64>,
    reason: RefundReason,
    #[serde(default = "original")]
    method: RefundMethod,
    /// Put the pieces back on the shelf of the order's warehouse; with `lines` only, after they have left.
    #[serde(default)]
    #[schemars(example = true)]
    restock: bool,
}

fn original() -> RefundMethod {
    RefundMethod::Original
}

pub(crate) fn refund(ctx: &Ctx<'_>, params: RefundParams) -> Result<OrderChange, ShopError> {
    let mut edit = open(ctx, params.id, params.expected_version)?;
    if !matches!(edit.payment, PaymentStatus::Paid | PaymentStatus::Partial | PaymentStatus::PartRefunded) {
        return Err(ShopError::state(
            format!("order {} is {}: there is nothing to pay back", edit.id, edit.payment),
            "before payment use `orders_discount_apply` or `orders_cancel`",
        ));
    }
    let (refund_id, amount) = begin(ctx, &edit, &params)?;
    let most = paid_cents(ctx, edit.id)? - edit.refunded_cents;
    if amount > most {
        let allowed = format!("up to {most}, what was paid and not yet refunded");
        return Err(ShopError::invalid("amount_cents", amount, &allowed));
    }
    let status = if amount == most { PaymentStatus::Refunded } else { PaymentStatus::PartRefunded };
    ctx.run("update refunds set amount_cents = ? where id = ?", [amount, refund_id])?;
    ctx.run(
        "update orders set refunded_cents = refunded_cents + ?, payment_status = ? where id = ?",
        params![amount, status, edit.id],
    )?;
    let before = edit.refunded_cents;
    edit.changed("refunded_cents", Some(before), Some(before + amount));
    let invoiced: i64 = ctx.value(
        "select count(*) from invoices where order_id = ? and kind = 'invoice' and status in ('issued', 'paid')",
        [edit.id],
    )?;
    let follow_up = (invoiced > 0).then(|| "correct the invoice with invoices_credit_note_create".to_owned());
    let message = format!("refunded {amount} cents by {}: {}", params.method, params.reason);
    edit.close(ctx, "refund", &message, follow_up)
}

/// Writes the refund's head and lines, and returns its row and the amount asked for.
fn begin(ctx: &Ctx<'_>, edit: &Edit, params: &RefundParams) -> Result<(i64, i64), ShopError> {
    let refund_id = ctx.insert(
        "insert into refunds (order_id, amount_cents, reason, method, restocked, user_id, created_at) values (?, 0, ?, ?, ?, ?, ?)",
        params![edit.id, params.reason, params.method, params.restock, ctx.user.id, ctx.now()],
    )?;
    let amount = match (params.lines.is_empty(), params.amount_cents) {
        (false, None) => refund_lines(ctx, edit, params, refund_id)?,
        (true, Some(amount)) if !params.restock => amount,
        (true, Some(_)) => {
            return Err(ShopError::invalid("restock", "true", "false when `lines` is absent"));
        }
        _ => {
            return Err(ShopError::invalid(
                "lines",
                "not the only one of `lines` and `amount_cents`",
                "exactly one of them",
            ));
        }
    };
    Ok((refund_id, amount))
}

fn refund_lines(ctx: &Ctx<'_>, edit: &Edit, params: &RefundParams, refund_id: i64) -> Result<i64, ShopError> {
    let (items, discount, has_left): (i64, i64, bool) = ctx.db.query_row(
        "select items_cents, discount_cents, shipped_at is not null from orders where id = ?",
        [edit.id],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    if params.restock && !has_left {
        let allowed = "false while the order has not left the warehouse";
        return Err(ShopError::invalid("restock", "true", allowed));
    }
    let mut sum = 0;
    for (index, RefundLine { line, quantity }) in params.lines.iter().enumerate() {
        let found = find(ctx, edit.id, *line, &format!("lines[{index}].line"))?;
        let most = found.quantity - found.refunded_quantity;
        if *quantity > most {
            let allowed = format!("up to {most}, pieces of the line not yet refunded");
            let field = format!("lines[{index}].quantity");
            return Err(ShopError::invalid(&field, quantity, &allowed));
        }
        let gross = found.total_cents * quantity / found.quantity;
        // The line's share of the discount on the whole order.
        let net = gross - gross * discount / items.max(1);
        sum += net;
        ctx.run(
            "insert into refund_items values (?1, ?2, ?3, ?4)
             on conflict do update set quantity = quantity + ?3, amount_cents = amount_cents + ?4",
            params![refund_id, found.item_id, quantity, net],
        )?;
        ctx.run(
            "update order_items set refunded_quantity = refunded_quantity + ? where id = ?",
            params![quantity, found.item_id],
        )?;
        if params.restock {
            stock::take_back(ctx, edit.id, found.variant_id, edit.warehouse_id, *quantity)?;
        }
    }
    Ok(sum)
}
