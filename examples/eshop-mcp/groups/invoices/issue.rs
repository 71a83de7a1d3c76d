//! The two ways out of a draft: issuing it, and calling it off; an unpaid issued invoice can be called off too.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Change, InvoiceId, OrderId, OrderStatus, Version},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::invoices::{
        edit::{Edit, number, open, settle_part},
        view::{InvoiceChange, InvoiceState, InvoiceStatus, VatSum, vat_of},
    },
    values::words,
};

/// Nobody has fewer days to pay than this.
const MIN_TERMS_DAYS: i64 = 7;

/// Which draft, and with what days.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct IssueParams {
    id: InvoiceId,
    expected_version: Option<Version>,
    /// Day of issue; today when absent, and never before the last numbered paper of that year.
    #[schemars(example = &"2026-11-27")]
    issued_on: Option<Date>,
    /// Due day; when absent that of the draft, else the customer's payment terms, 7 days at least.
    #[schemars(example = &"2026-12-11")]
    due_on: Option<Date>,
}

/// The issued invoice.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Issued {
    invoice: InvoiceState,
    /// VAT recapitulation, the highest rate first.
    vat: Vec<VatSum>,
    /// Number, and what the customer gives as reference when paying.
    variable_symbol: String,
    /// Payments in advance on the order that now belong to the invoice.
    taken_over_cents: i64,
    /// What differs from before, one entry per field.
    changes: Vec<Change>,
    /// What to do next, if anything follows from it.
    follow_up: Option<String>,
}

pub(crate) fn issue(ctx: &Ctx<'_>, params: IssueParams) -> Result<Issued, ShopError> {
    let mut edit = open(ctx, params.id, params.expected_version, "id")?;
    edit.require(
        &[InvoiceStatus::Draft],
        "an issued invoice stays as it is; correct it with `invoices_credit_note_create`",
    )?;
    if let Some(order_id) = edit.order_id {
        require_same_total(ctx, &edit, order_id)?;
    }
    let (issued_on, due_on) = days(ctx, &edit, &params)?;
    let symbol = number(ctx, edit.id, issued_on, due_on)?;
    edit.changed("number", None::<String>, Some(&symbol));
    edit.changed("issued_on", None::<Date>, Some(issued_on));
    if edit.due_on != Some(due_on) {
        let before = edit.due_on;
        edit.changed("due_on", before, Some(due_on));
    }
    let taken_over_cents = take_over(ctx, &edit)?;
    settle_part(ctx, edit.id, taken_over_cents)?;
    let left = edit.total_cents - taken_over_cents;
    let follow_up = match left {
        0 => None,
        1.. => {
            Some(format!("{left} cents are to be paid until {due_on}; record the money with invoices_payment_record"))
        }
        _ => Some(format!("{} cents too much were paid: orders_refund", -left)),
    };
    let change = edit.close(ctx, &format!("issued as {symbol}"), follow_up)?;
    Ok(Issued {
        vat: vat_of(ctx, change.invoice.id)?,
        invoice: change.invoice,
        variable_symbol: symbol,
        taken_over_cents,
        changes: change.changes,
        follow_up: change.follow_up,
    })
}

/// Refuses a draft whose order was cancelled or costs something else by now.
fn require_same_total(ctx: &Ctx<'_>, edit: &Edit, order_id: OrderId) -> Result<(), ShopError> {
    let sql = "select status, total_cents from orders where id = ?";
    let (status, total): (OrderStatus, i64) =
        ctx.db.query_row(sql, [order_id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if status != OrderStatus::Cancelled && total == edit.total_cents {
        return Ok(());
    }
    Err(ShopError::state(
        format!("the draft bills {} cents, but order {order_id} is {status} and costs {total}", edit.total_cents),
        "end the draft with `invoices_cancel` and make a new one with `invoices_create`",
    ))
}

fn days(ctx: &Ctx<'_>, edit: &Edit, params: &IssueParams) -> Result<(Date, Date), ShopError> {
    let issued_on = params.issued_on.unwrap_or(ctx.today);
    if issued_on > ctx.today {
        let allowed = format!("{} or earlier", ctx.today);
        return Err(ShopError::invalid("issued_on", issued_on, &allowed));
    }
    let terms: i64 = ctx.value(
        "select payment_terms_days from customers c join invoices i on i.customer_id = c.id where i.id = ?",
        [edit.id],
    )?;
    let due_on = params.due_on.or(edit.due_on).unwrap_or_else(|| issued_on.plus_days(terms.max(MIN_TERMS_DAYS)));
    if due_on < issued_on {
        let allowed = format!("{issued_on} or later, the day of issue");
        return Err(ShopError::invalid("due_on", due_on, &allowed));
    }
    Ok((issued_on, due_on))
}

/// Books what was paid on the order in advance on the invoice, and returns the sum.
fn take_over(ctx: &Ctx<'_>, edit: &Edit) -> Result<i64, ShopError> {
    let Some(order_id) = edit.order_id else {
        return Ok(0);
    };
    ctx.run(
        "update payments set invoice_id = ? where order_id = ? and invoice_id is null",
        params![edit.id, order_id],
    )?;
    ctx.value("select coalesce(sum(amount_cents), 0) from payments where invoice_id = ?", [edit.id])
}

words!(/// Why the invoice is called off.
CancelReason {
    WrongData = "wrong_data",
    WrongCustomer = "wrong_customer",
    Duplicate = "duplicate",
    OrderCancelled = "order_cancelled",
    NotDelivered = "not_delivered",
});

/// Which invoice, and why.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelParams {
    id: InvoiceId,
    expected_version: Option<Version>,
    reason: CancelReason,
    /// Details for colleagues and auditors.
    #[schemars(length(max = 200), example = &"Billed to the branch instead of the head office.")]
    note: Option<String>,
}

pub(crate) fn cancel(ctx: &Ctx<'_>, params: CancelParams) -> Result<InvoiceChange, ShopError> {
    let mut edit = open(ctx, params.id, params.expected_version, "id")?;
    edit.require_invoice("a credit note stays; bill what it took back with `invoices_create`")?;
    edit.require(
        &[InvoiceStatus::Draft, InvoiceStatus::Issued],
        "a paid invoice is corrected with `invoices_credit_note_create`",
    )?;
    let n_notes: i64 = ctx.value("select count(*) from invoices where corrects_id = ?", [edit.id])?;
    if edit.paid_cents != 0 || n_notes > 0 {
        return Err(ShopError::state(
            format!("invoice {} has {} cents settled and {n_notes} credit notes", edit.id, edit.paid_cents),
            "take back what is left with `invoices_credit_note_create`",
        ));
    }
    let reason = match &params.note {
        Some(note) => format!("{}: {note}", params.reason),
        None => params.reason.to_string(),
    };
    ctx.run(
        "update invoices set status = 'cancelled', cancelled_at = ?, cancel_reason = ? where id = ?",
        params![ctx.now(), reason, edit.id],
    )?;
    edit.changed("cancel_reason", None::<String>, Some(&reason));
    let follow_up = edit.order_id.map(|order_id| format!("{order_id} can be billed again with invoices_create"));
    edit.close(ctx, &format!("cancelled: {reason}"), follow_up)
}
