//! Stock by variant and warehouse.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Limit, Offset, Page, ProductId, Sku, Warehouse},
    ctx::{Ctx, Listing},
    error::ShopError,
    groups::{
        orders::expire,
        store::{
            codes::{Slug, SupplierId},
            products::in_category,
        },
    },
    query::Filter,
    values::words,
};

words!(/// How much is free, compared with the reorder point.
    StockLevel { Low = "low", Out = "out", Enough = "enough" });
words!(/// What to sort by: SKU, or fewest free pieces first.
    StockSort { Sku = "sku", Free = "free" });

/// Which rows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParams {
    /// Part of the SKU, brand or name.
    #[schemars(length(min = 2, max = 80), example = &"Larch")]
    text: Option<String>,
    /// Only this warehouse; each has rows of its own.
    warehouse: Option<Warehouse>,
    /// Only variants of this product.
    product_id: Option<ProductId>,
    /// Only products in this category and those below it.
    category: Option<Slug>,
    /// Only what this supplier delivers.
    supplier_id: Option<SupplierId>,
    /// Only rows at this level.
    level: Option<StockLevel>,
    /// Only rows of which pieces are reserved.
    #[serde(default)]
    #[schemars(example = true)]
    only_reserved: bool,
    #[serde(default = "sku")]
    sort: StockSort,
    #[serde(default)]
    limit: Limit,
    #[serde(default)]
    offset: Offset,
}

fn sku() -> StockSort {
    StockSort::Sku
}

/// A variant in a warehouse.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StockRow {
    sku: Sku,
    name: String,
    warehouse: Warehouse,
    version: i64,
    on_hand: i64,
    /// Held by open orders and reservations.
    reserved: i64,
    /// On hand and not reserved.
    free: i64,
    /// Free pieces at which to order again.
    reorder_point: i64,
    level: StockLevel,
}

const TABLES: &str = "stock s join variants v on v.id = s.variant_id join products p on p.id = v.product_id
    join warehouses w on w.id = s.warehouse_id";

const LEVEL: &str =
    "case when s.on_hand <= s.reserved then 'out' when s.on_hand - s.reserved <= v.reorder_point then 'low'
    else 'enough' end";

pub(crate) fn list(ctx: &Ctx<'_>, params: ListParams) -> Result<Page<StockRow>, ShopError> {
    expire(ctx)?;
    let mut filter = Filter::default();
    filter.push("p.status <> 'archived'");
    if let Some(text) = &params.text {
        filter.contains(&["v.sku", "p.brand || ' ' || p.name || ' ' || v.name"], text);
    }
    filter.bind("w.code = ?", params.warehouse.as_ref())?;
    filter.bind("v.product_id = ?", params.product_id.as_ref())?;
    in_category(ctx, &mut filter, params.category.as_ref())?;
    filter.bind("p.supplier_id = ?", params.supplier_id.as_ref())?;
    filter.bind(&format!("{LEVEL} = ?"), params.level.as_ref())?;
    if params.only_reserved {
        filter.push("s.reserved > 0");
    }
    let columns = format!(
        "v.sku, trim(p.brand || ' ' || p.name || ' ' || v.name) as name, w.code as warehouse, s.version, s.on_hand, s.reserved,
         s.on_hand - s.reserved as free, v.reorder_point, {LEVEL} as level"
    );
    let order = match params.sort {
        StockSort::Sku => "v.sku, w.id",
        StockSort::Free => "free, v.sku, w.id",
    };
    let listing = Listing { columns: &columns, from: TABLES, order, limit: params.limit, offset: params.offset };
    ctx.page(listing, &filter, |row| {
        Ok(StockRow {
            sku: Sku(row.get("sku")?),
            name: row.get("name")?,
            warehouse: row.get("warehouse")?,
            version: row.get("version")?,
            on_hand: row.get("on_hand")?,
            reserved: row.get("reserved")?,
            free: row.get("free")?,
            reorder_point: row.get("reorder_point")?,
            level: row.get("level")?,
        })
    })
}
