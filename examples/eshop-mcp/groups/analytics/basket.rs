//! How large baskets are, and what is bought together.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, DateRange, Limit, OrderId, ProductId},
    ctx::Ctx,
    error::ShopError,
    groups::analytics::{
        facts::{Sale, SaleFilter, sale_lines, sales},
        figures::{Figure, mean_cents, median, per, percent, ratio, round2, whole},
        period::{Compare, Scope, czk, previous},
        revenue::count,
    },
};

/// Which orders.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BasketParams {
    /// Days of the orders; the last 90 when absent.
    period: Option<DateRange>,
    #[serde(default = "previous")]
    compare: Compare,
    #[serde(default = "czk")]
    currency: Currency,
    /// Orders that a pair of products must share to be shown.
    #[serde(default = "two")]
    #[schemars(range(min = 1, max = 100), example = 2)]
    min_together: i64,
    /// Pairs at most.
    #[serde(default)]
    limit: Limit,
}

fn two() -> i64 {
    2
}

/// Sizes and pairs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Baskets {
    scope: Scope,
    orders: Figure,
    /// What customers were to pay, shipping included.
    average_cents: Figure,
    median_cents: Figure,
    pieces_per_order: Option<f64>,
    /// Different products in an order.
    products_per_order: Option<f64>,
    /// By pieces in the order.
    sizes: Vec<Size>,
    /// Most often bought together first.
    pairs: Vec<Pair>,
}

/// Orders of a size.
#[derive(Debug, Serialize, JsonSchema)]
struct Size {
    /// Pieces, such as `3-5`.
    pieces: String,
    orders: i64,
    share_percent: Option<f64>,
    average_cents: i64,
}

/// Two products in the same orders.
#[derive(Debug, Serialize, JsonSchema)]
struct Pair {
    first: ProductId,
    first_name: String,
    second: ProductId,
    second_name: String,
    /// Orders with both.
    orders: i64,
    /// Of all orders.
    support_percent: Option<f64>,
    /// Orders with the second among those with the first.
    confidence_percent: Option<f64>,
    /// How many times more often than by chance.
    lift: Option<f64>,
}

/// Sizes by their fewest and most pieces.
const SIZES: [(&str, i64, i64); 5] = [("1", 1, 1), ("2", 2, 2), ("3-5", 3, 5), ("6-10", 6, 10), ("11+", 11, i64::MAX)];

pub(crate) fn baskets(ctx: &Ctx<'_>, params: BasketParams) -> Result<Baskets, ShopError> {
    let scope = Scope::new(ctx, params.period, 90, params.compare, params.currency)?;
    let now = sales(ctx, scope.period, &SaleFilter::default(), params.currency)?;
    let before = match scope.compared {
        Some(span) => Some(sales(ctx, span, &SaleFilter::default(), params.currency)?),
        None => None,
    };
    let mut contents: BTreeMap<OrderId, BTreeSet<ProductId>> = BTreeMap::new();
    let mut names: BTreeMap<ProductId, String> = BTreeMap::new();
    for line in sale_lines(ctx, scope.period, &SaleFilter::default(), params.currency)? {
        contents.entry(line.order_id).or_default().insert(line.product_id);
        names.insert(line.product_id, line.product);
    }
    let figure = |of: fn(&[Sale]) -> i64| Figure::new(of(&now), before.as_deref().map(of));
    let n_products = count(contents.values().map(BTreeSet::len).sum());
    let mut pairs = pairs(&contents, &names, params.min_together);
    pairs.truncate(usize::try_from(params.limit.0).unwrap_or(usize::MAX));
    Ok(Baskets {
        scope,
        orders: figure(|sales| count(sales.len())),
        average_cents: figure(average),
        median_cents: figure(|sales| {
            let values: Vec<f64> = sales.iter().map(|sale| sale.gross as f64).collect();
            median(&values).map_or(0, whole)
        }),
        pieces_per_order: per(now.iter().map(|sale| sale.pieces).sum(), count(now.len())),
        products_per_order: per(n_products, count(contents.len())),
        sizes: sizes(&now),
        pairs,
    })
}

fn average(sales: &[Sale]) -> i64 {
    mean_cents(sales.iter().map(|sale| sale.gross).sum(), count(sales.len()))
}

fn sizes(sales: &[Sale]) -> Vec<Size> {
    SIZES
        .iter()
        .map(|(name, least, most)| {
            let here: Vec<Sale> =
                sales.iter().filter(|sale| (*least..=*most).contains(&sale.pieces)).cloned().collect();
            Size {
                pieces: (*name).to_owned(),
                orders: count(here.len()),
                share_percent: percent(count(here.len()), count(sales.len())),
                average_cents: average(&here),
            }
        })
        .collect()
}

fn pairs(
    contents: &BTreeMap<OrderId, BTreeSet<ProductId>>,
    names: &BTreeMap<ProductId, String>,
    least: i64,
) -> Vec<Pair> {
    let all = count(contents.len());
    let mut alone: BTreeMap<ProductId, i64> = BTreeMap::new();
    let mut together: BTreeMap<(ProductId, ProductId), i64> = BTreeMap::new();
    for products in contents.values() {
        for product in products {
            *alone.entry(*product).or_insert(0) += 1;
            for other in products.range(product..).skip(1) {
                *together.entry((*product, *other)).or_insert(0) += 1;
            }
        }
    }
    let n_of = |id: ProductId| alone.get(&id).copied().unwrap_or(0);
    let name = |id: ProductId| names.get(&id).cloned().unwrap_or_default();
    let mut pairs: Vec<Pair> = together
        .into_iter()
        .filter(|(_, orders)| *orders >= least)
        .map(|((first, second), orders)| Pair {
            first,
            first_name: name(first),
            second,
            second_name: name(second),
            orders,
            support_percent: percent(orders, all),
            confidence_percent: percent(orders, n_of(first)),
            lift: ratio(orders * all, n_of(first) * n_of(second)).map(round2),
        })
        .collect();
    pairs.sort_by(|a, b| {
        b.orders
            .cmp(&a.orders)
            .then(b.lift.unwrap_or(0.0).total_cmp(&a.lift.unwrap_or(0.0)))
            .then((a.first, a.second).cmp(&(b.first, b.second)))
    });
    pairs
}
