//! What to order from suppliers: stock and sales against lead times.

use rusqlite::{Row, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, Sku, Warehouse},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::{
        orders::expire,
        store::{codes::SupplierId, price_sql::sellable_sql},
    },
};

/// What to look at, and how far ahead.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SuggestParams {
    /// Only what this supplier delivers.
    supplier_id: Option<SupplierId>,
    /// Only this warehouse's stock and sales; all together when absent.
    warehouse: Option<Warehouse>,
    /// Days of past sales to reckon with.
    #[serde(default = "ninety")]
    #[schemars(range(min = 14, max = 365), example = 90)]
    sales_days: i64,
    /// Days that the order is to last after it has arrived.
    #[serde(default = "thirty")]
    #[schemars(range(min = 1, max = 180), example = 30)]
    cover_days: i64,
    /// Also variants below their reorder point that did not sell in these days.
    #[serde(default)]
    #[schemars(example = true)]
    include_unsold: bool,
}

fn ninety() -> i64 {
    90
}

fn thirty() -> i64 {
    30
}

/// One order per supplier.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Suggestions {
    suppliers: Vec<Suggestion>,
}

/// What to order from one supplier.
#[derive(Debug, Serialize, JsonSchema)]
struct Suggestion {
    supplier_id: SupplierId,
    supplier: String,
    /// When it would arrive if ordered today.
    arrives_on: Date,
    /// Purchase worth of the lines, in CZK hundredths.
    cost_cents: i64,
    /// Smallest order of the supplier, in `min_order_currency`.
    min_order_cents: i64,
    min_order_currency: Currency,
    reaches_minimum: bool,
    /// Most urgent first.
    lines: Vec<Line>,
}

/// A variant to order.
#[derive(Debug, Serialize, JsonSchema)]
struct Line {
    sku: Sku,
    name: String,
    free: i64,
    reorder_point: i64,
    /// Pieces sold in the days looked at.
    sold: i64,
    /// Days until nothing is free, at that rate; absent when nothing sold.
    days_left: Option<i64>,
    /// Pieces to order.
    quantity: i64,
    cost_cents: i64,
}

/// A variant with its supplier's terms.
struct Candidate {
    supplier_id: SupplierId,
    supplier: String,
    lead_days: i64,
    min_order_cents: i64,
    currency: Currency,
    czk_micro: i64,
    reorder_qty: i64,
    unit_cents: i64,
    line: Line,
}

pub(crate) fn suggest(ctx: &Ctx<'_>, params: SuggestParams) -> Result<Suggestions, ShopError> {
    expire(ctx)?;
    let sql = format!(
        "select s.id as supplier_id, s.name as supplier, s.lead_days, s.min_order_cents, s.currency, x.czk_micro, v.sku,
             trim(p.brand || ' ' || p.name || ' ' || v.name) as name, v.reorder_point, v.reorder_qty, v.cost_cents,
             (select coalesce(sum(k.on_hand - k.reserved), 0) from stock k join warehouses w on w.id = k.warehouse_id
              where k.variant_id = v.id and (?1 is null or w.code = ?1)) as free,
             (select coalesce(-sum(m.delta), 0) from stock_movements m join warehouses w on w.id = m.warehouse_id
              where m.variant_id = v.id and m.kind in ('sale', 'return') and m.at > ?2 and (?1 is null or w.code = ?1)) as sold
         from variants v join products p on p.id = v.product_id join suppliers s on s.id = p.supplier_id
             join currencies x on x.code = s.currency
         where {} and (?3 is null or s.id = ?3) order by s.id, v.sku",
        sellable_sql()
    );
    let since = ctx.today.plus_days(-params.sales_days);
    let key = params![params.warehouse, since, params.supplier_id];
    let mut suppliers: Vec<Suggestion> = Vec::new();
    for mut candidate in ctx.all(&sql, key, candidate)? {
        if !reckon(&mut candidate, &params) {
            continue;
        }
        match suppliers.last_mut() {
            Some(last) if last.supplier_id == candidate.supplier_id => put(last, candidate),
            _ => {
                let mut suggestion = start(ctx, &candidate);
                put(&mut suggestion, candidate);
                suppliers.push(suggestion);
            }
        }
    }
    for suggestion in &mut suppliers {
        let urgency = |line: &Line| (line.days_left.unwrap_or(i64::MAX), line.free);
        suggestion.lines.sort_by_key(urgency);
    }
    Ok(Suggestions { suppliers })
}

fn candidate(row: &Row<'_>) -> rusqlite::Result<Candidate> {
    Ok(Candidate {
        supplier_id: row.get("supplier_id")?,
        supplier: row.get("supplier")?,
        lead_days: row.get("lead_days")?,
        min_order_cents: row.get("min_order_cents")?,
        currency: row.get("currency")?,
        czk_micro: row.get("czk_micro")?,
        reorder_qty: row.get("reorder_qty")?,
        unit_cents: row.get("cost_cents")?,
        line: Line {
            sku: Sku(row.get("sku")?),
            name: row.get("name")?,
            free: row.get("free")?,
            reorder_point: row.get("reorder_point")?,
            sold: row.get::<_, i64>("sold")?.max(0),
            days_left: None,
            quantity: 0,
            cost_cents: 0,
        },
    })
}

/// Works out what to order; false when nothing is to be.
fn reckon(candidate: &mut Candidate, params: &SuggestParams) -> bool {
    let Candidate { lead_days, reorder_qty, unit_cents, line, .. } = candidate;
    if line.sold == 0 && !params.include_unsold {
        return false;
    }
    // Pieces that go in so many days at the rate of the sales, rounded up.
    let needed = |days: i64| (line.sold * days + params.sales_days - 1) / params.sales_days;
    if line.free > line.reorder_point.max(needed(*lead_days)) {
        return false;
    }
    let target = line.reorder_point + needed(*lead_days + params.cover_days);
    let packs = ((target - line.free).max(1) + *reorder_qty - 1) / *reorder_qty;
    line.days_left = (line.sold > 0).then(|| line.free * params.sales_days / line.sold);
    line.quantity = packs * *reorder_qty;
    line.cost_cents = line.quantity * *unit_cents;
    true
}

fn start(ctx: &Ctx<'_>, candidate: &Candidate) -> Suggestion {
    Suggestion {
        supplier_id: candidate.supplier_id,
        supplier: candidate.supplier.clone(),
        arrives_on: ctx.today.plus_days(candidate.lead_days),
        cost_cents: 0,
        min_order_cents: candidate.min_order_cents,
        min_order_currency: candidate.currency,
        reaches_minimum: false,
        lines: Vec::new(),
    }
}

fn put(suggestion: &mut Suggestion, candidate: Candidate) {
    suggestion.cost_cents += candidate.line.cost_cents;
    let minimum = suggestion.min_order_cents * candidate.czk_micro / 1_000_000;
    suggestion.reaches_minimum = suggestion.cost_cents >= minimum;
    suggestion.lines.push(candidate.line);
}
