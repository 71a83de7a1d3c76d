//! Adding variants to a product: SKU, EAN, empty shelves.

use rusqlite::params;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{ProductId, Sku, first},
    ctx::Ctx,
    error::ShopError,
};

/// A variant to add.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewVariant {
    /// What tells it from the others; empty for the only one.
    #[serde(default)]
    #[schemars(length(max = 40), example = &"green")]
    name: String,
    /// Last part of the SKU; none when absent, which only one variant of a product may have.
    #[schemars(regex(pattern = "^[A-Z0-9-]{1,6}$"), example = &"GREEN")]
    suffix: Option<String>,
    /// EAN-13; a number of the shop's own range when absent.
    #[schemars(regex(pattern = "^[0-9]{13}$"), example = &"8594001234561")]
    ean: Option<String>,
    /// Weight in grams, with its own packaging.
    #[schemars(range(min = 1, max = 100_000), example = 2350)]
    weight_g: i64,
    /// Purchase price in CZK hundredths, without VAT.
    #[schemars(range(min = 1, max = 100_000_000), example = 355_000)]
    cost_cents: i64,
    /// Free pieces at which to order again.
    #[serde(default = "five")]
    #[schemars(range(min = 0, max = 1000), example = 5)]
    reorder_point: i64,
    /// Pieces are ordered in multiples of this.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 1000), example = 10)]
    reorder_qty: i64,
}

fn five() -> i64 {
    5
}

/// Adds variants and returns their SKUs; `field` is the argument's name for errors.
///
/// # Errors
/// `Refused` when an EAN is wrong or taken, or a SKU is taken.
pub(crate) fn add(
    ctx: &Ctx<'_>,
    product: ProductId,
    category: &str,
    variants: &[NewVariant],
    field: &str,
) -> Result<Vec<Sku>, ShopError> {
    let mut skus = Vec::new();
    for (index, variant) in variants.iter().enumerate() {
        let sku = sku(ctx, product, category, variant, &format!("{field}[{index}]"))?;
        let ean = match &variant.ean {
            Some(ean) => {
                check_ean(ctx, ean, &format!("{field}[{index}].ean"))?;
                ean.clone()
            }
            None => own_ean(ctx)?,
        };
        let id = ctx.insert(
            "insert into variants (product_id, sku, name, ean, weight_g, cost_cents, status, reorder_point, reorder_qty)
             values (?, ?, ?, ?, ?, ?, 'active', ?, ?)",
            params![
                product,
                sku.0,
                variant.name,
                ean,
                variant.weight_g,
                variant.cost_cents,
                variant.reorder_point,
                variant.reorder_qty
            ],
        )?;
        ctx.run("insert into stock (variant_id, warehouse_id, on_hand) select ?, id, 0 from warehouses", [id])?;
        skus.push(sku);
    }
    Ok(skus)
}

/// Makes the SKU: the prefix of the category, the product's number, the suffix.
fn sku(ctx: &Ctx<'_>, product: ProductId, category: &str, variant: &NewVariant, field: &str) -> Result<Sku, ShopError> {
    let used: Option<String> = ctx.one(
        "select substr(v.sku, 1, 3) from variants v join product_categories pc on pc.product_id = v.product_id
             join categories c on c.id = pc.category_id
         where c.slug = ?1 and pc.is_main = 1 order by v.product_id = ?2 desc, v.id limit 1",
        params![category, product],
        first,
    )?;
    let prefix = used.unwrap_or_else(|| category.chars().take(3).collect::<String>().to_uppercase());
    let mut sku = format!("{prefix}-{:03}", product.0);
    if let Some(suffix) = &variant.suffix {
        sku = format!("{sku}-{suffix}");
    }
    let n_taken: i64 = ctx.value("select count(*) from variants where sku = ?", [&sku])?;
    if n_taken > 0 {
        let allowed = "a suffix that no other variant of the product has";
        return Err(ShopError::invalid(&format!("{field}.suffix"), &sku, allowed));
    }
    Ok(Sku(sku))
}

/// Refuses an EAN with a wrong check digit, or one that another variant has.
///
/// # Errors
/// `Refused` with `invalid`.
pub(crate) fn check_ean(ctx: &Ctx<'_>, ean: &str, field: &str) -> Result<(), ShopError> {
    let (digits, check) = ean.split_at(12);
    let expected = check_digit(digits);
    if check != expected.to_string() {
        let allowed = format!("{digits}{expected}, if the first twelve digits are right");
        return Err(ShopError::invalid(field, ean, &allowed));
    }
    let owner: Option<String> = ctx.one("select sku from variants where ean = ?", [ean], first)?;
    match owner {
        Some(sku) => {
            let allowed = format!("an EAN that no variant has; this one is {sku}");
            Err(ShopError::invalid(field, ean, &allowed))
        }
        None => Ok(()),
    }
}

/// The next number of the range 29, which is left to shops.
fn own_ean(ctx: &Ctx<'_>) -> Result<String, ShopError> {
    let next: i64 = ctx.value("select coalesce(max(id), 0) + 1 from variants", [])?;
    let digits = format!("29{next:010}");
    let check = check_digit(&digits);
    Ok(format!("{digits}{check}"))
}

/// **Source:** GS1 General Specifications, 7.9.1.
fn check_digit(digits: &str) -> u32 {
    let sum: u32 = digits
        .chars()
        .filter_map(|digit| digit.to_digit(10))
        .zip([1, 3].into_iter().cycle())
        .map(|(digit, weight)| digit * weight)
        .sum();
    (10 - sum % 10) % 10
}
