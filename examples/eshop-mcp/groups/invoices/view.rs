//! What tools show of an invoice: a card for lists, its state after a write, and the parts of the whole sheet.

use rusqlite::{Row, params};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    common::{Change, Currency, CustomerId, InvoiceId, OrderId, Sku},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    values::words,
};

words!(/// Kind of paper.
    InvoiceKind { Invoice = "invoice", CreditNote = "credit_note" });
words!(/// State of an invoice; credit notes are issued from the start.
    InvoiceStatus { Issued = "issued", Draft = "draft", Paid = "paid", Cancelled = "cancelled" });
words!(/// Way that a reminder goes.
    ReminderChannel { Email = "email", Post = "post" });

/// Invoice or credit note in short.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InvoiceCard {
    pub(crate) id: InvoiceId,
    /// Pass as `expected_version` when writing.
    pub(crate) version: i64,
    /// Number in the year's series; absent on drafts.
    pub(crate) number: Option<String>,
    pub(crate) kind: InvoiceKind,
    pub(crate) status: InvoiceStatus,
    pub(crate) customer_id: CustomerId,
    pub(crate) customer: String,
    pub(crate) order_id: Option<OrderId>,
    /// Invoice that a credit note corrects.
    pub(crate) corrects: Option<InvoiceId>,
    pub(crate) amounts: Amounts,
    pub(crate) issued_on: Option<Date>,
    pub(crate) due_on: Option<Date>,
    /// Days past the due day of an issued invoice; absent when not overdue.
    pub(crate) days_overdue: Option<i64>,
    pub(crate) created_at: String,
}

/// Amounts in hundredths; all are negative on credit notes.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Amounts {
    pub(crate) currency: Currency,
    /// Without VAT.
    pub(crate) net_cents: i64,
    pub(crate) vat_cents: i64,
    /// net + VAT.
    pub(crate) total_cents: i64,
    /// Settled by payments, and set off by credit notes.
    pub(crate) paid_cents: i64,
    /// total - paid while issued, otherwise 0.
    pub(crate) open_cents: i64,
    /// Sum of the credit notes that correct it, 0 or negative.
    pub(crate) credited_cents: i64,
}

/// Invoice as a write leaves it; invoices_get has the rest.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InvoiceState {
    pub(crate) id: InvoiceId,
    /// Pass as `expected_version` when writing again.
    pub(crate) version: i64,
    /// Number in the year's series; absent on drafts.
    pub(crate) number: Option<String>,
    pub(crate) kind: InvoiceKind,
    pub(crate) status: InvoiceStatus,
    pub(crate) customer_id: CustomerId,
    pub(crate) order_id: Option<OrderId>,
    pub(crate) amounts: Amounts,
    pub(crate) issued_on: Option<Date>,
    pub(crate) due_on: Option<Date>,
}

/// Answer of a write on an invoice.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InvoiceChange {
    pub(crate) invoice: InvoiceState,
    /// What differs from before, one entry per field.
    pub(crate) changes: Vec<Change>,
    /// What to do next, if anything follows from it.
    pub(crate) follow_up: Option<String>,
}

/// Line of an invoice; amounts include VAT unless they say otherwise.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InvoiceLine {
    /// Line number; that of the invoice's line on credit notes.
    pub(crate) line: i64,
    pub(crate) description: String,
    /// Absent for shipping, discounts and services.
    pub(crate) sku: Option<Sku>,
    /// Negative on credit notes.
    pub(crate) quantity: i64,
    /// Price of one.
    pub(crate) unit_cents: i64,
    pub(crate) vat_percent: i64,
    /// Without VAT.
    pub(crate) net_cents: i64,
    pub(crate) vat_cents: i64,
    /// quantity * unit.
    pub(crate) total_cents: i64,
}

/// Sums of all lines with one VAT rate.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VatSum {
    pub(crate) percent: i64,
    /// Tax base.
    pub(crate) net_cents: i64,
    pub(crate) vat_cents: i64,
    pub(crate) total_cents: i64,
}

/// A reminder that went out.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Reminder {
    /// 1 to 3.
    pub(crate) level: i64,
    pub(crate) channel: ReminderChannel,
    /// Charged with the reminder, not part of the invoice.
    pub(crate) fee_cents: i64,
    pub(crate) message: String,
    pub(crate) sent_at: String,
    /// Login of the sender.
    pub(crate) by: Option<String>,
}

/// Columns of [`InvoiceCard`], with customers as `c`.
pub(crate) const CARD_COLUMNS: &str = "i.id, i.version, i.number, i.kind, i.status, i.customer_id, c.name as customer, i.order_id,
    i.corrects_id, i.currency, i.net_cents, i.vat_cents, i.total_cents, i.paid_cents, i.issued_on, i.due_on, i.created_at,
    case i.status when 'issued' then i.total_cents - i.paid_cents else 0 end as open_cents,
    (select coalesce(sum(n.total_cents), 0) from invoices n where n.corrects_id = i.id) as credited_cents";

