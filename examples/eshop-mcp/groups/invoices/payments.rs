//! The list of payments, and what tools show of one.

use rusqlite::{Row, params_from_iter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, CustomerId, DateRange, Direction, InvoiceId, Limit, MoneyRange, Offset, OrderId},
    ctx::{Ctx, Listing},
    date::Date,
    error::ShopError,
    query::Filter,
    values::words,
};

words!(/// Way that the money went.
    MoneyWay { BankTransfer = "bank_transfer", Card = "card", Cash = "cash", Cod = "cod" });
words!(/// Money in from the customer, or out: paid back, or moved to another order.
    MoneyDirection { In = "in", Out = "out" });
words!(/// What to sort by.
    PaymentSort { PaidOn = "paid_on", CreatedAt = "created_at", Amount = "amount_cents" });

/// Which payments; conditions add up, values within one list are alternatives.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PaymentsParams {
    /// Only payments of this invoice or credit note.
    invoice_id: Option<InvoiceId>,
    /// Only payments of this order, also those in advance.
    order_id: Option<OrderId>,
    /// Only payments of this customer.
    customer_id: Option<CustomerId>,
    /// Part of the reference, such as a variable symbol.
    #[schemars(length(min = 2, max = 40), example = &"ORD-000212")]
    reference: Option<String>,
    direction: Option<MoneyDirection>,
    #[serde(default)]
    #[schemars(description = "Ways; all when absent.", length(max = 4), example = [MoneyWay::BankTransfer])]
    methods: Vec<MoneyWay>,
    /// Day the money moved.
    paid: Option<DateRange>,
    /// Amount; money out counts as positive.
    amount: Option<MoneyRange>,
    /// True for payments in advance that no invoice has taken over yet, false for all others.
    #[schemars(example = true)]
    is_unassigned: Option<bool>,
    /// Login of the person who recorded it; imports from the bank have none.
    #[schemars(length(min = 2, max = 20), example = &"hana")]
    recorded_by: Option<String>,
    #[serde(default = "paid_on")]
    sort: PaymentSort,
    #[serde(default = "desc")]
    sort_direction: Direction,
    #[serde(default)]
    limit: Limit,
    #[serde(default)]
    offset: Offset,
}

fn paid_on() -> PaymentSort {
    PaymentSort::PaidOn
}

fn desc() -> Direction {
    Direction::Desc
}

/// Matches and their sums.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PaymentPage {
    items: Vec<Payment>,
    /// Matches on all pages.
    total: i64,
    /// Pass as `offset` for the next page; absent on the last.
    next_offset: Option<u32>,
    /// Over all matches, per currency, way and direction.
    sums: Vec<PaymentSum>,
}

/// A payment.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Payment {
    /// Number of the payment.
    pub(crate) payment: i64,
    pub(crate) direction: MoneyDirection,
    /// In hundredths, never negative.
    pub(crate) amount_cents: i64,
    pub(crate) currency: Currency,
    pub(crate) method: MoneyWay,
    pub(crate) paid_on: Date,
    /// Absent while it belongs to an order alone.
    pub(crate) invoice_id: Option<InvoiceId>,
    pub(crate) invoice_number: Option<String>,
    pub(crate) order_id: Option<OrderId>,
    pub(crate) customer_id: CustomerId,
    pub(crate) customer: String,
    pub(crate) reference: Option<String>,
    /// Login; absent for imports.
    pub(crate) recorded_by: Option<String>,
    pub(crate) recorded_at: String,
}

/// Number and worth of matches.
#[derive(Debug, Serialize, JsonSchema)]
struct PaymentSum {
    currency: Currency,
    method: MoneyWay,
    direction: MoneyDirection,
    payments: i64,
    amount_cents: i64,
}

/// Columns of [`Payment`].
pub(crate) const COLUMNS: &str = "p.id, case when p.amount_cents < 0 then 'out' else 'in' end as direction,
    abs(p.amount_cents) as amount_cents, p.currency, p.method, p.paid_on, p.invoice_id, i.number, p.order_id, c.id as customer_id,
    c.name as customer, p.reference, u.login, p.created_at";

/// Tables of [`Payment`].
pub(crate) const TABLES: &str =
    "payments p left join invoices i on i.id = p.invoice_id left join orders o on o.id = p.order_id
    join customers c on c.id = coalesce(i.customer_id, o.customer_id) left join users u on u.id = p.user_id";

pub(crate) fn list(ctx: &Ctx<'_>, params: PaymentsParams) -> Result<PaymentPage, ShopError> {
    let filter = filter(&params)?;
    let listing = Listing {
        columns: COLUMNS,
        from: TABLES,
        order: &format!("p.{} {d}, p.id {d}", params.sort, d = params.sort_direction),
        limit: params.limit,
        offset: params.offset,
    };
    let page = ctx.page(listing, &filter, payment)?;
    let sql = format!(
        "select p.currency, p.method, case when p.amount_cents < 0 then 'out' else 'in' end, count(*), sum(abs(p.amount_cents))
         from {TABLES}{} group by 1, 2, 3 order by 1, 2, 3",
        filter.to_sql()
    );
    let sums = ctx.all(&sql, params_from_iter(&filter.values), |row| {
        Ok(PaymentSum {
            currency: row.get(0)?,
            method: row.get(1)?,
            direction: row.get(2)?,
            payments: row.get(3)?,
            amount_cents: row.get(4)?,
        })
    })?;
    Ok(PaymentPage { items: page.items, total: page.total, next_offset: page.next_offset, sums })
}

fn filter(params: &PaymentsParams) -> Result<Filter, ShopError> {
    let mut filter = Filter::default();
    filter.bind("p.invoice_id = ?", params.invoice_id.as_ref())?;
    filter.bind("p.order_id = ?", params.order_id.as_ref())?;
    filter.bind("c.id = ?", params.customer_id.as_ref())?;
    if let Some(text) = &params.reference {
        filter.contains(&["p.reference"], text);
    }
    match params.direction {
        Some(MoneyDirection::In) => filter.push("p.amount_cents >= 0"),
        Some(MoneyDirection::Out) => filter.push("p.amount_cents < 0"),
        None => {}
    }
    filter.any("p.method", &params.methods)?;
    filter.days("p.paid_on", "paid", params.paid.as_ref())?;
    let amount = params.amount.as_ref();
    filter.money("abs(p.amount_cents)", "p.currency", "amount", amount)?;
    match params.is_unassigned {
        Some(true) => filter.push("p.invoice_id is null"),
        Some(false) => filter.push("p.invoice_id is not null"),
        None => {}
    }
    filter.bind("u.login = ?", params.recorded_by.as_ref())?;
    Ok(filter)
}

/// Reads a payment from [`COLUMNS`].
///
/// # Errors
/// When a column is missing or of another type.
pub(crate) fn payment(row: &Row<'_>) -> rusqlite::Result<Payment> {
    Ok(Payment {
        payment: row.get("id")?,
        direction: row.get("direction")?,
        amount_cents: row.get("amount_cents")?,
        currency: row.get("currency")?,
        method: row.get("method")?,
        paid_on: row.get("paid_on")?,
        invoice_id: row.get("invoice_id")?,
        invoice_number: row.get("number")?,
        order_id: row.get("order_id")?,
        customer_id: row.get("customer_id")?,
        customer: row.get("customer")?,
        reference: row.get("reference")?,
        recorded_by: row.get("login")?,
        recorded_at: row.get("created_at")?,
    })
}
