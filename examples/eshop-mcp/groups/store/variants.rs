//! The list of variants, and changes to one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Change, Currency, Limit, Offset, Page, ProductId, Sku, Version, Warehouse},
    ctx::{Ctx, Listing, Role},
    error::ShopError,
    groups::{
        orders::expire,
        store::{
            codes::{PriceList, Slug, SupplierId, VariantStatus},
            edit::Fields,
            new_variant::check_ean,
            products::{czk, in_category, retail},
            view::{FREE_OF_VARIANT, VARIANT_TABLES, VariantCard, variant_card, variant_columns, variant_of},
        },
    },
    query::Filter,
};

/// Which variants.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParams {
    /// Part of the SKU, EAN, brand or name.
    #[schemars(length(min = 2, max = 80), example = &"BTS-017")]
    text: Option<String>,
    /// Only variants of this product.
    product_id: Option<ProductId>,
    /// Only variants of products in this category and those below it.
    category: Option<Slug>,
    /// Only what this supplier delivers.
    supplier_id: Option<SupplierId>,
    /// Only variants in this state.
    status: Option<VariantStatus>,
    /// Only variants with free pieces in this warehouse.
    free_in: Option<Warehouse>,
    /// Only variants with at most this many free pieces in all warehouses.
    #[schemars(range(min = 0, max = 10_000), example = 3)]
    max_free: Option<i64>,
    /// List of the prices shown.
    #[serde(default = "retail")]
    price_list: PriceList,
    /// Currency of the prices shown.
    #[serde(default = "czk")]
    currency: Currency,
    #[serde(default)]
    limit: Limit,
    #[serde(default)]
    offset: Offset,
}

pub(crate) fn list(ctx: &Ctx<'_>, params: ListParams) -> Result<Page<VariantCard>, ShopError> {
    expire(ctx)?;
    let mut filter = Filter::default();
    if let Some(text) = &params.text {
        filter.contains(&["v.sku", "v.ean", "p.brand || ' ' || p.name || ' ' || v.name"], text);
    }
    filter.bind("v.product_id = ?", params.product_id.as_ref())?;
    in_category(ctx, &mut filter, params.category.as_ref())?;
    filter.bind("p.supplier_id = ?", params.supplier_id.as_ref())?;
    filter.bind("v.status = ?", params.status.as_ref())?;
    filter.bind(
        "exists (select 1 from stock s join warehouses w on w.id = s.warehouse_id
         where s.variant_id = v.id and s.on_hand > s.reserved and w.code = ?)",
        params.free_in.as_ref(),
    )?;
    filter.bind(&format!("{FREE_OF_VARIANT} <= ?"), params.max_free.as_ref())?;
    let listing = Listing {
        columns: &variant_columns(params.price_list, params.currency, ctx.today),
        from: VARIANT_TABLES,
        order: "v.sku",
        limit: params.limit,
        offset: params.offset,
    };
    ctx.page(listing, &filter, variant_card)
}

/// What to change; what is absent stays.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateParams {
    sku: Sku,
    expected_version: Option<Version>,
    /// What tells it from the product's other variants.
    #[schemars(length(max = 40), example = &"dark green")]
    name: Option<String>,
    /// EAN-13 with its check digit.
    #[schemars(regex(pattern = "^[0-9]{13}$"), example = &"8594001234561")]
    ean: Option<String>,
    /// Weight in grams, with its own packaging.
    #[schemars(range(min = 1, max = 100_000), example = 2400)]
    weight_g: Option<i64>,
    /// Purchase price in CZK hundredths, without VAT. Takes role manager.
    #[schemars(range(min = 1, max = 100_000_000), example = 362_000)]
    cost_cents: Option<i64>,
    status: Option<VariantStatus>,
    /// Free pieces at which to order again.
    #[schemars(range(min = 0, max = 1000), example = 6)]
    reorder_point: Option<i64>,
    /// Pieces are ordered in multiples of this.
    #[schemars(range(min = 1, max = 1000), example = 10)]
    reorder_qty: Option<i64>,
}

/// Answer of a write on a variant.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VariantChange {
    sku: Sku,
    /// Pass as `expected_version` when writing again.
    version: i64,
    /// What differs from before, one entry per field.
    changes: Vec<Change>,
}

pub(crate) fn update(ctx: &Ctx<'_>, params: UpdateParams) -> Result<VariantChange, ShopError> {
    let sku = &params.sku;
    let before = variant_of(ctx, sku, "sku")?;
    Version::check(params.expected_version, before.version, &format!("variant {}", sku.0))?;
    if params.cost_cents.is_some_and(|cost| cost != before.cost_cents) {
        ctx.user.check("store_variant_update with `cost_cents`", Role::Manager)?;
    }
    let id = ctx.value("select id from variants where sku = ?", [&sku.0])?;
    let mut fields = Fields::new("variants", id);
    fields.set(ctx, "name", params.name.as_ref())?;
    if let Some(ean) = params.ean.as_ref().filter(|ean| **ean != before.ean) {
        check_ean(ctx, ean, "ean")?;
        fields.set(ctx, "ean", Some(ean))?;
    }
    fields.set(ctx, "weight_g", params.weight_g.as_ref())?;
    fields.set(ctx, "cost_cents", params.cost_cents.as_ref())?;
    fields.set(ctx, "status", params.status.as_ref())?;
    fields.set(ctx, "reorder_point", params.reorder_point.as_ref())?;
    fields.set(ctx, "reorder_qty", params.reorder_qty.as_ref())?;
    let changes = fields.changes;
    if changes.is_empty() {
        return Err(ShopError::state(
            format!("{} already has these values", sku.0),
            "give at least one field that differs from `store_variants_list`",
        ));
    }
    ctx.run("update variants set version = version + 1 where id = ?", [id])?;
    let names: Vec<&str> = changes.iter().map(|change| change.field.as_str()).collect();
    ctx.log(&sku.0, &format!("changed {}", names.join(", ")))?;
    Ok(VariantChange { version: before.version + 1, sku: params.sku, changes })
}
