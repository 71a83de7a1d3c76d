//! Credit notes: taking back a part of an issued invoice, or all that is left of it.

use std::collections::BTreeMap;

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{InvoiceId, OrderId, Version},
    ctx::Ctx,
    error::ShopError,
    groups::invoices::{
        edit::{Edit, number, open, settle_part, touch},
        lines::{self, Line},
        view::{InvoiceChange, InvoiceState, InvoiceStatus, VatSum, state_of, vat_of},
    },
    values::words,
};

words!(/// Why the invoice is corrected.
CreditReason {
    Returned = "returned",
    Damaged = "damaged",
    NotDelivered = "not_delivered",
    WrongPrice = "wrong_price",
    Discount = "discount",
    Other = "other",
});

/// Pieces of a line to take back.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreditLine {
    /// Number of the invoice's line, from invoices_get.
    #[schemars(range(min = 1), example = 1)]
    line: i64,
    /// Pieces; all that are left when absent.
    #[schemars(range(min = 1, max = 1000), example = 1)]
    quantity: Option<i64>,
}

/// What to take back; all that is left when neither `lines` nor `amount_cents` is given.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreditParams {
    /// Invoice to correct.
    id: InvoiceId,
    expected_version: Option<Version>,
    /// Pieces to take back at the price they were billed at; a line of a discount is taken along only when listed.
    #[serde(default)]
    #[schemars(length(max = 50), example = serde_json::json!([{"line": 1, "quantity": 1}]))]
    lines: Vec<CreditLine>,
    /// Amount with VAT to take back without reference to lines; divided over the VAT rates by what is left of each.
    #[schemars(range(min = 1, max = 1_000_000_000), example = 20_000)]
    amount_cents: Option<i64>,
    reason: CreditReason,
    /// Details, printed on the credit note.
    #[schemars(length(max = 200), example = &"Zip torn on arrival.")]
    note: Option<String>,
}

/// The credit note and the invoice it corrects.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Credited {
    credit_note: InvoiceState,
    /// VAT recapitulation of the credit note, the highest rate first.
    vat: Vec<VatSum>,
    /// Part that lowered what was open on the invoice.
    set_off_cents: i64,
    /// Part that refunds of the order had paid back already.
    refunded_cents: i64,
    invoice: InvoiceChange,
}

pub(crate) fn create(ctx: &Ctx<'_>, params: CreditParams) -> Result<Credited, ShopError> {
    let edit = open(ctx, params.id, params.expected_version, "id")?;
    edit.require_invoice("correct the invoice that it names in `corrects`")?;
    edit.require(
        &[InvoiceStatus::Issued, InvoiceStatus::Paid],
        "end a draft with `invoices_cancel`; a cancelled invoice has nothing left",
    )?;
    let left = left(ctx, edit.id)?;
    let rows = rows(ctx, &edit, &params, &left)?;
    let note = insert(ctx, &edit, &params)?;
    // What takes the rest of a rate takes the rest of its tax base too, whatever rounding did before.
    lines::insert(ctx, note, &rows, |percent, total| match left.get(&percent) {
        Some(left) if left.total == -total => -left.net,
        _ => lines::net(percent, total),
    })?;
    let number = number(ctx, note, ctx.today, ctx.today)?;
    let credit: i64 = -rows.iter().map(Line::total_cents).sum::<i64>();
    let set_off = credit.min(edit.open_cents().max(0));
    settle_part(ctx, edit.id, set_off)?;
    let refunded = match edit.order_id {
        Some(order_id) => (credit - set_off).min(refund_left(ctx, order_id)?),
        None => 0,
    };
    if refunded > 0 {
        pay_back(ctx, note, &edit, refunded)?;
    }
    settle_part(ctx, note, -set_off - refunded)?;
    touch(ctx, note)?;
    ctx.log(note, &format!("credit note {number} for {}", edit.id))?;
    let message = format!("credited {credit} cents by {number}: {}", params.reason);
    let follow_up = follow_up(note, &edit, credit - set_off - refunded);
    Ok(Credited {
        credit_note: state_of(ctx, note)?,
        vat: vat_of(ctx, note)?,
        set_off_cents: set_off,
        refunded_cents: refunded,
        invoice: edit.close(ctx, &message, follow_up)?,
    })
}

