//! The list of invoices: many filters, and sums over all matches.

use rusqlite::params_from_iter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Country, Currency, CustomerId, DateRange, Direction, Limit, MoneyRange, Offset, OrderId, Sku},
    ctx::{Ctx, Listing},
    error::ShopError,
    groups::invoices::view::{CARD_COLUMNS, CARD_TABLES, InvoiceCard, InvoiceKind, InvoiceStatus, card},
    query::Filter,
    values::words,
};

words!(/// What to sort by; drafts have no days and count as oldest.
InvoiceSort {
    CreatedAt = "created_at",
    IssuedOn = "issued_on",
    DueOn = "due_on",
    Number = "number",
    Total = "total_cents",
    Open = "open_cents",
});

/// Which invoices; conditions add up, values within one list are alternatives.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParams {
    /// Part of the number, variable symbol, note, or the customer's name or e-mail.
    #[schemars(length(min = 2, max = 80), example = &"2026000250")]
    text: Option<String>,
    /// States to include; all when absent.
    #[serde(default)]
    #[schemars(length(max = 4), example = [InvoiceStatus::Draft, InvoiceStatus::Issued])]
    status: Vec<InvoiceStatus>,
    /// Only invoices, or only credit notes.
    kind: Option<InvoiceKind>,
    /// Only this customer's papers.
    customer_id: Option<CustomerId>,
    /// Only papers of this order.
    order_id: Option<OrderId>,
    /// Papers with this variant among their lines.
    sku: Option<Sku>,
    /// Country of the customer's default billing address.
    country: Option<Country>,
    /// Total with VAT; that of a credit note counts as positive.
    total: Option<MoneyRange>,
    /// Day of issue; leaves drafts out.
    issued: Option<DateRange>,
    /// Due day; leaves drafts without one out.
    due: Option<DateRange>,
    /// Whether a credit note corrects the invoice.
    #[schemars(example = false)]
    is_credited: Option<bool>,
    #[serde(default = "created_at")]
    sort: InvoiceSort,
    #[serde(default = "desc")]
    direction: Direction,
    #[serde(default)]
    limit: Limit,
    #[serde(default)]
    offset: Offset,
}

fn created_at() -> InvoiceSort {
    InvoiceSort::CreatedAt
}

fn desc() -> Direction {
    Direction::Desc
}

/// Matches and their sums.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InvoicePage {
    items: Vec<InvoiceCard>,
    /// Matches on all pages.
    total: i64,
    /// Pass as `offset` for the next page; absent on the last.
    next_offset: Option<u32>,
    /// Over all matches, per currency, kind and state.
    sums: Vec<InvoiceSum>,
}

/// Number and worth of matches.
#[derive(Debug, Serialize, JsonSchema)]
struct InvoiceSum {
    currency: Currency,
    kind: InvoiceKind,
    status: InvoiceStatus,
    invoices: i64,
    net_cents: i64,
    vat_cents: i64,
    total_cents: i64,
    open_cents: i64,
}

pub(crate) fn list(ctx: &Ctx<'_>, params: ListParams) -> Result<InvoicePage, ShopError> {
    let filter = filter(&params)?;
    let listing = Listing {
        columns: CARD_COLUMNS,
        from: CARD_TABLES,
        order: &order(params.sort, params.direction),
        limit: params.limit,
        offset: params.offset,
    };
    let page = ctx.page(listing, &filter, |row| card(row, ctx.today))?;
    let sql = format!(
        "select i.currency, i.kind, i.status, count(*), sum(i.net_cents), sum(i.vat_cents), sum(i.total_cents),
             sum(case i.status when 'issued' then i.total_cents - i.paid_cents else 0 end)
         from {CARD_TABLES}{} group by 1, 2, 3 order by 1, 2, 3",
        filter.to_sql()
    );
    let sums = ctx.all(&sql, params_from_iter(&filter.values), |row| {
        Ok(InvoiceSum {
            currency: row.get(0)?,
            kind: row.get(1)?,
            status: row.get(2)?,
            invoices: row.get(3)?,
            net_cents: row.get(4)?,
            vat_cents: row.get(5)?,
            total_cents: row.get(6)?,
            open_cents: row.get(7)?,
        })
    })?;
    Ok(InvoicePage { items: page.items, total: page.total, next_offset: page.next_offset, sums })
}

fn order(sort: InvoiceSort, direction: Direction) -> String {
    // What is open is computed, all else are columns of the table.
    let column = match sort {
        InvoiceSort::Open => sort.to_string(),
        _ => format!("i.{sort}"),
    };
    format!("{column} {direction}, i.id {direction}")
}

fn filter(params: &ListParams) -> Result<Filter, ShopError> {
    let mut filter = Filter::default();
    if let Some(text) = &params.text {
        filter.contains(&["i.number", "i.variable_symbol", "i.note", "c.name", "c.email"], text);
    }
    filter.any("i.status", &params.status)?;
    filter.bind("i.kind = ?", params.kind.as_ref())?;
    filter.bind("i.customer_id = ?", params.customer_id.as_ref())?;
    filter.bind("i.order_id = ?", params.order_id.as_ref())?;
    let sku = params.sku.as_ref().map(|sku| &sku.0);
    filter.bind(
        "i.id in (select invoice_id from invoice_lines l join variants v on v.id = l.variant_id where v.sku = ?)",
        sku,
    )?;
    filter.bind(
        "i.customer_id in (select customer_id from addresses where kind = 'billing' and is_default = 1 and country = ?)",
        params.country.as_ref(),
    )?;
    let total = params.total.as_ref();
    filter.money("abs(i.total_cents)", "i.currency", "total", total)?;
    filter.days("i.issued_on", "issued", params.issued.as_ref())?;
    filter.days("i.due_on", "due", params.due.as_ref())?;
    match params.is_credited {
        Some(true) => filter.push("exists (select 1 from invoices n where n.corrects_id = i.id)"),
        Some(false) => {
            filter.push("not exists (select 1 from invoices n where n.corrects_id = i.id)");
        }
        None => {}
    }
    Ok(filter)
}
