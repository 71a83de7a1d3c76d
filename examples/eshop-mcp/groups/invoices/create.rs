//! A new draft: of an order, or of lines given by hand.

use std::collections::BTreeMap;

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, CustomerId, InvoiceId, OrderId, OrderStatus, Sku, first},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::invoices::{
        lines::{self, Line, STANDARD_PERCENT},
        view::{InvoiceLine, InvoiceState, VatSum, lines_of, state_of, vat_of},
    },
};

/// A line given by hand.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewLine {
    /// What is billed, as the customer reads it.
    #[schemars(length(min = 3, max = 120), example = &"Boot repair")]
    description: String,
    /// Variant, when it is one of the shop's; nothing is taken from stock.
    sku: Option<Sku>,
    #[schemars(description = "How many.", range(min = 1, max = 1000), example = 1)]
    quantity: i64,
    /// Price of one with VAT, in hundredths of the customer's currency.
    #[schemars(range(min = 1, max = 100_000_000), example = 45_000)]
    unit_cents: i64,
    /// VAT rate valid in the shop's country, from core_vat_rates_list.
    #[schemars(range(min = 0, max = 27), example = 21)]
    vat_percent: i64,
}

/// The draft to make.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateParams {
    /// Order to bill whole; either this or `customer_id` with `lines`.
    order_id: Option<OrderId>,
    /// Customer to bill without an order; takes `lines`.
    customer_id: Option<CustomerId>,
    /// What to bill without an order.
    #[serde(default)]
    #[schemars(length(max = 50), example = serde_json::json!([{"description": "Boot repair", "quantity": 1, "unit_cents": 45_000, "vat_percent": 21}]))]
    lines: Vec<NewLine>,
    /// Due day; when absent it follows from the customer's payment terms at issue.
    due_on: Option<Date>,
    /// Printed below the lines, such as the customer's purchase order number.
    #[schemars(length(max = 300), example = &"Your order PO-2026-118")]
    note: Option<String>,
}

/// The draft.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Draft {
    invoice: InvoiceState,
    lines: Vec<InvoiceLine>,
    /// VAT recapitulation, the highest rate first.
    vat: Vec<VatSum>,
    /// Paid on the order in advance; issuing takes it over.
    prepaid_cents: i64,
    /// What to do next.
    follow_up: String,
}

pub(crate) fn create(ctx: &Ctx<'_>, params: CreateParams) -> Result<Draft, ShopError> {
    if let Some(due_on) = params.due_on.filter(|day| *day < ctx.today) {
        let allowed = format!("{} or later", ctx.today);
        return Err(ShopError::invalid("due_on", due_on, &allowed));
    }
    let (customer_id, currency, rows) = match (params.order_id, params.customer_id) {
        (Some(order_id), None) if params.lines.is_empty() => of_order(ctx, order_id)?,
        (None, Some(customer_id)) => by_hand(ctx, customer_id, &params.lines)?,
        _ => {
            return Err(ShopError::invalid(
                "order_id",
                "not the only one of `order_id` and `customer_id`",
                "either `order_id` alone, or `customer_id` with `lines`",
            ));
        }
    };
    let id = InvoiceId(ctx.insert(
        "insert into invoices (kind, status, customer_id, order_id, currency, net_cents, vat_cents, total_cents, due_on, note,
             created_at, updated_at) values ('invoice', 'draft', ?1, ?2, ?3, 0, 0, 0, ?4, ?5, ?6, ?6)",
        params![customer_id, params.order_id, currency, params.due_on, params.note, ctx.now()],
    )?);
    lines::insert(ctx, id, &rows, lines::net)?;
    ctx.log(id, "draft created")?;
    let prepaid_cents = match params.order_id {
        Some(order_id) => prepaid_cents(ctx, order_id)?,
        None => 0,
    };
    Ok(Draft {
        invoice: state_of(ctx, id)?,
        lines: lines_of(ctx, id)?,
        vat: vat_of(ctx, id)?,
        prepaid_cents,
        follow_up: "give it a number and a due day with invoices_issue".to_owned(),
    })
}

/// What was paid on an order and belongs to no invoice yet.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn prepaid_cents(ctx: &Ctx<'_>, order_id: OrderId) -> Result<i64, ShopError> {
    ctx.value(
        "select coalesce(sum(amount_cents), 0) from payments where order_id = ? and invoice_id is null",
        [order_id],
    )
}

type Rows = (CustomerId, Currency, Vec<Line>);

fn of_order(ctx: &Ctx<'_>, id: OrderId) -> Result<Rows, ShopError> {
    let sql = "select customer_id, currency, status, discount_cents, shipping_cents from orders where id = ?";
    let found: Option<(CustomerId, Currency, OrderStatus, i64, i64)> =
        ctx.one(sql, [id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))?;
    let Some((customer_id, currency, status, discount, shipping)) = found else {
        return Err(ShopError::not_found("order", id, "orders_search").at("order_id"));
    };
    if status == OrderStatus::Cancelled {
        let message = format!("order {id} is cancelled");
        let hint = "bill only orders that are delivered or will be; see `orders_get`";
        return Err(ShopError::state(message, hint).at("order_id"));
    }
    require_unbilled(ctx, id)?;
    let mut rows = items(ctx, id)?;
    let spread = lines::spread(-discount, &lines::per_rate(&rows));
    for (percent, cents) in spread {
        push(&mut rows, "Discount on the order", cents, percent);
    }
    if shipping > 0 {
        push(&mut rows, "Shipping", shipping, STANDARD_PERCENT);
    }
    Ok((customer_id, currency, rows))
}