/// What an invoice and its credit notes come to in one VAT rate.
#[derive(Debug)]
struct Left {
    net: i64,
    total: i64,
}

fn left(ctx: &Ctx<'_>, id: InvoiceId) -> Result<BTreeMap<i64, Left>, ShopError> {
    let sql = "select l.vat_percent, sum(l.net_cents), sum(l.total_cents) from invoice_lines l
               join invoices i on i.id = l.invoice_id where i.id = ?1 or i.corrects_id = ?1 group by 1";
    let rows = ctx.all(sql, [id], |row| {
        let left = Left { net: row.get(1)?, total: row.get(2)? };
        Ok((row.get(0)?, left))
    })?;
    Ok(rows.into_iter().collect())
}

/// Makes the lines of the credit note, and refuses more than is left.
fn rows(ctx: &Ctx<'_>, edit: &Edit, params: &CreditParams, left: &BTreeMap<i64, Left>) -> Result<Vec<Line>, ShopError> {
    let most: i64 = left.values().map(|left| left.total).sum();
    if most <= 0 {
        return Err(ShopError::state(
            format!("invoice {} is credited in full", edit.id),
            "see its credit notes with `invoices_get`",
        ));
    }
    let (field, rows) = match (params.lines.is_empty(), params.amount_cents) {
        (false, None) => ("lines", pieces(ctx, edit.id, &params.lines)?),
        (true, None) => ("amount_cents", reductions(ctx, edit, most, left)?),
        (true, Some(amount)) if amount <= most => ("amount_cents", reductions(ctx, edit, amount, left)?),
        (true, Some(amount)) => {
            let allowed = format!("up to {most}, what is left of the invoice");
            return Err(ShopError::invalid("amount_cents", amount, &allowed));
        }
        (false, Some(_)) => {
            return Err(ShopError::invalid(
                "amount_cents",
                "given besides `lines`",
                "one of them, or neither for all that is left",
            ));
        }
    };
    let credit: i64 = -rows.iter().map(Line::total_cents).sum::<i64>();
    if (1..=most).contains(&credit) {
        return Ok(rows);
    }
    let allowed = format!("lines worth 1 to {most}, what is left; list discounts on them too");
    Err(ShopError::invalid(field, format!("worth {credit} cents"), &allowed))
}

/// Lines that take back pieces; each keeps the number of the invoice's line.
fn pieces(ctx: &Ctx<'_>, id: InvoiceId, wanted: &[CreditLine]) -> Result<Vec<Line>, ShopError> {
    // Credit notes have negative quantities, so the sum is what is left.
    let sql = "select l.description, l.variant_id, l.unit_cents, l.vat_percent, l.quantity + (select coalesce(sum(n.quantity), 0)
                   from invoice_lines n join invoices c on c.id = n.invoice_id where c.corrects_id = ?1 and n.line = ?2)
               from invoice_lines l where l.invoice_id = ?1 and l.line = ?2";
    let mut rows: Vec<Line> = Vec::new();
    for (index, CreditLine { line, quantity }) in wanted.iter().enumerate() {
        let field = format!("lines[{index}].line");
        if rows.iter().any(|row| row.line == *line) {
            return Err(ShopError::invalid(&field, line, "each line once"));
        }
        let found = ctx.one(sql, params![id, line], |row| {
            Ok(Line {
                line: *line,
                description: row.get(0)?,
                variant_id: row.get(1)?,
                unit_cents: row.get(2)?,
                vat_percent: row.get(3)?,
                quantity: row.get(4)?,
            })
        })?;
        let found = found.ok_or_else(|| ShopError::not_found("line", line, "invoices_get").at(&field))?;
        let quantity = quantity.unwrap_or(found.quantity);
        if quantity > found.quantity || quantity == 0 {
            let allowed = format!("up to {}, pieces not yet credited", found.quantity);
            let field = format!("lines[{index}].quantity");
            return Err(ShopError::invalid(&field, quantity, &allowed));
        }
        rows.push(Line { quantity: -quantity, ..found });
    }
    Ok(rows)
}