/// Tables of [`InvoiceCard`].
pub(crate) const CARD_TABLES: &str = "invoices i join customers c on c.id = i.customer_id";

/// Reads a card; `today` tells what is overdue.
///
/// # Errors
/// When a column is missing or of another type.
pub(crate) fn card(row: &Row<'_>, today: Date) -> rusqlite::Result<InvoiceCard> {
    let (kind, status): (InvoiceKind, InvoiceStatus) = (row.get("kind")?, row.get("status")?);
    let due_on: Option<Date> = row.get("due_on")?;
    let is_owed = kind == InvoiceKind::Invoice && status == InvoiceStatus::Issued;
    Ok(InvoiceCard {
        id: row.get("id")?,
        version: row.get("version")?,
        number: row.get("number")?,
        kind,
        status,
        customer_id: row.get("customer_id")?,
        customer: row.get("customer")?,
        order_id: row.get("order_id")?,
        corrects: row.get("corrects_id")?,
        amounts: Amounts {
            currency: row.get("currency")?,
            net_cents: row.get("net_cents")?,
            vat_cents: row.get("vat_cents")?,
            total_cents: row.get("total_cents")?,
            paid_cents: row.get("paid_cents")?,
            open_cents: row.get("open_cents")?,
            credited_cents: row.get("credited_cents")?,
        },
        issued_on: row.get("issued_on")?,
        due_on,
        days_overdue: due_on.map(|due| today.days_since(due)).filter(|days| is_owed && *days > 0),
        created_at: row.get("created_at")?,
    })
}

/// Reads the card of one invoice.
///
/// # Errors
/// `Refused` with `not_found`.
pub(crate) fn card_of(ctx: &Ctx<'_>, id: InvoiceId) -> Result<InvoiceCard, ShopError> {
    let sql = format!("select {CARD_COLUMNS} from {CARD_TABLES} where i.id = ?");
    ctx.one(&sql, [id], |row| card(row, ctx.today))?
        .ok_or_else(|| ShopError::not_found("invoice", id, "invoices_list").at("id"))
}

/// Reads how a write leaves an invoice.
///
/// # Errors
/// `Refused` with `not_found`.
pub(crate) fn state_of(ctx: &Ctx<'_>, id: InvoiceId) -> Result<InvoiceState, ShopError> {
    let card = card_of(ctx, id)?;
    Ok(InvoiceState {
        id: card.id,
        version: card.version,
        number: card.number,
        kind: card.kind,
        status: card.status,
        customer_id: card.customer_id,
        order_id: card.order_id,
        amounts: card.amounts,
        issued_on: card.issued_on,
        due_on: card.due_on,
    })
}

/// Reads the lines of an invoice.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn lines_of(ctx: &Ctx<'_>, id: InvoiceId) -> Result<Vec<InvoiceLine>, ShopError> {
    let sql = "select l.line, l.description, v.sku, l.quantity, l.unit_cents, l.vat_percent, l.net_cents, l.vat_cents, l.total_cents
               from invoice_lines l left join variants v on v.id = l.variant_id where l.invoice_id = ? order by l.line";
    ctx.all(sql, params![id], |row| {
        Ok(InvoiceLine {
            line: row.get(0)?,
            description: row.get(1)?,
            sku: row.get::<_, Option<String>>(2)?.map(Sku),
            quantity: row.get(3)?,
            unit_cents: row.get(4)?,
            vat_percent: row.get(5)?,
            net_cents: row.get(6)?,
            vat_cents: row.get(7)?,
            total_cents: row.get(8)?,
        })
    })
}

/// Sums the lines of an invoice per VAT rate, the highest rate first.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn vat_of(ctx: &Ctx<'_>, id: InvoiceId) -> Result<Vec<VatSum>, ShopError> {
    let sql = "select vat_percent, sum(net_cents), sum(vat_cents), sum(total_cents) from invoice_lines
               where invoice_id = ? group by vat_percent order by vat_percent desc";
    ctx.all(sql, params![id], |row| {
        Ok(VatSum { percent: row.get(0)?, net_cents: row.get(1)?, vat_cents: row.get(2)?, total_cents: row.get(3)? })
    })
}

/// Reads the reminders of an invoice, oldest first.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn reminders_of(ctx: &Ctx<'_>, id: InvoiceId) -> Result<Vec<Reminder>, ShopError> {
    let sql = "select r.level, r.channel, r.fee_cents, r.message, r.sent_at, u.login from reminders r
               left join users u on u.id = r.user_id where r.invoice_id = ? order by r.id";
    ctx.all(sql, params![id], |row| {
        Ok(Reminder {
            level: row.get(0)?,
            channel: row.get(1)?,
            fee_cents: row.get(2)?,
            message: row.get(3)?,
            sent_at: row.get(4)?,
            by: row.get(5)?,
        })
    })
}
