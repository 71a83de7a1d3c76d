//! What will be asked for in the next weeks: a moving average with the season of last year.
//!
//! The mean of the last complete weeks is multiplied by how much that week of last year stood above or below the
//! weeks before it, over the whole shop, since one product sells too little to show a season.

use std::collections::BTreeMap;

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{ProductId, Sku, Warehouse},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::analytics::{
        facts::category_slugs,
        figures::{deviation, mean, round2, whole},
        period::monday,
        revenue::count,
    },
};

/// Weeks in a year.
const YEAR: i64 = 52;

/// A season never counts for less than half or more than twice the mean.
const FACTORS: (f64, f64) = (0.5, 2.0);

/// Eight of ten values of a normal distribution lie within so many deviations.
const EIGHT_OF_TEN: f64 = 1.28;

/// Past weeks that are forecast again to see how well it works.
const BACKTEST: i64 = 8;

/// What to forecast; the whole shop when neither variant, product nor category is given.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForecastParams {
    sku: Option<Sku>,
    product_id: Option<ProductId>,
    /// Slug of a category, with those below it.
    #[schemars(regex(pattern = "^[a-z-]{2,30}$"), example = &"packs")]
    category: Option<String>,
    /// Only orders and stock of this warehouse.
    warehouse: Option<Warehouse>,
    /// Weeks to look ahead, from the present one on.
    #[serde(default = "four")]
    #[schemars(range(min = 1, max = 12), example = 4)]
    weeks: i64,
    /// Complete past weeks to average.
    #[serde(default = "eight")]
    #[schemars(range(min = 4, max = 16), example = 8)]
    window: i64,
    /// Multiply with the season of last year where it is known.
    #[serde(default = "yes")]
    #[schemars(example = true)]
    seasonal: bool,
}

fn four() -> i64 {
    4
}

fn eight() -> i64 {
    8
}

fn yes() -> bool {
    true
}

/// The forecast and what it rests on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Forecast {
    /// SKU, code, slug, or `all`.
    target: String,
    /// Complete weeks that the mean is taken from.
    history: Vec<Week>,
    /// Pieces a week over `history`.
    mean_pieces: f64,
    weeks: Vec<Expected>,
    /// Pieces over all weeks ahead.
    expected_pieces: f64,
    stock: Cover,
    backtest: Backtest,
}

/// A past week.
#[derive(Debug, Serialize, JsonSchema)]
struct Week {
    /// A Monday.
    start: Date,
    /// Ordered and not cancelled.
    pieces: i64,
}

/// A week ahead.
#[derive(Debug, Serialize, JsonSchema)]
struct Expected {
    /// A Monday.
    start: Date,
    pieces: f64,
    /// Eight of ten weeks lie between `low` and `high`, if the past is a guide.
    low: f64,
    high: f64,
    /// 1 without season or without last year's data.
    factor: f64,
}

/// How far the stock goes.
#[derive(Debug, Serialize, JsonSchema)]
struct Cover {
    on_hand: i64,
    /// on_hand less what is reserved.
    free: i64,
    /// Weeks until the free pieces are sold; absent when nothing is expected.
    weeks: Option<f64>,
    /// Free pieces missing for the weeks ahead.
    shortfall: i64,
}

/// The same mean, without season, tried on past weeks.
#[derive(Debug, Serialize, JsonSchema)]
struct Backtest {
    weeks: i64,
    /// Mean of |expected - real| in pieces.
    mean_error: Option<f64>,
    /// Mean of expected - real: above zero it forecasts too much.
    bias: Option<f64>,
}

pub(crate) fn forecast(ctx: &Ctx<'_>, params: ForecastParams) -> Result<Forecast, ShopError> {
    let (target, variants) = target(ctx, &params)?;
    let this_week = monday(ctx.today);
    let first = this_week.plus_days(-7 * (YEAR + params.window + BACKTEST));
    let sold = pieces(ctx, &params, first, variants.as_deref())?;
    let shop = pieces(ctx, &params, first, None)?;
    let at = |sold: &BTreeMap<Date, i64>, weeks: i64| {
        let day = this_week.plus_days(7 * weeks);
        sold.get(&day).copied().unwrap_or(0)
    };
    let history: Vec<Week> = (-params.window..0)
        .map(|week| Week { start: this_week.plus_days(7 * week), pieces: at(&sold, week) })
        .collect();
    let values: Vec<f64> = history.iter().map(|week| week.pieces as f64).collect();
    let level = mean(&values).unwrap_or(0.0);
    let spread = EIGHT_OF_TEN * deviation(&values);
    let has_season = params.seasonal && has_last_year(ctx, this_week, params.window)?;
    let weeks: Vec<Expected> = (0..params.weeks)
        .map(|week| {
            let factor = if has_season { factor(&shop, this_week, week, params.window) } else { 1.0 };
            Expected {
                start: this_week.plus_days(7 * week),
                pieces: round2(level * factor),
                low: round2((level * factor - spread * factor).max(0.0)),
                high: round2(level * factor + spread * factor),
                factor: round2(factor),
            }
        })
        .collect();
    let expected: f64 = weeks.iter().map(|week| week.pieces).sum();
    Ok(Forecast {
        target,
        history,
        mean_pieces: round2(level),
        stock: cover(ctx, &params, variants.as_deref(), expected)?,
        expected_pieces: round2(expected),
        backtest: backtest(&|week| at(&sold, week), params.window),
        weeks,
    })
}

