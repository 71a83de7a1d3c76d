//! How categories do.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, DateRange, OrderId, ProductId},
    ctx::Ctx,
    error::ShopError,
    groups::analytics::{
        facts::{Category, SaleFilter, SaleLine, categories, sale_lines},
        figures::{Figure, Rate, mean_cents, percent},
        period::{Compare, Scope, czk, previous},
        revenue::count,
    },
    values::words,
};

words!(/// Which categories: those that products are in, or their parents.
    CategoryLevel { Sub = "sub", Main = "main" });

/// Which sales.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CategoryParams {
    /// Days of the orders; the last 30 when absent.
    period: Option<DateRange>,
    #[serde(default = "previous")]
    compare: Compare,
    #[serde(default = "czk")]
    currency: Currency,
    #[serde(default = "sub")]
    level: CategoryLevel,
}

fn sub() -> CategoryLevel {
    CategoryLevel::Sub
}

/// All categories, largest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Categories {
    scope: Scope,
    categories: Vec<CategoryRow>,
    /// Over all categories.
    revenue_cents: Figure,
}

/// A category and what it brought; those that sold nothing are rows too.
#[derive(Debug, Serialize, JsonSchema)]
struct CategoryRow {
    slug: String,
    name: String,
    /// Slug of the category above.
    parent: Option<String>,
    /// After discounts, before refunds, VAT included.
    revenue_cents: Figure,
    /// Of the revenue of all categories.
    share: Rate,
    pieces: Figure,
    /// Orders with at least one piece.
    orders: i64,
    average_price_cents: i64,
    /// Pieces that came back.
    returned_percent: Option<f64>,
    /// The product with the highest revenue.
    best_product: Option<ProductId>,
}

pub(crate) fn performance(ctx: &Ctx<'_>, params: CategoryParams) -> Result<Categories, ShopError> {
    let scope = Scope::new(ctx, params.period, 30, params.compare, params.currency)?;
    let all = categories(ctx)?;
    let now = sale_lines(ctx, scope.period, &SaleFilter::default(), params.currency)?;
    let before = match scope.compared {
        Some(span) => Some(sale_lines(ctx, span, &SaleFilter::default(), params.currency)?),
        None => None,
    };
    let sum = |lines: &[SaleLine]| lines.iter().map(|line| line.revenue).sum::<i64>();
    let (total, total_before) = (sum(&now), before.as_deref().map(sum));
    let wanted = |category: &&Category| match params.level {
        CategoryLevel::Main => category.parent.is_none(),
        CategoryLevel::Sub => !all.iter().any(|other| other.parent.as_ref() == Some(&category.slug)),
    };
    let mut rows: Vec<CategoryRow> = all
        .iter()
        .filter(wanted)
        .map(|category| {
            let belongs = |line: &&SaleLine| {
                line.category == category.slug
                    || all
                        .iter()
                        .any(|other| other.slug == line.category && other.parent.as_ref() == Some(&category.slug))
            };
            let here: Vec<&SaleLine> = now.iter().filter(belongs).collect();
            let earlier: Option<Vec<&SaleLine>> = before.as_ref().map(|before| before.iter().filter(belongs).collect());
            row(category, &here, earlier.as_deref(), (total, total_before))
        })
        .collect();
    rows.sort_by_key(|row| (-row.revenue_cents.value, row.slug.clone()));
    Ok(Categories { scope, categories: rows, revenue_cents: Figure::new(total, total_before) })
}

fn row(
    category: &Category,
    now: &[&SaleLine],
    before: Option<&[&SaleLine]>,
    (total, total_before): (i64, Option<i64>),
) -> CategoryRow {
    let sum = |lines: &[&SaleLine], of: fn(&SaleLine) -> i64| lines.iter().map(|line| of(line)).sum::<i64>();
    let figure = |of: fn(&SaleLine) -> i64| Figure::new(sum(now, of), before.map(|before| sum(before, of)));
    let revenue_cents = figure(|line| line.revenue);
    let pieces = figure(|line| line.pieces);
    let mut products: BTreeMap<ProductId, i64> = BTreeMap::new();
    for line in now {
        *products.entry(line.product_id).or_insert(0) += line.revenue;
    }
    let orders: BTreeSet<OrderId> = now.iter().map(|line| line.order_id).collect();
    CategoryRow {
        slug: category.slug.clone(),
        name: category.name.clone(),
        parent: category.parent.clone(),
        revenue_cents,
        share: Rate::new((revenue_cents.value, total), revenue_cents.previous.zip(total_before)),
        pieces,
        orders: count(orders.len()),
        average_price_cents: mean_cents(revenue_cents.value, pieces.value),
        returned_percent: percent(sum(now, |line| line.returned), pieces.value),
        best_product: products.into_iter().max_by_key(|(id, revenue)| (*revenue, -id.0)).map(|(id, _)| id),
    }
}
