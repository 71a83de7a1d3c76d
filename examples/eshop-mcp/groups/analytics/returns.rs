//! What comes back.

use std::collections::BTreeMap;

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, DateRange, Limit},
    ctx::Ctx,
    error::ShopError,
    groups::analytics::{
        facts::{Sale, SaleFilter, SaleLine, czk_micro, sale_lines, sales},
        figures::{Figure, Rate, percent, ratio, whole},
        period::{Compare, Scope, Span, czk, previous},
    },
    values::words,
};

words!(/// What to group pieces by.
ReturnGroup {
    Product = "product",
    Variant = "variant",
    Category = "category",
    Channel = "channel",
    Country = "country",
    Segment = "segment",
});

/// Which sales, and how to group them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReturnsParams {
    /// Days of the orders; the last 90 when absent.
    period: Option<DateRange>,
    #[serde(default = "previous")]
    compare: Compare,
    #[serde(default = "czk")]
    currency: Currency,
    #[serde(default = "product")]
    group_by: ReturnGroup,
    /// Pieces that a group must have sold to be shown, so that one return of two is no rate.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 1000), example = 5)]
    min_pieces: i64,
    #[serde(default)]
    limit: Limit,
}

fn product() -> ReturnGroup {
    ReturnGroup::Product
}

fn five() -> i64 {
    5
}

/// Rates and reasons.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Returns {
    scope: Scope,
    /// Pieces refunded of pieces sold.
    rate: Rate,
    pieces_sold: Figure,
    pieces_returned: Figure,
    /// Paid back for these orders, amounts without pieces included.
    refunds_cents: Figure,
    /// refunds / gross.
    refunds_of_gross: Rate,
    /// Highest rate first.
    groups: Vec<ReturnRow>,
    /// Most frequent first.
    reasons: Vec<Reason>,
}

/// A group.
#[derive(Debug, Serialize, JsonSchema)]
struct ReturnRow {
    key: String,
    /// For products and variants.
    name: Option<String>,
    sold: i64,
    returned: i64,
    percent: Option<f64>,
    /// Price of the pieces returned.
    returned_cents: i64,
}

/// Why money went back.
#[derive(Debug, Serialize, JsonSchema)]
struct Reason {
    reason: String,
    refunds: i64,
    cents: i64,
    /// Of the number of refunds.
    share_percent: Option<f64>,
}

pub(crate) fn rate(ctx: &Ctx<'_>, params: ReturnsParams) -> Result<Returns, ShopError> {
    let scope = Scope::new(ctx, params.period, 90, params.compare, params.currency)?;
    let read = |span: Span| -> Result<(Vec<Sale>, Vec<SaleLine>), ShopError> {
        Ok((
            sales(ctx, span, &SaleFilter::default(), params.currency)?,
            sale_lines(ctx, span, &SaleFilter::default(), params.currency)?,
        ))
    };
    let now = read(scope.period)?;
    let before = scope.compared.map(read).transpose()?;
    let pieces = |of: fn(&SaleLine) -> i64| {
        let sum = |(_, lines): &(Vec<Sale>, Vec<SaleLine>)| lines.iter().map(of).sum::<i64>();
        Figure::new(sum(&now), before.as_ref().map(sum))
    };
    let amount = |of: fn(&Sale) -> i64| {
        let sum = |(sales, _): &(Vec<Sale>, Vec<SaleLine>)| sales.iter().map(of).sum::<i64>();
        Figure::new(sum(&now), before.as_ref().map(sum))
    };
    let (sold, returned) = (pieces(|line| line.pieces), pieces(|line| line.returned));
    let (refunds, gross) = (amount(|sale| sale.refunds), amount(|sale| sale.gross));
    let of = |part: Figure, whole: Figure| Rate::new((part.value, whole.value), part.previous.zip(whole.previous));
    let mut groups = groups(&now.1, params.group_by);
    groups.retain(|row| row.sold >= params.min_pieces);
    groups.truncate(usize::try_from(params.limit.0).unwrap_or(usize::MAX));
    Ok(Returns {
        scope,
        rate: of(returned, sold),
        pieces_sold: sold,
        pieces_returned: returned,
        refunds_cents: refunds,
        refunds_of_gross: of(refunds, gross),
        groups,
        reasons: reasons(ctx, &now.0, params.currency)?,
    })
}

fn groups(lines: &[SaleLine], by: ReturnGroup) -> Vec<ReturnRow> {
    let mut rows: BTreeMap<String, ReturnRow> = BTreeMap::new();
    for line in lines {
        let (key, name) = match by {
            ReturnGroup::Product => (line.product_id.to_string(), Some(&line.product)),
            ReturnGroup::Variant => (line.sku.clone(), Some(&line.product)),
            ReturnGroup::Category => (line.category.clone(), None),
            ReturnGroup::Channel => (line.channel.to_string(), None),
            ReturnGroup::Country => (line.country.to_string(), None),
            ReturnGroup::Segment => (line.segment.to_string(), None),
        };
        let row = rows.entry(key.clone()).or_insert_with(|| ReturnRow {
            key,
            name: name.cloned(),
            sold: 0,
            returned: 0,
            percent: None,
            returned_cents: 0,
        });
        row.sold += line.pieces;
        row.returned += line.returned;
        row.returned_cents += ratio(line.revenue * line.returned, line.pieces).map_or(0, whole);
        row.percent = percent(row.returned, row.sold);
    }
    let mut rows: Vec<ReturnRow> = rows.into_values().collect();
    rows.sort_by(|a, b| {
        let rate = |row: &ReturnRow| row.percent.unwrap_or(0.0);
        rate(b).total_cmp(&rate(a)).then(b.returned.cmp(&a.returned)).then(a.key.cmp(&b.key))
    });
    rows
}

fn reasons(ctx: &Ctx<'_>, sales: &[Sale], currency: Currency) -> Result<Vec<Reason>, ShopError> {
    let to = czk_micro(ctx, currency)?;
    let sql = "select r.reason, cast(round(r.amount_cents * 1.0 * k.czk_micro / ?2) as integer)
               from refunds r join orders o on o.id = r.order_id join currencies k on k.code = o.currency where o.id = ?1";
    let mut sums: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for sale in sales.iter().filter(|sale| sale.refunds > 0) {
        let refunds: Vec<(String, i64)> = ctx.all(sql, params![sale.id, to], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (reason, cents) in refunds {
            let (n, sum) = sums.entry(reason).or_default();
            *n += 1;
            *sum += cents;
        }
    }
    let all = sums.values().map(|(n, _)| n).sum();
    let mut reasons: Vec<Reason> = sums
        .into_iter()
        .map(|(reason, (refunds, cents))| Reason { reason, refunds, cents, share_percent: percent(refunds, all) })
        .collect();
    reasons.sort_by_key(|reason| (-reason.refunds, -reason.cents));
    Ok(reasons)
}