/// Name of what is forecast, and its variants; none for the whole shop.
fn target(ctx: &Ctx<'_>, params: &ForecastParams) -> Result<(String, Option<Vec<i64>>), ShopError> {
    let one = "select id from variants where sku = ?";
    let of_product = "select id from variants where product_id = ?";
    let ids = |sql: &str, value: &dyn rusqlite::ToSql| ctx.all(sql, [value], |row| row.get(0));
    let known = |ids: Vec<i64>, kind: &str, field: &str, key: String, tool: &str| {
        if ids.is_empty() {
            return Err(ShopError::not_found(kind, key, tool).at(field));
        }
        Ok((key, Some(ids)))
    };
    match (&params.sku, params.product_id, &params.category) {
        (None, None, None) => Ok(("all".to_owned(), None)),
        (Some(sku), None, None) => {
            let ids = ids(one, &sku.0)?;
            known(ids, "variant", "sku", sku.0.clone(), "store_variants_list")
        }
        (None, Some(id), None) => {
            let ids = ids(of_product, &id)?;
            let tool = "store_products_list";
            known(ids, "product", "product_id", id.to_string(), tool)
        }
        (None, None, Some(slug)) => {
            let mut all = Vec::new();
            for slug in category_slugs(ctx, slug)? {
                let sql = "select v.id from variants v join product_categories x on x.product_id = v.product_id and x.is_main = 1
                           join categories g on g.id = x.category_id where g.slug = ?";
                all.extend(ids(sql, &slug)?);
            }
            Ok((slug.clone(), Some(all)))
        }
        _ => Err(ShopError::invalid(
            "sku",
            "not the only one of `sku`, `product_id` and `category`",
            "one of them, or none for the whole shop",
        )),
    }
}

/// Pieces ordered by week, from a day on.
fn pieces(
    ctx: &Ctx<'_>,
    params: &ForecastParams,
    first: Date,
    variants: Option<&[i64]>,
) -> Result<BTreeMap<Date, i64>, ShopError> {
    let sql = "select o.placed_at, i.variant_id, i.quantity from order_items i join orders o on o.id = i.order_id
               join warehouses w on w.id = o.warehouse_id
               where o.status <> 'cancelled' and o.placed_at >= ?1 and (?2 is null or w.code = ?2)";
    let lines: Vec<(Date, i64, i64)> =
        ctx.all(sql, params![first, params.warehouse], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut weeks = BTreeMap::new();
    for (day, variant, quantity) in lines {
        if variants.is_none_or(|variants| variants.contains(&variant)) {
            *weeks.entry(monday(day)).or_insert(0) += quantity;
        }
    }
    Ok(weeks)
}

/// Whether orders go back far enough to compare with last year's weeks.
fn has_last_year(ctx: &Ctx<'_>, this_week: Date, window: i64) -> Result<bool, ShopError> {
    let first: Option<Date> = ctx.value("select min(placed_at) from orders", [])?;
    let needed = this_week.plus_days(-7 * (YEAR + window - 1));
    Ok(first.is_some_and(|first| first <= needed))
}

/// How the week, with its neighbors, stood to the weeks of the window a year ago.
fn factor(shop: &BTreeMap<Date, i64>, this_week: Date, week: i64, window: i64) -> f64 {
    let average = |from: i64, to: i64| {
        let values: Vec<f64> = (from..=to)
            .map(|week| {
                let day = this_week.plus_days(7 * (week - YEAR));
                shop.get(&day).copied().unwrap_or(0) as f64
            })
            .collect();
        mean(&values).unwrap_or(0.0)
    };
    let base = average(-window, -1);
    if base > 0.0 { (average(week - 1, week + 1) / base).clamp(FACTORS.0, FACTORS.1) } else { 1.0 }
}

fn cover(ctx: &Ctx<'_>, params: &ForecastParams, variants: Option<&[i64]>, expected: f64) -> Result<Cover, ShopError> {
    let sql = "select s.variant_id, s.on_hand, s.reserved from stock s join warehouses w on w.id = s.warehouse_id
               where ?1 is null or w.code = ?1";
    let rows: Vec<(i64, i64, i64)> =
        ctx.all(sql, params![params.warehouse], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let wanted = rows.iter().filter(|(id, ..)| variants.is_none_or(|variants| variants.contains(id)));
    let (on_hand, free) =
        wanted.fold((0, 0), |(on_hand, free), (_, hand, reserved)| (on_hand + hand, free + hand - reserved));
    let a_week = expected / params.weeks.max(1) as f64;
    Ok(Cover {
        on_hand,
        free,
        weeks: (a_week > 0.0).then(|| round2(free as f64 / a_week)),
        shortfall: (whole(expected.ceil()) - free).max(0),
    })
}

fn backtest(pieces_in: &dyn Fn(i64) -> i64, window: i64) -> Backtest {
    let errors: Vec<f64> = (-BACKTEST..0)
        .map(|week| {
            let past: Vec<f64> = (week - window..week).map(|w| pieces_in(w) as f64).collect();
            mean(&past).unwrap_or(0.0) - pieces_in(week) as f64
        })
        .collect();
    let sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    Backtest { weeks: count(errors.len()), mean_error: mean(&sizes).map(round2), bias: mean(&errors).map(round2) }
}
