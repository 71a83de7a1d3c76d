//! One invoice with everything about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Address, InvoiceId},
    ctx::Ctx,
    error::ShopError,
    groups::invoices::{
        payments::{self, Payment},
        view::{
            InvoiceCard, InvoiceKind, InvoiceLine, InvoiceStatus, Reminder, VatSum, card_of, lines_of, reminders_of,
            vat_of,
        },
    },
    values::words,
};

words!(/// A write that the state of the paper allows.
NextStep {
    Issue = "invoices_issue",
    Pay = "invoices_payment_record",
    Credit = "invoices_credit_note_create",
    Remind = "invoices_reminder_send",
    Cancel = "invoices_cancel",
});

/// Which invoice: by code or by number.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetParams {
    /// Code; either this or `number`.
    id: Option<InvoiceId>,
    /// Number as printed on the paper; either this or `id`.
    #[schemars(regex(pattern = "^[0-9]{10}$"), example = &"2026000250")]
    number: Option<String>,
}

/// An invoice with parties, lines, VAT, payments, reminders and corrections.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InvoiceSheet {
    invoice: InvoiceCard,
    supplier: Supplier,
    buyer: Buyer,
    lines: Vec<InvoiceLine>,
    /// VAT recapitulation, the highest rate first.
    vat: Vec<VatSum>,
    /// Oldest first.
    payments: Vec<Payment>,
    /// Oldest first.
    reminders: Vec<Reminder>,
    /// Credit notes that correct this invoice.
    credit_notes: Vec<CreditNote>,
    /// What the customer gives as reference when paying.
    variable_symbol: Option<String>,
    note: Option<String>,
    cancelled_at: Option<String>,
    cancel_reason: Option<String>,
    /// Writes that its state allows now, whatever your role.
    next_steps: Vec<NextStep>,
}

/// The shop as it stands on the paper.
#[derive(Debug, Serialize, JsonSchema)]
struct Supplier {
    name: String,
    vat_no: String,
    email: String,
    phone: String,
}

/// The customer as billed.
#[derive(Debug, Serialize, JsonSchema)]
struct Buyer {
    name: String,
    email: String,
    /// Company registration number.
    reg_no: Option<String>,
    vat_no: Option<String>,
    payment_terms_days: i64,
    /// Billing address of the order, or the customer's default one.
    billing: Option<Address>,
}

/// Credit note in short.
#[derive(Debug, Serialize, JsonSchema)]
struct CreditNote {
    id: InvoiceId,
    number: Option<String>,
    status: InvoiceStatus,
    /// Negative.
    total_cents: i64,
    issued_on: Option<String>,
    /// Why it was written.
    note: Option<String>,
}

pub(crate) fn get(ctx: &Ctx<'_>, params: GetParams) -> Result<InvoiceSheet, ShopError> {
    let id = find(ctx, params)?;
    let invoice = card_of(ctx, id)?;
    let (supplier, buyer) = (supplier(ctx)?, buyer(ctx, id)?);
    let (lines, vat) = (lines_of(ctx, id)?, vat_of(ctx, id)?);
    let payments = payments_of(ctx, id)?;
    let reminders = reminders_of(ctx, id)?;
    let credit_notes = credit_notes_of(ctx, id)?;
    let next_steps = next_steps(&invoice);
    let sql = "select variable_symbol, note, cancelled_at, cancel_reason from invoices where id = ?";
    Ok(ctx.db.query_row(sql, [id], |row| {
        Ok(InvoiceSheet {
            invoice,
            supplier,
            buyer,
            lines,
            vat,
            payments,
            reminders,
            credit_notes,
            variable_symbol: row.get(0)?,
            note: row.get(1)?,
            cancelled_at: row.get(2)?,
            cancel_reason: row.get(3)?,
            next_steps,
        })
    })?)
}

fn find(ctx: &Ctx<'_>, params: GetParams) -> Result<InvoiceId, ShopError> {
    match (params.id, params.number) {
        (Some(id), None) => Ok(id),
        (None, Some(number)) => {
            let sql = "select id from invoices where number = ?";
            let id = ctx.one(sql, [&number], |row| row.get(0))?;
            id.ok_or_else(|| ShopError::not_found("invoice number", number, "invoices_list").at("number"))
        }
        _ => Err(ShopError::invalid("id", "not the only one of `id` and `number`", "exactly one of them")),
    }
}

fn supplier(ctx: &Ctx<'_>) -> Result<Supplier, ShopError> {
    let setting = |key: &str| ctx.value("select value from settings where key = ?", [key]);
    Ok(Supplier {
        name: setting("name")?,
        vat_no: setting("vat_no")?,
        email: setting("email")?,
        phone: setting("phone")?,
    })
}

fn buyer(ctx: &Ctx<'_>, id: InvoiceId) -> Result<Buyer, ShopError> {
    let sql = "select a.name, a.street, a.city, a.postcode, a.country from invoices i
               left join orders o on o.id = i.order_id
               join addresses a on a.id = coalesce(o.billing_address_id, (select b.id from addresses b
                   where b.customer_id = i.customer_id and b.kind = 'billing' order by b.is_default desc, b.id limit 1))
               where i.id = ?";
    let billing = ctx.one(sql, [id], Address::read)?;
    let sql = "select c.name, c.email, c.reg_no, c.vat_no, c.payment_terms_days from customers c
               join invoices i on i.customer_id = c.id where i.id = ?";
    Ok(ctx.db.query_row(sql, [id], |row| {
        Ok(Buyer {
            name: row.get(0)?,
            email: row.get(1)?,
            reg_no: row.get(2)?,
            vat_no: row.get(3)?,
            payment_terms_days: row.get(4)?,
            billing,
        })
    })?)
}

fn payments_of(ctx: &Ctx<'_>, id: InvoiceId) -> Result<Vec<Payment>, ShopError> {
    let sql = format!(
        "select {} from {} where p.invoice_id = ? order by p.paid_on, p.id",
        payments::COLUMNS,
        payments::TABLES
    );
    ctx.all(&sql, [id], payments::payment)
}

fn credit_notes_of(ctx: &Ctx<'_>, id: InvoiceId) -> Result<Vec<CreditNote>, ShopError> {
    let sql = "select id, number, status, total_cents, issued_on, note from invoices where corrects_id = ? order by id";
    ctx.all(sql, [id], |row| {
        Ok(CreditNote {
            id: row.get(0)?,
            number: row.get(1)?,
            status: row.get(2)?,
            total_cents: row.get(3)?,
            issued_on: row.get(4)?,
            note: row.get(5)?,
        })
    })
}

fn next_steps(invoice: &InvoiceCard) -> Vec<NextStep> {
    let amounts = &invoice.amounts;
    let is_creditable = amounts.total_cents + amounts.credited_cents > 0;
    match (invoice.kind, invoice.status) {
        (InvoiceKind::Invoice, InvoiceStatus::Draft) => vec![NextStep::Issue, NextStep::Cancel],
        (InvoiceKind::Invoice, InvoiceStatus::Issued) => {
            let mut steps = vec![NextStep::Pay, NextStep::Credit];
            if invoice.days_overdue.is_some() {
                steps.push(NextStep::Remind);
            }
            if amounts.paid_cents == 0 && amounts.credited_cents == 0 {
                steps.push(NextStep::Cancel);
            }
            steps
        }
        (InvoiceKind::Invoice, InvoiceStatus::Paid) if is_creditable => vec![NextStep::Credit],
        (InvoiceKind::CreditNote, InvoiceStatus::Issued) => vec![NextStep::Pay],
        _ => Vec::new(),
    }
}
