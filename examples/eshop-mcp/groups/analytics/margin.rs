//! What is left of revenue after the cost of goods.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, DateRange, Limit},
    ctx::Ctx,
    error::ShopError,
    groups::analytics::{
        facts::{SaleFilter, SaleLine, category_slugs, sale_lines},
        figures::{Figure, Rate, percent, whole},
        period::{Compare, Scope, Span, czk, month, previous},
        revenue::count,
    },
    values::words,
};

words!(/// What to group lines by.
MarginGroup {
    Category = "category",
    Product = "product",
    Variant = "variant",
    Channel = "channel",
    Country = "country",
    Segment = "segment",
    Month = "month",
});
words!(/// What to sort groups by, highest first.
    MarginSort { Margin = "margin", Percent = "percent", Revenue = "revenue" });

/// Which sales, and how to group them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MarginParams {
    /// Days of the orders; the last 30 when absent.
    period: Option<DateRange>,
    #[serde(default = "previous")]
    compare: Compare,
    #[serde(default = "czk")]
    currency: Currency,
    /// Slug of a category, with those below it.
    #[schemars(regex(pattern = "^[a-z-]{2,30}$"), example = &"wear")]
    category: Option<String>,
    #[serde(default = "category")]
    group_by: MarginGroup,
    #[serde(default = "margin")]
    sort: MarginSort,
    #[serde(default)]
    limit: Limit,
}

fn category() -> MarginGroup {
    MarginGroup::Category
}

fn margin() -> MarginSort {
    MarginSort::Margin
}

/// Margin of all and of groups.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Margins {
    scope: Scope,
    /// After discounts and without VAT, pieces that came back taken out.
    revenue_cents: Figure,
    /// Of the same pieces, at what they cost when ordered.
    cost_cents: Figure,
    /// revenue - cost.
    margin_cents: Figure,
    /// margin / revenue.
    margin_rate: Rate,
    groups: Vec<MarginRow>,
    /// Order lines that sold below cost.
    lines_below_cost: i64,
}

/// A group.
#[derive(Debug, Serialize, JsonSchema)]
struct MarginRow {
    key: String,
    /// For products and variants.
    name: Option<String>,
    /// Pieces kept by customers.
    pieces: i64,
    revenue_cents: i64,
    cost_cents: i64,
    margin_cents: Figure,
    margin_percent: Option<f64>,
    /// Of the margin of all.
    share_percent: Option<f64>,
}

/// Sums over lines.
#[derive(Debug, Default, Clone)]
struct Sums {
    name: Option<String>,
    pieces: i64,
    revenue: f64,
    cost: f64,
}

impl Sums {
    fn add(&mut self, line: &SaleLine) {
        self.pieces += line.pieces - line.returned;
        self.revenue += line.kept_without_vat();
        self.cost += line.kept_cost();
    }

    fn revenue(&self) -> i64 {
        whole(self.revenue)
    }

    fn cost(&self) -> i64 {
        whole(self.cost)
    }

    fn margin(&self) -> i64 {
        self.revenue() - self.cost()
    }
}

pub(crate) fn report(ctx: &Ctx<'_>, params: MarginParams) -> Result<Margins, ShopError> {
    let scope = Scope::new(ctx, params.period, 30, params.compare, params.currency)?;
    let slugs = params.category.as_deref().map(|slug| category_slugs(ctx, slug)).transpose()?;
    let read = |span: Span| -> Result<Vec<SaleLine>, ShopError> {
        let mut lines = sale_lines(ctx, span, &SaleFilter::default(), params.currency)?;
        lines.retain(|line| slugs.as_ref().is_none_or(|slugs| slugs.contains(&line.category)));
        Ok(lines)
    };
    let now = read(scope.period)?;
    let before = scope.compared.map(read).transpose()?;
    let all = total(&now);
    let all_before = before.as_deref().map(total);
    let figure = |of: fn(&Sums) -> i64| Figure::new(of(&all), all_before.as_ref().map(of));
    let below = now.iter().filter(|line| line.kept_without_vat() < line.kept_cost());
    Ok(Margins {
        scope,
        revenue_cents: figure(Sums::revenue),
        cost_cents: figure(Sums::cost),
        margin_cents: figure(Sums::margin),
        margin_rate: Rate::new(
            (all.margin(), all.revenue()),
            all_before.as_ref().map(|sums| (sums.margin(), sums.revenue())),
        ),
        groups: rows(&params, &groups(&now, params.group_by), before.as_deref(), all.margin()),
        lines_below_cost: count(below.count()),
    })
}

fn total(lines: &[SaleLine]) -> Sums {
    let mut sums = Sums::default();
    for line in lines {
        sums.add(line);
    }
    sums
}

fn groups(lines: &[SaleLine], by: MarginGroup) -> BTreeMap<String, Sums> {
    let mut groups: BTreeMap<String, Sums> = BTreeMap::new();
    for line in lines {
        let (key, name) = match by {
            MarginGroup::Category => (line.category.clone(), None),
            MarginGroup::Product => (line.product_id.to_string(), Some(line.product.clone())),
            MarginGroup::Variant => (line.sku.clone(), Some(line.product.clone())),
            MarginGroup::Channel => (line.channel.to_string(), None),
            MarginGroup::Country => (line.country.to_string(), None),
            MarginGroup::Segment => (line.segment.to_string(), None),
            MarginGroup::Month => (month(line.day), None),
        };
        let group = groups.entry(key).or_default();
        group.name = name;
        group.add(line);
    }
    groups
}

fn rows(params: &MarginParams, now: &BTreeMap<String, Sums>, before: Option<&[SaleLine]>, all: i64) -> Vec<MarginRow> {
    // The compared days have other months, so there is nothing to set a month against.
    let before = before.filter(|_| params.group_by != MarginGroup::Month).map(|lines| groups(lines, params.group_by));
    let mut rows: Vec<MarginRow> = now
        .iter()
        .map(|(key, sums)| {
            let earlier = before.as_ref().map(|groups| groups.get(key).map_or(0, Sums::margin));
            MarginRow {
                key: key.clone(),
                name: sums.name.clone(),
                pieces: sums.pieces,
                revenue_cents: sums.revenue(),
                cost_cents: sums.cost(),
                margin_cents: Figure::new(sums.margin(), earlier),
                margin_percent: percent(sums.margin(), sums.revenue()),
                share_percent: percent(sums.margin(), all),
            }
        })
        .collect();
    rows.sort_by(|a, b| {
        let order = match params.sort {
            MarginSort::Margin => a.margin_cents.value.cmp(&b.margin_cents.value),
            MarginSort::Revenue => a.revenue_cents.cmp(&b.revenue_cents),
            MarginSort::Percent => {
                let percent = |row: &MarginRow| row.margin_percent.unwrap_or(f64::MIN);
                percent(a).total_cmp(&percent(b))
            }
        };
        order.reverse().then(a.key.cmp(&b.key))
    });
    rows.truncate(usize::try_from(params.limit.0).unwrap_or(usize::MAX));
    rows
}
