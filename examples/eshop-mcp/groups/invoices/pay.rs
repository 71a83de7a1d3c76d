//! Recording money: in for an invoice or an order, out for a credit note.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Change, Currency, InvoiceId, Money, OrderId, OrderStatus, PaymentStatus, Version, first},
    ctx::{Ctx, Role},
    date::Date,
    error::ShopError,
    groups::{
        invoices::{
            credit::refund_left,
            edit::{Edit, open, settle_part},
            payments::{MoneyDirection, MoneyWay},
            view::{InvoiceKind, InvoiceState, InvoiceStatus},
        },
        orders,
    },
};

/// The payment.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PayParams {
    /// Invoice that was paid, or credit note that was paid back; either this or `order_id`.
    invoice_id: Option<InvoiceId>,
    /// Order that was paid in advance of its invoice; either this or `invoice_id`.
    order_id: Option<OrderId>,
    /// Version of the invoice or order that you last read; a newer one makes the call fail with `conflict`.
    #[schemars(example = 3)]
    expected_version: Option<Version>,
    /// Amount in the currency of the invoice or order, positive also for a credit note.
    amount: Money,
    method: MoneyWay,
    /// Day the money moved, from the bank statement; today when absent.
    #[schemars(example = &"2026-11-26")]
    paid_on: Option<Date>,
    /// Variable symbol or text from the statement; also keeps the same payment from being recorded twice.
    #[schemars(length(min = 2, max = 40), example = &"2026000250")]
    reference: Option<String>,
}

/// The payment, and what it left behind.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Recorded {
    /// Number of the payment; invoices_payments_list shows it.
    payment: i64,
    direction: MoneyDirection,
    /// Absent for a payment in advance.
    invoice: Option<InvoiceState>,
    /// Absent for papers without an order, and for credit notes.
    order: Option<OrderPayment>,
    /// What differs from before, one entry per field.
    changes: Vec<Change>,
    /// What to do next, if anything follows from it.
    follow_up: Option<String>,
}

/// How far an order is paid now.
#[derive(Debug, Serialize, JsonSchema)]
struct OrderPayment {
    id: OrderId,
    version: i64,
    status: OrderStatus,
    payment_status: PaymentStatus,
    total_cents: i64,
    /// Sum of all payments on the order, with or without an invoice.
    paid_cents: i64,
}

pub(crate) fn record(ctx: &Ctx<'_>, params: PayParams) -> Result<Recorded, ShopError> {
    if params.amount.cents < 1 {
        let found = params.amount.cents;
        return Err(ShopError::invalid("amount.cents", found, "1 or more"));
    }
    if let Some(day) = params.paid_on.filter(|day| *day > ctx.today) {
        let allowed = format!("{} or earlier", ctx.today);
        return Err(ShopError::invalid("paid_on", day, &allowed));
    }
    match (params.invoice_id, params.order_id) {
        (Some(id), None) => on_invoice(ctx, id, &params),
        (None, Some(id)) => on_order(ctx, id, &params),
        _ => Err(ShopError::invalid(
            "invoice_id",
            "not the only one of `invoice_id` and `order_id`",
            "exactly one of them",
        )),
    }
}

fn on_invoice(ctx: &Ctx<'_>, id: InvoiceId, params: &PayParams) -> Result<Recorded, ShopError> {
    let edit = open(ctx, id, params.expected_version, "invoice_id")?;
    edit.require(
        &[InvoiceStatus::Issued],
        "issue a draft with `invoices_issue` first; for a paid or cancelled one see `invoices_get`",
    )?;
    let (direction, sign) = match edit.kind {
        InvoiceKind::Invoice => (MoneyDirection::In, 1),
        InvoiceKind::CreditNote => (MoneyDirection::Out, -1),
    };
    check_amount(params, edit.currency, sign * edit.open_cents())?;
    if edit.kind == InvoiceKind::CreditNote {
        check_out(ctx, &edit, params.amount.cents)?;
    }
    // Money out for a credit note is the order's refund already; as a payment it would count twice.
    let order_id = edit.order_id.filter(|_| edit.kind == InvoiceKind::Invoice);
    let payment = insert(ctx, params, sign, Some(id), order_id)?;
    settle_part(ctx, id, sign * params.amount.cents)?;
    let mut changes = Vec::new();
    let order = order_id.map(|order_id| settle_order(ctx, order_id, &mut changes)).transpose()?;
    let left = edit.open_cents().abs() - params.amount.cents;
    let follow_up = (left > 0).then(|| format!("{left} cents are still open"));
    let message = format!("{} cents by {}, {left} left", params.amount.cents, params.method);
    let mut change = edit.close(ctx, &message, follow_up)?;
    change.changes.append(&mut changes);
    Ok(Recorded {
        payment,
        direction,
        invoice: Some(change.invoice),
        order,
        changes: change.changes,
        follow_up: change.follow_up,
    })
}

