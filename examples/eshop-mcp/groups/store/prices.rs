//! The list of prices with the periods they hold for.

use rusqlite::Row;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, Limit, Offset, Page, ProductId, Sku},
    ctx::{Ctx, Listing},
    date::Date,
    error::ShopError,
    groups::store::codes::PriceList,
    query::Filter,
};

/// Which prices.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PricesParams {
    /// Only prices of this variant.
    sku: Option<Sku>,
    /// Only prices of this product's variants.
    product_id: Option<ProductId>,
    /// Only this list.
    list: Option<PriceList>,
    /// Only prices in this currency.
    currency: Option<Currency>,
    /// Day the prices hold on; today when absent.
    on: Option<Date>,
    /// Past and planned prices too; `on` does not count then.
    #[serde(default)]
    #[schemars(example = true)]
    all_periods: bool,
    #[serde(default)]
    limit: Limit,
    #[serde(default)]
    offset: Offset,
}

/// A price and its period.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Price {
    sku: Sku,
    list: PriceList,
    currency: Currency,
    /// VAT included.
    amount_cents: i64,
    valid_from: Date,
    /// Last day; absent when open.
    valid_to: Option<Date>,
    /// What is left over the purchase price, in percent of the price without VAT.
    margin_percent: i64,
}

impl Price {
    pub(crate) fn starts_on(&self, day: Date) -> bool {
        self.valid_from == day
    }

    /// Whether a piece is sold for less than it cost.
    pub(crate) fn is_loss(&self) -> bool {
        self.margin_percent < 0
    }
}

/// Columns of [`Price`], for the tables of [`PRICE_TABLES`].
pub(crate) const PRICE_COLUMNS: &str =
    "v.sku, r.list, r.currency, r.amount_cents, r.valid_from, r.valid_to, v.cost_cents, p.vat_percent, x.czk_micro";

/// Tables of [`Price`].
pub(crate) const PRICE_TABLES: &str =
    "prices r join variants v on v.id = r.variant_id join products p on p.id = v.product_id
    join currencies x on x.code = r.currency";

pub(crate) fn list(ctx: &Ctx<'_>, params: PricesParams) -> Result<Page<Price>, ShopError> {
    let mut filter = Filter::default();
    filter.bind("v.sku = ?", params.sku.as_ref().map(|sku| &sku.0))?;
    filter.bind("v.product_id = ?", params.product_id.as_ref())?;
    filter.bind("r.list = ?", params.list.as_ref())?;
    filter.bind("r.currency = ?", params.currency.as_ref())?;
    if !params.all_periods {
        let day = params.on.unwrap_or(ctx.today);
        filter.bind("r.valid_from <= ?", Some(&day))?;
        filter.bind("coalesce(r.valid_to, '9999') >= ?", Some(&day))?;
    }
    let listing = Listing {
        columns: PRICE_COLUMNS,
        from: PRICE_TABLES,
        order: "v.sku, r.list, r.currency, r.valid_from, r.id",
        limit: params.limit,
        offset: params.offset,
    };
    ctx.page(listing, &filter, price)
}

pub(crate) fn price(row: &Row<'_>) -> rusqlite::Result<Price> {
    let amount_cents: i64 = row.get("amount_cents")?;
    let (vat, micro): (i64, i64) = (row.get("vat_percent")?, row.get("czk_micro")?);
    let net_czk = amount_cents * micro / 1_000_000 * 100 / (100 + vat);
    let cost: i64 = row.get("cost_cents")?;
    Ok(Price {
        sku: Sku(row.get("sku")?),
        list: row.get("list")?,
        currency: row.get("currency")?,
        amount_cents,
        valid_from: row.get("valid_from")?,
        valid_to: row.get("valid_to")?,
        margin_percent: (net_czk - cost) * 100 / net_czk.max(1),
    })
}
