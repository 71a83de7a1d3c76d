//! One search over all kinds of records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{CustomerId, InvoiceId, Limit, OrderId, ProductId, ShipmentId},
    ctx::Ctx,
    error::ShopError,
    query::Filter,
    values::words,
};

words!(/// Kind of record.
    Kind { Order = "order", Customer = "customer", Product = "product", Invoice = "invoice", Shipment = "shipment" });

/// All kinds, in the order of the answer.
const KINDS: [Kind; 5] = [Kind::Order, Kind::Customer, Kind::Product, Kind::Invoice, Kind::Shipment];

/// What to look for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchParams {
    /// Part of a name, e-mail, SKU, code or number.
    #[schemars(length(min = 2, max = 80), example = &"Dvořák")]
    query: String,
    kind: Option<Kind>,
    #[serde(default)]
    limit: Limit,
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Hits {
    hits: Vec<Hit>,
}

/// One record.
#[derive(Debug, Serialize, JsonSchema)]
struct Hit {
    kind: Kind,
    /// Pass to the tools of its group.
    code: String,
    /// Name, state or date, to tell hits apart.
    label: String,
}

pub(crate) fn search(ctx: &Ctx<'_>, params: SearchParams) -> Result<Hits, ShopError> {
    let mut hits = Vec::new();
    let limit = params.limit.0 as usize;
    for kind in KINDS {
        if params.kind.is_none_or(|only| only == kind) {
            hits.extend(find(ctx, kind, params.query.trim(), limit)?);
        }
    }
    hits.truncate(limit);
    Ok(Hits { hits })
}

fn find(ctx: &Ctx<'_>, kind: Kind, query: &str, limit: usize) -> Result<Vec<Hit>, ShopError> {
    let (select, columns) = place(kind);
    let mut filter = Filter::default();
    filter.contains(columns, query);
    let sql = format!("{select}{} order by o.id desc limit {limit}", filter.to_sql());
    ctx.all(&sql, rusqlite::params_from_iter(&filter.values), |row| {
        let id = row.get(0)?;
        let code = match kind {
            Kind::Order => OrderId(id).to_string(),
            Kind::Customer => CustomerId(id).to_string(),
            Kind::Product => ProductId(id).to_string(),
            Kind::Invoice => InvoiceId(id).to_string(),
            Kind::Shipment => ShipmentId(id).to_string(),
        };
        Ok(Hit { kind, code, label: row.get(1)? })
    })
}

/// The query of a kind, and the columns that are searched.
fn place(kind: Kind) -> (&'static str, &'static [&'static str]) {
    match kind {
        Kind::Order => (
            "select o.id, c.name || ', ' || o.status || ', ' || substr(o.placed_at, 1, 10) from orders o
             join customers c on c.id = o.customer_id",
            &["printf('ORD-%06d', o.id)", "c.name", "c.email"],
        ),
        Kind::Customer => (
            "select o.id, o.name || ', ' || o.email from customers o",
            &["printf('CUS-%04d', o.id)", "o.name", "o.email", "o.phone", "o.reg_no"],
        ),
        Kind::Product => (
            "select o.id, o.brand || ' ' || o.name from products o",
            &[
                "printf('PRD-%03d', o.id)",
                "o.brand || ' ' || o.name",
                "(select group_concat(sku) from variants v where v.product_id = o.id)",
            ],
        ),
        Kind::Invoice => (
            "select o.id, coalesce(o.number, 'draft') || ', ' || c.name || ', ' || o.status from invoices o
             join customers c on c.id = o.customer_id",
            &["printf('INV-%06d', o.id)", "o.number", "c.name"],
        ),
        Kind::Shipment => (
            "select o.id, o.tracking_no || ', ' || o.status from shipments o",
            &["printf('SHP-%06d', o.id)", "o.tracking_no", "printf('ORD-%06d', o.order_id)"],
        ),
    }
}