/// Refuses an order with an invoice that is neither cancelled nor credited in full.
fn require_unbilled(ctx: &Ctx<'_>, id: OrderId) -> Result<(), ShopError> {
    let sql = "select id from invoices i where order_id = ? and kind = 'invoice' and status <> 'cancelled'
               and (status = 'draft' or total_cents + (select coalesce(sum(total_cents), 0) from invoices n where n.corrects_id = i.id) > 0)";
    let other: Option<InvoiceId> = ctx.one(sql, [id], first)?;
    match other {
        None => Ok(()),
        Some(other) => Err(ShopError::state(
            format!("order {id} is billed by {other}"),
            "use that one; or end it with `invoices_cancel` or `invoices_credit_note_create` first",
        )
        .at("order_id")),
    }
}

/// The lines of an order, each discount on a line of its own.
fn items(ctx: &Ctx<'_>, id: OrderId) -> Result<Vec<Line>, ShopError> {
    let sql =
        "select trim(p.brand || ' ' || p.name || ' ' || v.name), i.variant_id, i.quantity, i.unit_cents, i.vat_percent,
                   i.discount_cents
               from order_items i join variants v on v.id = i.variant_id join products p on p.id = v.product_id
               where i.order_id = ? order by i.line";
    let items = ctx.all(sql, [id], |row| {
        let line = Line {
            line: 0,
            description: row.get(0)?,
            variant_id: row.get(1)?,
            quantity: row.get(2)?,
            unit_cents: row.get(3)?,
            vat_percent: row.get(4)?,
        };
        Ok((line, row.get::<_, i64>(5)?))
    })?;
    let mut rows: Vec<Line> = Vec::new();
    for (item, discount) in items {
        let text = format!("Discount on {}", item.description);
        let percent = item.vat_percent;
        rows.push(Line { line: number_after(&rows), ..item });
        if discount > 0 {
            push(&mut rows, &text, -discount, percent);
        }
    }
    Ok(rows)
}

fn push(rows: &mut Vec<Line>, text: &str, cents: i64, vat_percent: i64) {
    rows.push(Line {
        line: number_after(rows),
        description: text.to_owned(),
        variant_id: None,
        quantity: 1,
        unit_cents: cents,
        vat_percent,
    });
}

fn number_after(rows: &[Line]) -> i64 {
    rows.last().map_or(1, |line| line.line + 1)
}

fn by_hand(ctx: &Ctx<'_>, id: CustomerId, new: &[NewLine]) -> Result<Rows, ShopError> {
    let sql = "select currency, merged_into from customers where id = ?";
    let found: Option<(Currency, Option<CustomerId>)> = ctx.one(sql, [id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let currency = match found {
        None => {
            return Err(ShopError::not_found("customer", id, "customers_list").at("customer_id"));
        }
        Some((_, Some(other))) => {
            let message = format!("customer {id} was merged into {other}");
            return Err(ShopError::state(message, format!("use {other}")).at("customer_id"));
        }
        Some((currency, None)) => currency,
    };
    if new.is_empty() {
        let allowed = "at least one line without `order_id`";
        return Err(ShopError::invalid("lines", "empty", allowed));
    }
    let rates: BTreeMap<i64, ()> = ctx
        .all(
            "select distinct percent from vat_rates where country = 'CZ' and valid_from <= ? order by percent desc",
            [ctx.today],
            |row| Ok((row.get(0)?, ())),
        )?
        .into_iter()
        .collect();
    let mut rows = Vec::new();
    for (line, new) in (0_i64..).zip(new) {
        if !rates.contains_key(&new.vat_percent) {
            let words: Vec<String> = rates.keys().map(ToString::to_string).collect();
            let field = format!("lines[{line}].vat_percent");
            return Err(ShopError::invalid(&field, new.vat_percent, &words.join(", ")));
        }
        rows.push(Line {
            line: line + 1,
            description: new.description.clone(),
            variant_id: variant_id(ctx, new.sku.as_ref(), line)?,
            quantity: new.quantity,
            unit_cents: new.unit_cents,
            vat_percent: new.vat_percent,
        });
    }
    Ok((id, currency, rows))
}

fn variant_id(ctx: &Ctx<'_>, sku: Option<&Sku>, line: i64) -> Result<Option<i64>, ShopError> {
    let Some(sku) = sku else { return Ok(None) };
    let id: Option<i64> = ctx.one("select id from variants where sku = ?", [&sku.0], first)?;
    match id {
        Some(id) => Ok(Some(id)),
        None => Err(ShopError::not_found("variant", &sku.0, "store_variants_list").at(&format!("lines[{line}].sku"))),
    }
}
