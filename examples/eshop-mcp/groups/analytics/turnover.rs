//! How fast stock turns over, from its movements.

use std::collections::BTreeMap;

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, DateRange, Limit, Warehouse},
    ctx::Ctx,
    error::ShopError,
    groups::analytics::{
        facts::{category_slugs, czk_micro},
        figures::{mean_cents, ratio, round2, whole},
        period::{Compare, Scope, Span, czk, previous},
    },
    values::words,
};

words!(/// What to group stock by.
StockGroup {
    Category = "category",
    Product = "product",
    Variant = "variant",
    Warehouse = "warehouse",
    Supplier = "supplier",
});

/// Which stock, and how to group it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TurnoverParams {
    /// Days of the movements; the last 90 when absent.
    period: Option<DateRange>,
    #[serde(default = "previous")]
    compare: Compare,
    #[serde(default = "czk")]
    currency: Currency,
    warehouse: Option<Warehouse>,
    /// Slug of a category, with those below it.
    #[schemars(regex(pattern = "^[a-z-]{2,30}$"), example = &"boots")]
    category: Option<String>,
    #[serde(default = "category")]
    group_by: StockGroup,
    #[serde(default)]
    limit: Limit,
}

fn category() -> StockGroup {
    StockGroup::Category
}

/// Turnover of groups and of all.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Turnover {
    scope: Scope,
    total: Turns,
    /// The total over the compared days.
    previous_total: Option<Turns>,
    /// Slowest first; stock that did not sell comes before all.
    groups: Vec<TurnoverRow>,
}

/// A group.
#[derive(Debug, Serialize, JsonSchema)]
struct TurnoverRow {
    /// Slug, code, SKU or name, as `group_by` says.
    key: String,
    turns: Turns,
}

/// Stock and what left it, at the present cost without VAT.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
struct Turns {
    /// Pieces sold less pieces put back.
    sold_pieces: i64,
    /// Cost of these pieces.
    sold_cents: i64,
    /// Worth of the stock before the first day.
    opening_cents: i64,
    /// Worth of the stock after the last day.
    closing_cents: i64,
    /// Mean of opening and closing.
    average_cents: i64,
    /// sold / average, scaled to a year; absent without stock.
    turns_per_year: Option<f64>,
    /// Days that the closing stock lasts at this pace; absent when nothing sold.
    days_of_stock: Option<f64>,
}

/// Sums over movements.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    pieces: i64,
    sold: i64,
    opening: i64,
    closing: i64,
}

impl Sums {
    fn plus(self, other: Self) -> Self {
        Self {
            pieces: self.pieces + other.pieces,
            sold: self.sold + other.sold,
            opening: self.opening + other.opening,
            closing: self.closing + other.closing,
        }
    }

    fn turns(self, days: i64) -> Turns {
        let average = mean_cents(self.opening + self.closing, 2);
        let of_year = 365.0 / days.max(1) as f64;
        let per_day = ratio(self.sold, days).filter(|cents| *cents > 0.0);
        Turns {
            sold_pieces: self.pieces,
            sold_cents: self.sold,
            opening_cents: self.opening,
            closing_cents: self.closing,
            average_cents: average,
            turns_per_year: ratio(self.sold, average).map(|turns| round2(turns * of_year)),
            days_of_stock: per_day.map(|cents| round2(self.closing as f64 / cents)),
        }
    }
}

pub(crate) fn turnover(ctx: &Ctx<'_>, params: TurnoverParams) -> Result<Turnover, ShopError> {
    let scope = Scope::new(ctx, params.period, 90, params.compare, params.currency)?;
    let slugs = params.category.as_deref().map(|slug| category_slugs(ctx, slug)).transpose()?;
    let read = |span: Span| sums(ctx, span, &params, slugs.as_deref());
    let now = read(scope.period)?;
    let all =
        |sums: &BTreeMap<String, Sums>| sums.values().fold(Sums::default(), |a, b| a.plus(*b)).turns(scope.period.days);
    let previous_total = match scope.compared {
        Some(span) => Some(all(&read(span)?)),
        None => None,
    };
    let total = all(&now);
    let mut groups: Vec<TurnoverRow> = now
        .into_iter()
        .map(|(key, sums)| TurnoverRow { key, turns: sums.turns(scope.period.days) })
        .filter(|row| row.turns.average_cents > 0 || row.turns.sold_pieces != 0)
        .collect();
    groups.sort_by(|a, b| {
        let pace = |row: &TurnoverRow| row.turns.turns_per_year.unwrap_or(f64::MAX);
        pace(a).total_cmp(&pace(b)).then(b.turns.closing_cents.cmp(&a.turns.closing_cents)).then(a.key.cmp(&b.key))
    });
    groups.truncate(usize::try_from(params.limit.0).unwrap_or(usize::MAX));
    Ok(Turnover { scope, total, previous_total, groups })
}

fn sums(
    ctx: &Ctx<'_>,
    span: Span,
    params: &TurnoverParams,
    slugs: Option<&[String]>,
) -> Result<BTreeMap<String, Sums>, ShopError> {
    let key = match params.group_by {
        StockGroup::Category => "coalesce(g.slug, 'none')",
        StockGroup::Product => "printf('PRD-%03d', p.id)",
        StockGroup::Variant => "v.sku",
        StockGroup::Warehouse => "w.code",
        StockGroup::Supplier => "s.name",
    };
    let to = czk_micro(ctx, params.currency)?;
    let sql = format!(
        "select {key}, coalesce(g.slug, 'none'), v.cost_cents,
             coalesce(-sum(case when m.kind in ('sale', 'return') and substr(m.at, 1, 10) between ?1 and ?2 then m.delta end), 0),
             coalesce(sum(case when substr(m.at, 1, 10) < ?1 then m.delta end), 0),
             coalesce(sum(case when substr(m.at, 1, 10) <= ?2 then m.delta end), 0)
         from stock_movements m join variants v on v.id = m.variant_id join products p on p.id = v.product_id
         join warehouses w on w.id = m.warehouse_id join suppliers s on s.id = p.supplier_id
         left join product_categories x on x.product_id = p.id and x.is_main = 1 left join categories g on g.id = x.category_id
         where ?3 is null or w.code = ?3 group by 1, v.id"
    );
    let cents = |pieces: i64, cost: i64| whole(ratio(pieces * cost, to).unwrap_or(0.0) * 1_000_000.0);
    let rows: Vec<(String, String, Sums)> = ctx.all(&sql, params![span.from, span.to, params.warehouse], |row| {
        let cost = row.get(2)?;
        let pieces: i64 = row.get(3)?;
        let sums = Sums {
            pieces,
            sold: cents(pieces, cost),
            opening: cents(row.get(4)?, cost),
            closing: cents(row.get(5)?, cost),
        };
        Ok((row.get(0)?, row.get(1)?, sums))
    })?;
    let mut groups: BTreeMap<String, Sums> = BTreeMap::new();
    for (key, slug, sums) in rows {
        if slugs.is_none_or(|slugs| slugs.contains(&slug)) {
            let group = groups.entry(key).or_default();
            *group = group.plus(sums);
        }
    }
    Ok(groups)
}