/// Refuses money out without a manager, and more than the order's refunds.
fn check_out(ctx: &Ctx<'_>, edit: &Edit, cents: i64) -> Result<(), ShopError> {
    ctx.user.check("invoices_payment_record for a credit note", Role::Manager)?;
    let Some(order_id) = edit.order_id else {
        return Ok(());
    };
    let most = refund_left(ctx, order_id)?;
    if cents <= most {
        return Ok(());
    }
    Err(ShopError::state(
        format!("{most} cents of {order_id} were refunded and settle no credit note yet, {cents} needed"),
        "refund the order with `orders_refund` first",
    )
    .at("amount.cents"))
}

fn on_order(ctx: &Ctx<'_>, id: OrderId, params: &PayParams) -> Result<Recorded, ShopError> {
    let sql = "select version, currency, status, total_cents from orders where id = ?";
    let found: Option<(i64, Currency, OrderStatus, i64)> =
        ctx.one(sql, [id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let Some((version, currency, status, total)) = found else {
        return Err(ShopError::not_found("order", id, "orders_search").at("order_id"));
    };
    Version::check(params.expected_version, version, &format!("order {id}"))?;
    if status == OrderStatus::Cancelled {
        let message = format!("order {id} is cancelled");
        let hint = "send the money back, or record it on the order it is for";
        return Err(ShopError::state(message, hint).at("order_id"));
    }
    let sql = "select id from invoices where order_id = ? and kind = 'invoice' and status = 'issued'";
    if let Some(invoice_id) = ctx.one(sql, [id], first::<InvoiceId>)? {
        let message = format!("order {id} has the open invoice {invoice_id}");
        let hint = format!("record the money on it: `invoice_id` {invoice_id}");
        return Err(ShopError::state(message, hint).at("order_id"));
    }
    check_amount(params, currency, total - orders::paid_cents(ctx, id)?)?;
    let payment = insert(ctx, params, 1, None, Some(id))?;
    let mut changes = Vec::new();
    let order = settle_order(ctx, id, &mut changes)?;
    let message = format!("{} cents in advance by {}", params.amount.cents, params.method);
    ctx.log(id, &message)?;
    let is_next = status == OrderStatus::New && order.payment_status == PaymentStatus::Paid;
    Ok(Recorded {
        payment,
        direction: MoneyDirection::In,
        invoice: None,
        order: Some(order),
        changes,
        follow_up: is_next.then(|| "confirm the order with orders_status_change".to_owned()),
    })
}

fn check_amount(params: &PayParams, currency: Currency, open_cents: i64) -> Result<(), ShopError> {
    let Money { cents, currency: given } = params.amount;
    if given != currency {
        return Err(ShopError::invalid("amount.currency", given, currency.as_str()));
    }
    if cents > open_cents {
        let allowed = format!("up to {open_cents}, what is open");
        return Err(ShopError::invalid("amount.cents", cents, &allowed));
    }
    Ok(())
}

fn insert(
    ctx: &Ctx<'_>,
    params: &PayParams,
    sign: i64,
    invoice_id: Option<InvoiceId>,
    order_id: Option<OrderId>,
) -> Result<i64, ShopError> {
    let paid_on = params.paid_on.unwrap_or(ctx.today);
    let cents = sign * params.amount.cents;
    let same: Option<i64> = ctx.one(
        "select id from payments where reference = ?1 and amount_cents = ?2 and paid_on = ?3
         and (invoice_id = ?4 or order_id = ?5) limit 1",
        params![params.reference, cents, paid_on, invoice_id, order_id],
        first,
    )?;
    if let Some(same) = same {
        let message = format!("payment {same} has the same reference, amount and day");
        let hint = "it is recorded already; give another `reference` if it is a second one";
        return Err(ShopError::state(message, hint).at("reference"));
    }
    ctx.insert(
        "insert into payments (invoice_id, order_id, amount_cents, currency, method, paid_on, reference, user_id, created_at)
         values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            invoice_id,
            order_id,
            cents,
            params.amount.currency,
            params.method,
            paid_on,
            params.reference,
            ctx.user.id,
            ctx.now()
        ],
    )
}

/// Sets the order's payment state from its payments; the order gets a new version when that changes it.
fn settle_order(ctx: &Ctx<'_>, id: OrderId, changes: &mut Vec<Change>) -> Result<OrderPayment, ShopError> {
    let status = || ctx.value("select payment_status from orders where id = ?", [id]);
    let before: PaymentStatus = status()?;
    orders::settle(ctx, id)?;
    let after: PaymentStatus = status()?;
    if after != before {
        ctx.run("update orders set version = version + 1, updated_at = ? where id = ?", params![ctx.now(), id])?;
        let change = Change::new("order.payment_status", Some(before), Some(after));
        changes.push(change);
    }
    let paid_cents = orders::paid_cents(ctx, id)?;
    let sql = "select version, status, total_cents from orders where id = ?";
    Ok(ctx.db.query_row(sql, [id], |row| {
        Ok(OrderPayment {
            id,
            version: row.get(0)?,
            status: row.get(1)?,
            payment_status: after,
            total_cents: row.get(2)?,
            paid_cents,
        })
    })?)
}
