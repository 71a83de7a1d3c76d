//! What tools show of a customer: a card for lists, the state after a write, addresses and credit.

use rusqlite::Row;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    common::{Address, Change, Currency, CustomerId},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    values::words,
};

words!(/// Kind of customer.
    CustomerKind { Person = "person", Company = "company" });
words!(/// Segment, which is also the price list.
    Segment { Retail = "retail", Club = "club", Wholesale = "wholesale" });
words!(/// Use of an address.
    AddressKind { Shipping = "shipping", Billing = "billing" });

/// Customer in short.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CustomerCard {
    pub(crate) id: CustomerId,
    /// Pass as `expected_version` when writing.
    pub(crate) version: i64,
    pub(crate) kind: CustomerKind,
    pub(crate) name: String,
    pub(crate) email: String,
    pub(crate) phone: Option<String>,
    pub(crate) segment: Segment,
    pub(crate) currency: Currency,
    /// Town and country of the default billing address.
    pub(crate) place: Option<String>,
    /// Orders that were not cancelled.
    pub(crate) orders: i64,
    pub(crate) last_order_at: Option<String>,
    /// Owed on issued invoices, in hundredths of the customer's currency.
    pub(crate) open_cents: i64,
    /// Part of it that is past due.
    pub(crate) overdue_cents: i64,
    pub(crate) created_at: String,
    /// The customer that this one was merged into; closed when present.
    pub(crate) merged_into: Option<CustomerId>,
}

/// Customer as a write leaves it; customers_get has the rest.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CustomerState {
    pub(crate) id: CustomerId,
    /// Pass as `expected_version` when writing again.
    pub(crate) version: i64,
    pub(crate) kind: CustomerKind,
    pub(crate) name: String,
    pub(crate) email: String,
    pub(crate) segment: Segment,
    pub(crate) currency: Currency,
}

/// Answer of a write on a customer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CustomerChange {
    pub(crate) customer: CustomerState,
    /// What differs from before, one entry per field.
    pub(crate) changes: Vec<Change>,
    /// What to do next, if anything follows from it.
    pub(crate) follow_up: Option<String>,
}

/// An address of a customer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CustomerAddress {
    /// Number of the address.
    pub(crate) address: i64,
    pub(crate) kind: AddressKind,
    /// Whether new orders take it when none is given.
    pub(crate) is_default: bool,
    pub(crate) postal: Address,
}

/// What the shop lends, in hundredths of the customer's currency.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Credit {
    pub(crate) limit_cents: i64,
    /// Owed on issued invoices.
    pub(crate) used_cents: i64,
    /// limit - used, 0 at least.
    pub(crate) available_cents: i64,
    /// Part of what is used that is past due.
    pub(crate) overdue_cents: i64,
    /// Orders to be paid on invoice that have no issued one yet; they do not count as used.
    pub(crate) unbilled_cents: i64,
    /// Days to pay.
    pub(crate) payment_terms_days: i64,
}

/// Columns of [`CustomerCard`], with customers as `c`; `today` tells what is overdue.
pub(crate) fn card_columns(today: Date) -> String {
    let owed = "select coalesce(sum(total_cents - paid_cents), 0) from invoices i
                where i.customer_id = c.id and i.kind = 'invoice' and i.status = 'issued'";
    format!(
        "c.id, c.version, c.kind, c.name, c.email, c.phone, c.segment, c.currency, c.created_at, c.merged_into,
         (select a.city || ', ' || a.country from addresses a where a.customer_id = c.id and a.kind = 'billing'
          order by a.is_default desc, a.id limit 1) as place,
         (select count(*) from orders o where o.customer_id = c.id and o.status <> 'cancelled') as orders,
         (select max(placed_at) from orders o where o.customer_id = c.id and o.status <> 'cancelled') as last_order_at,
         ({owed}) as open_cents, ({owed} and i.due_on < '{today}') as overdue_cents"
    )
}

pub(crate) fn card(row: &Row<'_>) -> rusqlite::Result<CustomerCard> {
    Ok(CustomerCard {
        id: row.get("id")?,
        version: row.get("version")?,
        kind: row.get("kind")?,
        name: row.get("name")?,
        email: row.get("email")?,
        phone: row.get("phone")?,
        segment: row.get("segment")?,
        currency: row.get("currency")?,
        place: row.get("place")?,
        orders: row.get("orders")?,
        last_order_at: row.get("last_order_at")?,
        open_cents: row.get("open_cents")?,
        overdue_cents: row.get("overdue_cents")?,
        created_at: row.get("created_at")?,
        merged_into: row.get("merged_into")?,
    })
}

/// Reads the card of one customer.
///
/// # Errors
/// `Refused` with `not_found`.
pub(crate) fn card_of(ctx: &Ctx<'_>, id: CustomerId) -> Result<CustomerCard, ShopError> {
    let sql = format!("select {} from customers c where c.id = ?", card_columns(ctx.today));
    ctx.one(&sql, [id], card)?.ok_or_else(|| ShopError::not_found("customer", id, "customers_list").at("id"))
}

/// Reads how a write leaves a customer.
///
/// # Errors
/// `Db` when the database fails or there is no such customer.
pub(crate) fn state_of(ctx: &Ctx<'_>, id: CustomerId) -> Result<CustomerState, ShopError> {
    let sql = "select version, kind, name, email, segment, currency from customers where id = ?";
    Ok(ctx.db.query_row(sql, [id], |row| {
        Ok(CustomerState {
            id,
            version: row.get(0)?,
            kind: row.get(1)?,
            name: row.get(2)?,
            email: row.get(3)?,
            segment: row.get(4)?,
            currency: row.get(5)?,
        })
    })?)
}

/// Reads the addresses of a customer, billing first, defaults first.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn addresses_of(ctx: &Ctx<'_>, id: CustomerId) -> Result<Vec<CustomerAddress>, ShopError> {
    let sql = "select id, kind, is_default, name, street, city, postcode, country from addresses
               where customer_id = ? order by kind, is_default desc, id";
    ctx.all(sql, [id], |row| {
        Ok(CustomerAddress {
            address: row.get(0)?,
            kind: row.get(1)?,
            is_default: row.get(2)?,
            postal: Address::read(row)?,
        })
    })
}

/// Reads what a customer may owe and owes.
///
/// # Errors
/// `Db` when the database fails or there is no such customer.
pub(crate) fn credit_of(ctx: &Ctx<'_>, id: CustomerId) -> Result<Credit, ShopError> {
    let card = card_of(ctx, id)?;
    let unbilled_cents = ctx.value(
        "select coalesce(sum(total_cents), 0) from orders o where customer_id = ? and payment_method = 'invoice'
             and status not in ('cancelled', 'returned') and not exists
             (select 1 from invoices i where i.order_id = o.id and i.kind = 'invoice' and i.status in ('issued', 'paid'))",
        [id],
    )?;
    let sql = "select credit_limit_cents, payment_terms_days from customers where id = ?";
    Ok(ctx.db.query_row(sql, [id], |row| {
        let limit_cents: i64 = row.get(0)?;
        Ok(Credit {
            limit_cents,
            used_cents: card.open_cents,
            available_cents: (limit_cents - card.open_cents).max(0),
            overdue_cents: card.overdue_cents,
            unbilled_cents,
            payment_terms_days: row.get(1)?,
        })
    })?)
}