/// Lines that take back an amount, one per VAT rate, or all lines when nothing was credited before.
fn reductions(ctx: &Ctx<'_>, edit: &Edit, amount: i64, left: &BTreeMap<i64, Left>) -> Result<Vec<Line>, ShopError> {
    let all: Vec<CreditLine> =
        ctx.all("select line from invoice_lines where invoice_id = ? order by line", [edit.id], |row| {
            Ok(CreditLine { line: row.get(0)?, quantity: None })
        })?;
    if amount == edit.total_cents {
        return pieces(ctx, edit.id, &all);
    }
    let totals = left.iter().map(|(percent, left)| (*percent, left.total)).collect();
    // Their numbers follow those of the invoice, so they count as pieces of none of its lines.
    let start = all.last().map_or(0, |line| line.line);
    let number = edit.number.as_deref().unwrap_or_default();
    let rows = (start + 1..).zip(lines::spread(amount, &totals));
    Ok(rows
        .map(|(line, (vat_percent, cents))| Line {
            line,
            description: format!("Reduction of invoice {number}"),
            variant_id: None,
            quantity: -1,
            unit_cents: cents,
            vat_percent,
        })
        .collect())
}

fn insert(ctx: &Ctx<'_>, edit: &Edit, params: &CreditParams) -> Result<InvoiceId, ShopError> {
    let text = match &params.note {
        Some(note) => format!("{}: {note}", params.reason),
        None => params.reason.to_string(),
    };
    let id = ctx.insert(
        "insert into invoices (kind, status, customer_id, order_id, corrects_id, currency, net_cents, vat_cents, total_cents,
             note, created_at, updated_at)
         select 'credit_note', 'draft', customer_id, order_id, id, currency, 0, 0, 0, ?1, ?2, ?2 from invoices where id = ?3",
        params![text, ctx.now(), edit.id],
    )?;
    Ok(InvoiceId(id))
}

/// What was refunded on an order and settles no credit note yet.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn refund_left(ctx: &Ctx<'_>, order_id: OrderId) -> Result<i64, ShopError> {
    let left: i64 = ctx.value(
        "select refunded_cents + (select coalesce(sum(p.amount_cents), 0) from payments p join invoices i on i.id = p.invoice_id
             where i.order_id = ?1 and i.kind = 'credit_note') from orders where id = ?1",
        [order_id],
    )?;
    Ok(left.max(0))
}

/// Books money that a refund paid back on the credit note; the order keeps its own payments.
fn pay_back(ctx: &Ctx<'_>, note: InvoiceId, edit: &Edit, cents: i64) -> Result<(), ShopError> {
    let reference = edit.order_id.map(|id| format!("refund of {id}"));
    ctx.run(
        "insert into payments (invoice_id, amount_cents, currency, method, paid_on, reference, user_id, created_at)
         values (?, ?, ?, 'bank_transfer', ?, ?, ?, ?)",
        params![note, -cents, edit.currency, ctx.today, reference, ctx.user.id, ctx.now()],
    )?;
    Ok(())
}

fn follow_up(note: InvoiceId, edit: &Edit, to_pay: i64) -> Option<String> {
    (to_pay > 0).then(|| match edit.order_id {
        Some(order_id) => format!(
            "{to_pay} cents are to be paid back: refund {order_id} with orders_refund, then record it on {note} with invoices_payment_record"
        ),
        None => format!(
            "{to_pay} cents are to be paid back: record it on {note} with invoices_payment_record"
        ),
    })
}
