//! Entering a new product as a draft.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{ProductId, Sku, first},
    ctx::Ctx,
    error::ShopError,
    groups::store::{
        codes::{Slug, SupplierId},
        new_variant::{NewVariant, add},
        view::{ProductState, state_of},
    },
};

/// The product to enter.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateParams {
    /// Name without the brand.
    #[schemars(length(min = 2, max = 80), example = &"Skála 4")]
    name: String,
    /// Brand.
    #[schemars(length(min = 2, max = 40), example = &"Rovnia")]
    brand: String,
    /// Text for customers.
    #[schemars(length(min = 10, max = 2000), example = &"Tent for four with two porches, 3.4 kg.")]
    description: String,
    /// Main category; one without subcategories.
    category: Slug,
    supplier_id: SupplierId,
    /// VAT rate in CZ: 21, 12 or 0.
    #[schemars(range(min = 0, max = 30), example = 21)]
    vat_percent: i64,
    /// What can be bought; SKUs are made from category, product number and suffix.
    #[schemars(length(min = 1, max = 20), example = serde_json::json!([{"name": "green", "suffix": "GREEN", "weight_g": 3400, "cost_cents": 455_000}]))]
    variants: Vec<NewVariant>,
}

/// The draft and its SKUs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Created {
    product: ProductState,
    /// In the order of `variants`.
    skus: Vec<Sku>,
    follow_up: String,
}

pub(crate) fn create(ctx: &Ctx<'_>, params: CreateParams) -> Result<Created, ShopError> {
    let category_id = leaf(ctx, &params.category, "category")?;
    check_supplier(ctx, params.supplier_id)?;
    check_vat(ctx, params.vat_percent)?;
    refuse_twin(ctx, &params)?;
    let id = ProductId(ctx.insert(
        "insert into products (name, brand, description, status, vat_percent, supplier_id, created_at, updated_at)
         values (?1, ?2, ?3, 'draft', ?4, ?5, ?6, ?6)",
        params![params.name, params.brand, params.description, params.vat_percent, params.supplier_id, ctx.now()],
    )?);
    ctx.run(
        "insert into product_categories (product_id, category_id, is_main) values (?, ?, 1)",
        params![id, category_id],
    )?;
    let skus = add(ctx, id, &params.category.0, &params.variants, "variants")?;
    ctx.log(id, &format!("product entered with {}", joined(&skus)))?;
    let follow_up = "set retail prices in CZK with store_price_set, then status active with store_product_update";
    Ok(Created { product: state_of(ctx, id)?, skus, follow_up: follow_up.to_owned() })
}

/// Writes SKUs as people read them.
pub(crate) fn joined(skus: &[Sku]) -> String {
    let words: Vec<&str> = skus.iter().map(|sku| sku.0.as_str()).collect();
    words.join(", ")
}

/// Finds the number of a category that has no subcategories.
///
/// # Errors
/// `Refused` with `not_found` or `invalid`.
pub(crate) fn leaf(ctx: &Ctx<'_>, slug: &Slug, field: &str) -> Result<i64, ShopError> {
    let sql = "select c.id, (select group_concat(b.slug, ', ') from categories b where b.parent_id = c.id)
               from categories c where c.slug = ?";
    let found: Option<(i64, Option<String>)> = ctx.one(sql, [&slug.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    match found {
        Some((id, None)) => Ok(id),
        Some((_, Some(below))) => Err(ShopError::invalid(field, &slug.0, &format!("one of {below}"))),
        None => Err(ShopError::not_found("category", &slug.0, "store_categories_list").at(field)),
    }
}

/// Refuses a supplier that there is not.
///
/// # Errors
/// `Refused` with `not_found`.
pub(crate) fn check_supplier(ctx: &Ctx<'_>, id: SupplierId) -> Result<(), ShopError> {
    match ctx.value::<i64>("select count(*) from suppliers where id = ?", [id])? {
        0 => Err(ShopError::not_found("supplier", id, "store_suppliers_list").at("supplier_id")),
        _ => Ok(()),
    }
}

/// Refuses a VAT rate that the shop's country does not have.
///
/// # Errors
/// `Refused` with `invalid`, naming the rates.
pub(crate) fn check_vat(ctx: &Ctx<'_>, percent: i64) -> Result<(), ShopError> {
    let sql = "select percent from vat_rates where country = 'CZ' order by percent desc";
    let rates: Vec<i64> = ctx.all(sql, [], first)?;
    if rates.contains(&percent) {
        return Ok(());
    }
    let words: Vec<String> = rates.iter().map(ToString::to_string).collect();
    Err(ShopError::invalid("vat_percent", percent, &words.join(", ")))
}

fn refuse_twin(ctx: &Ctx<'_>, params: &CreateParams) -> Result<(), ShopError> {
    let sql = "select id from products where brand = ? and name = ?";
    let twin: Option<ProductId> = ctx.one(sql, [&params.brand, &params.name], first)?;
    match twin {
        Some(twin) => Err(ShopError::state(
            format!("{twin} is {} {} already", params.brand, params.name),
            "add variants to it with `store_product_update`",
        )
        .at("name")),
        None => Ok(()),
    }
}
