//! Stock that does not sell.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, Limit, Sku, Warehouse},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::analytics::{
        facts::{category_slugs, czk_micro},
        figures::{percent, ratio, whole},
        period::czk,
        revenue::count,
    },
    values::words,
};

words!(/// What could be done: move it to where it sells, lower its price, or stop carrying it.
    Advice { Transfer = "transfer", Discount = "discount", Discontinue = "discontinue" });

/// What counts as dead.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeadParams {
    /// Days without a sale, and without a receipt, in that warehouse.
    #[serde(default = "ninety")]
    #[schemars(range(min = 30, max = 400), example = 90)]
    days: i64,
    warehouse: Option<Warehouse>,
    /// Slug of a category, with those below it.
    #[schemars(regex(pattern = "^[a-z-]{2,30}$"), example = &"jackets")]
    category: Option<String>,
    #[serde(default = "czk")]
    currency: Currency,
    /// Least worth of a row in hundredths of `currency`.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100_000_000), example = 500_000)]
    min_value_cents: i64,
    #[serde(default)]
    limit: Limit,
}

fn ninety() -> i64 {
    90
}

/// What lies there.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeadStock {
    /// No sale since this day, or on it.
    since: Date,
    /// Of all amounts.
    #[schemars(with = "String")]
    currency: Currency,
    /// Highest worth first.
    items: Vec<DeadRow>,
    /// Rows found, those beyond the limit too.
    rows: i64,
    pieces: i64,
    /// Worth of these pieces at cost without VAT.
    value_cents: i64,
    /// Of the worth of all stock looked at.
    share_percent: Option<f64>,
    /// Worth of all stock looked at.
    stock_cents: i64,
}

/// A variant in a warehouse.
#[derive(Debug, Serialize, JsonSchema)]
struct DeadRow {
    sku: Sku,
    name: String,
    /// Slug of the main category.
    category: String,
    warehouse: Warehouse,
    on_hand: i64,
    reserved: i64,
    value_cents: i64,
    /// In this warehouse; absent when it never sold there.
    last_sold_on: Option<Date>,
    days_since_sale: Option<i64>,
    last_received_on: Option<Date>,
    /// Last sale in any other warehouse.
    sold_elsewhere_on: Option<Date>,
    advice: Advice,
}

pub(crate) fn dead(ctx: &Ctx<'_>, params: DeadParams) -> Result<DeadStock, ShopError> {
    let since = ctx.today.plus_days(-params.days);
    let slugs = params.category.as_deref().map(|slug| category_slugs(ctx, slug)).transpose()?;
    let mut stock = stock(ctx, &params, since)?;
    stock.retain(|row| slugs.as_ref().is_none_or(|slugs| slugs.contains(&row.category)));
    let sum = |rows: &[DeadRow]| rows.iter().map(|row| row.value_cents).sum::<i64>();
    let stock_cents = sum(&stock);
    stock.retain(|row| {
        let is_old = |day: Option<Date>| day.is_none_or(|day| day < since);
        is_old(row.last_sold_on) && is_old(row.last_received_on) && row.value_cents >= params.min_value_cents
    });
    stock.sort_by_key(|row| (-row.value_cents, row.sku.clone(), row.warehouse));
    let value_cents = sum(&stock);
    let rows = count(stock.len());
    let pieces = stock.iter().map(|row| row.on_hand).sum();
    stock.truncate(usize::try_from(params.limit.0).unwrap_or(usize::MAX));
    Ok(DeadStock {
        since,
        currency: params.currency,
        items: stock,
        rows,
        pieces,
        value_cents,
        share_percent: percent(value_cents, stock_cents),
        stock_cents,
    })
}

/// Reads all stock that is there, by variant and warehouse.
fn stock(ctx: &Ctx<'_>, params: &DeadParams, since: Date) -> Result<Vec<DeadRow>, ShopError> {
    let to = czk_micro(ctx, params.currency)?;
    let last = |kind: &str, place: &str| {
        format!(
            "(select max(m.at) from stock_movements m where m.variant_id = v.id and m.warehouse_id {place} s.warehouse_id and m.kind = '{kind}')"
        )
    };
    let sql = format!(
        "select v.sku, trim(p.brand || ' ' || p.name || ' ' || v.name), coalesce(g.slug, 'none'), w.code, s.on_hand, s.reserved,
             v.cost_cents, {}, {}, {}
         from stock s join variants v on v.id = s.variant_id join products p on p.id = v.product_id
         join warehouses w on w.id = s.warehouse_id
         left join product_categories x on x.product_id = p.id and x.is_main = 1 left join categories g on g.id = x.category_id
         where s.on_hand > 0 and (?1 is null or w.code = ?1)",
        last("sale", "="),
        last("receipt", "="),
        last("sale", "<>")
    );
    ctx.all(&sql, params![params.warehouse], |row| {
        let (on_hand, cost): (i64, i64) = (row.get(4)?, row.get(6)?);
        let sold: Option<Date> = row.get(7)?;
        let elsewhere: Option<Date> = row.get(9)?;
        Ok(DeadRow {
            sku: Sku(row.get(0)?),
            name: row.get(1)?,
            category: row.get(2)?,
            warehouse: row.get(3)?,
            on_hand,
            reserved: row.get(5)?,
            value_cents: whole(ratio(on_hand * cost, to).unwrap_or(0.0) * 1_000_000.0),
            last_sold_on: sold,
            days_since_sale: sold.map(|day| ctx.today.days_since(day)),
            last_received_on: row.get(8)?,
            sold_elsewhere_on: elsewhere,
            advice: match (sold, elsewhere) {
                (_, Some(day)) if day >= since => Advice::Transfer,
                (None, None) => Advice::Discontinue,
                _ => Advice::Discount,
            },
        })
    })
}
