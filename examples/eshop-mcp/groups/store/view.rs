//! What tools show of products and variants, and how writes find them.

use rusqlite::Row;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    common::{Change, Currency, ProductId, Sku, Version},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::store::{
        codes::{PriceList, ProductStatus, Slug, SupplierId, VariantStatus},
        price_sql::price_sql,
    },
};

/// Product in short.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProductCard {
    pub(crate) id: ProductId,
    /// Pass as `expected_version` when writing.
    pub(crate) version: i64,
    pub(crate) name: String,
    pub(crate) brand: String,
    pub(crate) status: ProductStatus,
    /// Main category.
    pub(crate) category: Slug,
    pub(crate) supplier_id: SupplierId,
    pub(crate) n_variants: i64,
    /// Pieces free to sell in all warehouses.
    pub(crate) free: i64,
    /// Lowest retail price of today in CZK hundredths; absent when no variant has one.
    pub(crate) from_cents: Option<i64>,
}

/// Variant in short.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VariantCard {
    pub(crate) sku: Sku,
    /// Pass as `expected_version` when writing.
    pub(crate) version: i64,
    pub(crate) product_id: ProductId,
    /// Brand, product and variant.
    pub(crate) name: String,
    pub(crate) status: VariantStatus,
    pub(crate) ean: String,
    pub(crate) weight_g: i64,
    /// Purchase price in CZK hundredths, without VAT.
    pub(crate) cost_cents: i64,
    /// Today's price in the list and currency asked for; absent when there is none.
    pub(crate) price_cents: Option<i64>,
    /// Pieces free to sell in all warehouses.
    pub(crate) free: i64,
    /// Free pieces at which to order again.
    pub(crate) reorder_point: i64,
    /// Pieces are ordered in multiples of this.
    pub(crate) reorder_qty: i64,
}

/// Product as a write leaves it; store_product_get has the rest.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProductState {
    pub(crate) id: ProductId,
    /// Pass as `expected_version` when writing again.
    pub(crate) version: i64,
    pub(crate) status: ProductStatus,
}

/// Answer of a write on a product.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProductChange {
    pub(crate) product: ProductState,
    /// What differs from before, one entry per field.
    pub(crate) changes: Vec<Change>,
    /// What to do next, if anything follows from it.
    pub(crate) follow_up: Option<String>,
}

/// Columns of [`ProductCard`], with products as `p`.
pub(crate) fn product_columns(today: Date) -> String {
    let price = price_sql(PriceList::Retail, Currency::Czk, today);
    format!(
        "p.id, p.version, p.name, p.brand, p.status, p.supplier_id,
         (select c.slug from product_categories pc join categories c on c.id = pc.category_id
          where pc.product_id = p.id and pc.is_main = 1) as category,
         (select count(*) from variants v where v.product_id = p.id) as n_variants,
         {FREE_OF_PRODUCT} as free,
         (select min({price}) from variants v where v.product_id = p.id) as from_cents"
    )
}

/// Free pieces of product `p` in all warehouses, as SQL.
pub(crate) const FREE_OF_PRODUCT: &str = "(select coalesce(sum(s.on_hand - s.reserved), 0) from stock s
    join variants v on v.id = s.variant_id where v.product_id = p.id)";

pub(crate) fn product_card(row: &Row<'_>) -> rusqlite::Result<ProductCard> {
    Ok(ProductCard {
        id: row.get("id")?,
        version: row.get("version")?,
        name: row.get("name")?,
        brand: row.get("brand")?,
        status: row.get("status")?,
        category: Slug(row.get("category")?),
        supplier_id: row.get("supplier_id")?,
        n_variants: row.get("n_variants")?,
        free: row.get("free")?,
        from_cents: row.get("from_cents")?,
    })
}

/// Reads the card of one product.
///
/// # Errors
/// `Refused` with `not_found`.
pub(crate) fn product_of(ctx: &Ctx<'_>, id: ProductId, field: &str) -> Result<ProductCard, ShopError> {
    let columns = product_columns(ctx.today);
    let sql = format!("select {columns} from products p where p.id = ?");
    ctx.one(&sql, [id], product_card)?
        .ok_or_else(|| ShopError::not_found("product", id, "store_products_list").at(field))
}

/// Reads how a write leaves a product.
///
/// # Errors
/// `Refused` with `not_found`.
pub(crate) fn state_of(ctx: &Ctx<'_>, id: ProductId) -> Result<ProductState, ShopError> {
    let card = product_of(ctx, id, "id")?;
    Ok(ProductState { id, version: card.version, status: card.status })
}

/// Opens a product for writing.
///
/// # Errors
/// `Refused` with `not_found` or `conflict`.
pub(crate) fn open(ctx: &Ctx<'_>, id: ProductId, expected: Option<Version>) -> Result<ProductCard, ShopError> {
    let card = product_of(ctx, id, "id")?;
    Version::check(expected, card.version, &format!("product {id}"))?;
    Ok(card)
}

/// Closes a product that was written: new version, activity, answer.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn close(
    ctx: &Ctx<'_>,
    id: ProductId,
    changes: Vec<Change>,
    summary: &str,
    follow_up: Option<String>,
) -> Result<ProductChange, ShopError> {
    ctx.run(
        "update products set version = version + 1, updated_at = ? where id = ?",
        rusqlite::params![ctx.now(), id],
    )?;
    ctx.log(id, summary)?;
    Ok(ProductChange { product: state_of(ctx, id)?, changes, follow_up })
}

/// Columns of [`VariantCard`], for the tables of [`VARIANT_TABLES`].
pub(crate) fn variant_columns(list: PriceList, currency: Currency, today: Date) -> String {
    let price = price_sql(list, currency, today);
    format!(
        "v.sku, v.version, v.product_id, trim(p.brand || ' ' || p.name || ' ' || v.name) as name, v.status, v.ean, v.weight_g,
         v.cost_cents, {price} as price_cents, {FREE_OF_VARIANT} as free, v.reorder_point, v.reorder_qty"
    )
}

/// Tables of [`VariantCard`].
pub(crate) const VARIANT_TABLES: &str = "variants v join products p on p.id = v.product_id";

/// Free pieces of variant `v` in all warehouses, as SQL.
pub(crate) const FREE_OF_VARIANT: &str =
    "(select coalesce(sum(s.on_hand - s.reserved), 0) from stock s where s.variant_id = v.id)";

pub(crate) fn variant_card(row: &Row<'_>) -> rusqlite::Result<VariantCard> {
    Ok(VariantCard {
        sku: Sku(row.get("sku")?),
        version: row.get("version")?,
        product_id: row.get("product_id")?,
        name: row.get("name")?,
        status: row.get("status")?,
        ean: row.get("ean")?,
        weight_g: row.get("weight_g")?,
        cost_cents: row.get("cost_cents")?,
        price_cents: row.get("price_cents")?,
        free: row.get("free")?,
        reorder_point: row.get("reorder_point")?,
        reorder_qty: row.get("reorder_qty")?,
    })
}

/// Reads the card of one variant, with its retail price in CZK.
///
/// # Errors
/// `Refused` with `not_found`.
pub(crate) fn variant_of(ctx: &Ctx<'_>, sku: &Sku, field: &str) -> Result<VariantCard, ShopError> {
    let columns = variant_columns(PriceList::Retail, Currency::Czk, ctx.today);
    let sql = format!("select {columns} from {VARIANT_TABLES} where v.sku = ?");
    ctx.one(&sql, [&sku.0], variant_card)?
        .ok_or_else(|| ShopError::not_found("variant", &sku.0, "store_variants_list").at(field))
}
