//! One customer with everything about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{CustomerId, Money, OrderId, OrderStatus, PaymentStatus},
    ctx::Ctx,
    error::ShopError,
    groups::customers::view::{Credit, CustomerAddress, CustomerCard, addresses_of, card_of, credit_of},
};

/// Which customer: by code or by e-mail.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetParams {
    /// Code; either this or `email`.
    id: Option<CustomerId>,
    /// E-mail, ignoring case; either this or `id`.
    #[schemars(length(min = 5, max = 120), example = &"novak5@mail.example")]
    email: Option<String>,
    /// How many of the latest orders, notes and changes to include, each.
    #[serde(default = "five")]
    #[schemars(range(min = 0, max = 20), example = 5)]
    recent: i64,
}

fn five() -> i64 {
    5
}

/// A customer with addresses, credit, history and what is known besides.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CustomerSheet {
    customer: CustomerCard,
    /// Company registration number.
    reg_no: Option<String>,
    vat_no: Option<String>,
    marketing_consent: bool,
    /// Billing first, defaults first.
    addresses: Vec<CustomerAddress>,
    credit: Credit,
    /// Orders that were not cancelled, latest year first.
    years: Vec<Year>,
    /// Latest first.
    recent_orders: Vec<RecentOrder>,
    /// Latest first.
    notes: Vec<CustomerNote>,
    /// Writes on the customer's record, latest first.
    history: Vec<Written>,
    /// Customers that were merged into this one.
    merged_from: Vec<CustomerId>,
}

/// What a customer bought in a year.
#[derive(Debug, Serialize, JsonSchema)]
struct Year {
    year: String,
    orders: i64,
    /// With VAT and shipping.
    ordered: Money,
    refunded: Money,
}

/// Order in short.
#[derive(Debug, Serialize, JsonSchema)]
struct RecentOrder {
    id: OrderId,
    status: OrderStatus,
    payment_status: PaymentStatus,
    total: Money,
    placed_at: String,
}

/// A note of the staff.
#[derive(Debug, Serialize, JsonSchema)]
struct CustomerNote {
    at: String,
    /// Login.
    by: String,
    text: String,
}

/// A write on the record.
#[derive(Debug, Serialize, JsonSchema)]
struct Written {
    at: String,
    /// Login.
    by: String,
    tool: String,
    summary: String,
}

pub(crate) fn get(ctx: &Ctx<'_>, params: GetParams) -> Result<CustomerSheet, ShopError> {
    let recent = params.recent;
    let id = find(ctx, params)?;
    let customer = card_of(ctx, id)?;
    let (addresses, credit) = (addresses_of(ctx, id)?, credit_of(ctx, id)?);
    let years = years_of(ctx, id)?;
    let recent_orders = orders_of(ctx, id, recent)?;
    let (notes, history) = (notes_of(ctx, id, recent)?, history_of(ctx, id, recent)?);
    let sql = "select id from customers where merged_into = ? order by id";
    let merged_from = ctx.all(sql, [id], |row| row.get(0))?;
    let sql = "select reg_no, vat_no, marketing_consent from customers where id = ?";
    Ok(ctx.db.query_row(sql, [id], |row| {
        Ok(CustomerSheet {
            customer,
            reg_no: row.get(0)?,
            vat_no: row.get(1)?,
            marketing_consent: row.get(2)?,
            addresses,
            credit,
            years,
            recent_orders,
            notes,
            history,
            merged_from,
        })
    })?)
}

fn find(ctx: &Ctx<'_>, params: GetParams) -> Result<CustomerId, ShopError> {
    match (params.id, params.email) {
        (Some(id), None) => Ok(id),
        (None, Some(email)) => {
            let sql = "select id from customers where lower(email) = lower(?)";
            let id = ctx.one(sql, [&email], |row| row.get(0))?;
            id.ok_or_else(|| ShopError::not_found("customer with e-mail", email, "customers_list").at("email"))
        }
        _ => Err(ShopError::invalid("id", "not the only one of `id` and `email`", "exactly one of them")),
    }
}

fn years_of(ctx: &Ctx<'_>, id: CustomerId) -> Result<Vec<Year>, ShopError> {
    let sql = "select substr(placed_at, 1, 4), count(*), sum(total_cents), sum(refunded_cents), currency from orders
               where customer_id = ? and status <> 'cancelled' group by 1, 5 order by 1 desc";
    ctx.all(sql, [id], |row| {
        let currency = row.get(4)?;
        Ok(Year {
            year: row.get(0)?,
            orders: row.get(1)?,
            ordered: Money::new(row.get(2)?, currency),
            refunded: Money::new(row.get(3)?, currency),
        })
    })
}

fn orders_of(ctx: &Ctx<'_>, id: CustomerId, limit: i64) -> Result<Vec<RecentOrder>, ShopError> {
    let sql = "select id, status, payment_status, total_cents, currency, placed_at from orders
               where customer_id = ? order by placed_at desc, id desc limit ?";
    ctx.all(sql, rusqlite::params![id, limit], |row| {
        Ok(RecentOrder {
            id: row.get(0)?,
            status: row.get(1)?,
            payment_status: row.get(2)?,
            total: Money::new(row.get(3)?, row.get(4)?),
            placed_at: row.get(5)?,
        })
    })
}

fn notes_of(ctx: &Ctx<'_>, id: CustomerId, limit: i64) -> Result<Vec<CustomerNote>, ShopError> {
    let sql = "select n.created_at, u.login, n.body from notes n join users u on u.id = n.author_id
               where n.about = ? order by n.created_at desc, n.id desc limit ?";
    ctx.all(sql, rusqlite::params![id.to_string(), limit], |row| {
        Ok(CustomerNote { at: row.get(0)?, by: row.get(1)?, text: row.get(2)? })
    })
}

fn history_of(ctx: &Ctx<'_>, id: CustomerId, limit: i64) -> Result<Vec<Written>, ShopError> {
    let sql = "select a.at, u.login, a.tool, a.summary from activity a join users u on u.id = a.user_id
               where a.about = ? order by a.at desc, a.id desc limit ?";
    ctx.all(sql, rusqlite::params![id.to_string(), limit], |row| {
        Ok(Written { at: row.get(0)?, by: row.get(1)?, tool: row.get(2)?, summary: row.get(3)? })
    })
}
