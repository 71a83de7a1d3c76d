//! Which products sell best.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, DateRange, Limit, OrderId, ProductId, Sku},
    ctx::Ctx,
    error::ShopError,
    groups::analytics::{
        facts::{SaleFilter, SaleLine, category_slugs, sale_lines},
        figures::{Figure, mean_cents, percent},
        period::{Compare, Scope, Span, czk, previous},
        revenue::count,
    },
    values::words,
};

words!(/// What to rank by.
    ProductMeasure { Revenue = "revenue", Pieces = "pieces", Orders = "orders" });
words!(/// What a row is: a product with all its variants, or one variant.
    ProductLevel { Product = "product", Variant = "variant" });

/// Which sales, and how to rank.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProductsParams {
    /// Days of the orders; the last 30 when absent.
    period: Option<DateRange>,
    #[serde(default = "previous")]
    compare: Compare,
    #[serde(default = "czk")]
    currency: Currency,
    #[serde(default)]
    filter: SaleFilter,
    /// Slug of a category, with those below it.
    #[schemars(regex(pattern = "^[a-z-]{2,30}$"), example = &"tents")]
    category: Option<String>,
    #[serde(default = "product")]
    level: ProductLevel,
    #[serde(default = "revenue")]
    by: ProductMeasure,
    #[serde(default)]
    limit: Limit,
}

fn product() -> ProductLevel {
    ProductLevel::Product
}

fn revenue() -> ProductMeasure {
    ProductMeasure::Revenue
}

/// The ranking.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TopProducts {
    scope: Scope,
    items: Vec<TopProduct>,
    /// Products or variants that sold at all.
    sold: i64,
    /// Revenue of all that sold.
    revenue_cents: Figure,
}

/// A product or variant and what it brought.
#[derive(Debug, Serialize, JsonSchema)]
struct TopProduct {
    rank: i64,
    /// Rank in the compared days; absent when it did not sell then.
    previous_rank: Option<i64>,
    product_id: ProductId,
    /// For level variant only.
    sku: Option<Sku>,
    name: String,
    /// Slug of the main category.
    category: String,
    pieces: i64,
    orders: i64,
    /// After discounts, before refunds, VAT included.
    revenue_cents: Figure,
    /// Of the revenue of all that sold.
    share_percent: Option<f64>,
    /// Share of this rank and those above.
    cumulative_percent: Option<f64>,
    /// revenue / pieces.
    average_price_cents: i64,
}

/// Sums of one product or variant.
#[derive(Debug, Clone)]
struct Sums {
    line: SaleLine,
    pieces: i64,
    orders: BTreeSet<OrderId>,
    revenue: i64,
}

impl Sums {
    fn measure(&self, by: ProductMeasure) -> i64 {
        match by {
            ProductMeasure::Revenue => self.revenue,
            ProductMeasure::Pieces => self.pieces,
            ProductMeasure::Orders => count(self.orders.len()),
        }
    }
}

pub(crate) fn top(ctx: &Ctx<'_>, params: ProductsParams) -> Result<TopProducts, ShopError> {
    let scope = Scope::new(ctx, params.period, 30, params.compare, params.currency)?;
    let slugs = params.category.as_deref().map(|slug| category_slugs(ctx, slug)).transpose()?;
    let read = |span: Span| -> Result<Vec<(String, Sums)>, ShopError> {
        let mut lines = sale_lines(ctx, span, &params.filter, params.currency)?;
        lines.retain(|line| slugs.as_ref().is_none_or(|slugs| slugs.contains(&line.category)));
        Ok(ranked(lines, params.level, params.by))
    };
    let now = read(scope.period)?;
    let before = scope.compared.map(read).transpose()?;
    let all = revenue_of(&now);
    let mut cumulative = 0;
    let items = (1..)
        .zip(&now)
        .take(usize::try_from(params.limit.0).unwrap_or(usize::MAX))
        .map(|(rank, (key, sums))| {
            cumulative += sums.revenue;
            let earlier = before.as_ref().map(|before| place(before, key));
            TopProduct {
                rank,
                previous_rank: earlier.and_then(|(rank, _)| rank),
                product_id: sums.line.product_id,
                sku: (params.level == ProductLevel::Variant).then(|| Sku(sums.line.sku.clone())),
                name: sums.line.product.clone(),
                category: sums.line.category.clone(),
                pieces: sums.pieces,
                orders: count(sums.orders.len()),
                revenue_cents: Figure::new(sums.revenue, earlier.map(|(_, revenue)| revenue)),
                share_percent: percent(sums.revenue, all),
                cumulative_percent: percent(cumulative, all),
                average_price_cents: mean_cents(sums.revenue, sums.pieces),
            }
        })
        .collect();
    Ok(TopProducts {
        scope,
        items,
        sold: count(now.len()),
        revenue_cents: Figure::new(all, before.as_deref().map(revenue_of)),
    })
}

fn revenue_of(ranked: &[(String, Sums)]) -> i64 {
    ranked.iter().map(|(_, sums)| sums.revenue).sum()
}

/// Rank and revenue of a key, nothing and zero when it did not sell.
fn place(ranked: &[(String, Sums)], key: &str) -> (Option<i64>, i64) {
    match ranked.iter().position(|(other, _)| other == key) {
        Some(at) => (Some(count(at) + 1), ranked.get(at).map_or(0, |(_, sums)| sums.revenue)),
        None => (None, 0),
    }
}

fn ranked(lines: Vec<SaleLine>, level: ProductLevel, by: ProductMeasure) -> Vec<(String, Sums)> {
    let mut sums: BTreeMap<String, Sums> = BTreeMap::new();
    for line in lines {
        let key = match level {
            ProductLevel::Product => line.product_id.to_string(),
            ProductLevel::Variant => line.sku.clone(),
        };
        let entry = sums.entry(key).or_insert_with(|| Sums {
            line: line.clone(),
            pieces: 0,
            orders: BTreeSet::new(),
            revenue: 0,
        });
        entry.pieces += line.pieces;
        entry.revenue += line.revenue;
        entry.orders.insert(line.order_id);
    }
    let mut ranked: Vec<(String, Sums)> = sums.into_iter().collect();
    ranked.sort_by_key(|(key, sums)| (-sums.measure(by), key.clone()));
    ranked
}
