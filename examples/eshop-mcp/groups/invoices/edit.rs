//! How a write opens an invoice and closes it again.
//!
//! [`open`] reads the invoice and compares versions; [`Edit::close`] raises the version, leaves a line in the
//! activity log, and answers. Numbers of the year's series are given here too.

use rusqlite::params;

use crate::{
    common::{Change, Currency, InvoiceId, OrderId, Version},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::invoices::view::{InvoiceChange, InvoiceKind, InvoiceStatus, state_of},
};

/// An invoice that is being written.
#[derive(Debug)]
pub(crate) struct Edit {
    pub(crate) id: InvoiceId,
    pub(crate) kind: InvoiceKind,
    pub(crate) status: InvoiceStatus,
    pub(crate) version: i64,
    pub(crate) order_id: Option<OrderId>,
    pub(crate) currency: Currency,
    pub(crate) total_cents: i64,
    pub(crate) paid_cents: i64,
    pub(crate) number: Option<String>,
    pub(crate) due_on: Option<Date>,
    pub(crate) changes: Vec<Change>,
}

/// Opens an invoice or credit note for writing; `field` is the argument's name for errors.
///
/// # Errors
/// `Refused` with `not_found` or `conflict`.
pub(crate) fn open(ctx: &Ctx<'_>, id: InvoiceId, expected: Option<Version>, field: &str) -> Result<Edit, ShopError> {
    let sql = "select kind, status, version, order_id, currency, total_cents, paid_cents, number, due_on
               from invoices where id = ?";
    let edit = ctx.one(sql, [id], |row| {
        Ok(Edit {
            id,
            kind: row.get(0)?,
            status: row.get(1)?,
            version: row.get(2)?,
            order_id: row.get(3)?,
            currency: row.get(4)?,
            total_cents: row.get(5)?,
            paid_cents: row.get(6)?,
            number: row.get(7)?,
            due_on: row.get(8)?,
            changes: Vec::new(),
        })
    })?;
    let edit = edit.ok_or_else(|| ShopError::not_found("invoice", id, "invoices_list").at(field))?;
    Version::check(expected, edit.version, &format!("invoice {id}"))?;
    Ok(edit)
}

impl Edit {
    /// Refuses when the paper is in none of the states.
    ///
    /// # Errors
    /// `Refused` with `state`.
    pub(crate) fn require(&self, states: &[InvoiceStatus], hint: &str) -> Result<(), ShopError> {
        if states.contains(&self.status) {
            return Ok(());
        }
        let words: Vec<&str> = states.iter().map(|status| status.as_str()).collect();
        Err(ShopError::state(
            format!("{} {} is {}; this takes {}", self.kind, self.id, self.status, words.join(" or ")),
            hint,
        ))
    }

    /// Refuses credit notes.
    ///
    /// # Errors
    /// `Refused` with `state`.
    pub(crate) fn require_invoice(&self, hint: &str) -> Result<(), ShopError> {
        match self.kind {
            InvoiceKind::Invoice => Ok(()),
            InvoiceKind::CreditNote => {
                Err(ShopError::state(format!("{} is a credit note; this takes an invoice", self.id), hint))
            }
        }
    }

    /// What is still to be paid; negative on credit notes.
    pub(crate) fn open_cents(&self) -> i64 {
        self.total_cents - self.paid_cents
    }

    /// Records a change.
    pub(crate) fn changed(&mut self, field: &str, from: Option<impl ToString>, to: Option<impl ToString>) {
        self.changes.push(Change::new(field, from, to));
    }

    /// Closes the invoice: new version, activity, answer.
    ///
    /// # Errors
    /// `Db` when the database fails.
    pub(crate) fn close(
        mut self,
        ctx: &Ctx<'_>,
        message: &str,
        follow_up: Option<String>,
    ) -> Result<InvoiceChange, ShopError> {
        touch(ctx, self.id)?;
        ctx.log(self.id, message)?;
        let invoice = state_of(ctx, self.id)?;
        if invoice.status != self.status {
            let before = self.status;
            self.changed("status", Some(before), Some(invoice.status));
        }
        let paid_cents = invoice.amounts.paid_cents;
        if paid_cents != self.paid_cents {
            let before = self.paid_cents;
            self.changed("paid_cents", Some(before), Some(paid_cents));
        }
        Ok(InvoiceChange { invoice, changes: self.changes, follow_up })
    }
}

/// Raises the version of an invoice.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn touch(ctx: &Ctx<'_>, id: InvoiceId) -> Result<(), ShopError> {
    ctx.run("update invoices set version = version + 1, updated_at = ? where id = ?", params![ctx.now(), id])?;
    Ok(())
}

/// Settles a part of an issued paper; it is paid once nothing is open any more.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn settle_part(ctx: &Ctx<'_>, id: InvoiceId, cents: i64) -> Result<(), ShopError> {
    ctx.run("update invoices set paid_cents = paid_cents + ? where id = ?", params![cents, id])?;
    ctx.run(
        "update invoices set status = 'paid' where id = ? and status = 'issued' and abs(paid_cents) >= abs(total_cents)",
        [id],
    )?;
    Ok(())
}

/// Gives a paper the next number of the year's series, which invoices and credit notes share.
///
/// # Errors
/// `Refused` with `invalid` when a paper with a later day has a number already.
pub(crate) fn number(ctx: &Ctx<'_>, id: InvoiceId, issued_on: Date, due_on: Date) -> Result<String, ShopError> {
    let text = issued_on.to_string();
    let year = text.split('-').next().unwrap_or_default();
    let series = format!("{year}%");
    let last: Option<Date> = ctx.value("select max(issued_on) from invoices where number like ?", [&series])?;
    if let Some(last) = last.filter(|last| *last > issued_on) {
        let allowed = format!("{last} or later, the day of the last number in {year}");
        return Err(ShopError::invalid("issued_on", issued_on, &allowed));
    }
    let next: i64 = ctx.value(
        "select coalesce(max(cast(substr(number, 5) as integer)), 0) + 1 from invoices where number like ?",
        [&series],
    )?;
    let number = format!("{year}{next:06}");
    ctx.run(
        "update invoices set status = 'issued', number = ?1, variable_symbol = ?1, issued_on = ?2, due_on = ?3 where id = ?4",
        params![number, issued_on, due_on, id],
    )?;
    Ok(number)
}
