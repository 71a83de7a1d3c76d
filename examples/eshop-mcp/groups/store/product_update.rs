//! Changing a product's texts, supplier, VAT rate and state, and adding variants.

use rusqlite::params;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{Change, Currency, ProductId, Sku, Version},
    ctx::{Ctx, Role},
    error::ShopError,
    groups::store::{
        codes::{PriceList, ProductStatus, SupplierId},
        edit::Fields,
        new_variant::{NewVariant, add},
        price_sql::price_sql,
        product_create::{check_supplier, check_vat, joined},
        view::{ProductCard, ProductChange, close, open},
    },
    values::words,
};

words!(/// State to go to: `active` sells it, `draft` hides it. Archived is reached with store_product_archive only.
    ShownStatus { Active = "active", Draft = "draft" });

impl ShownStatus {
    fn status(self) -> ProductStatus {
        match self {
            Self::Active => ProductStatus::Active,
            Self::Draft => ProductStatus::Draft,
        }
    }
}

/// What to change; what is absent stays.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateParams {
    id: ProductId,
    expected_version: Option<Version>,
    /// Name without the brand.
    #[schemars(length(min = 2, max = 80), example = &"Skála 2 Plus")]
    name: Option<String>,
    /// Brand.
    #[schemars(length(min = 2, max = 40), example = &"Rovnia")]
    brand: Option<String>,
    /// Text for customers.
    #[schemars(length(min = 10, max = 2000), example = &"Tent for two, now with longer poles.")]
    description: Option<String>,
    /// VAT rate in CZ: 21, 12 or 0; prices stay, since they include VAT.
    #[schemars(range(min = 0, max = 30), example = 12)]
    vat_percent: Option<i64>,
    /// Who delivers it from now on.
    supplier_id: Option<SupplierId>,
    status: Option<ShownStatus>,
    /// Variants to add.
    #[serde(default)]
    #[schemars(length(max = 20), example = serde_json::json!([{"name": "red", "suffix": "RED", "weight_g": 2350, "cost_cents": 355_000}]))]
    add_variants: Vec<NewVariant>,
}

pub(crate) fn update(ctx: &Ctx<'_>, params: UpdateParams) -> Result<ProductChange, ShopError> {
    let card = open(ctx, params.id, params.expected_version)?;
    if card.status == ProductStatus::Archived {
        unarchive(ctx, &card, params.status)?;
    }
    let mut fields = Fields::new("products", card.id.0);
    fields.set(ctx, "name", params.name.as_ref())?;
    fields.set(ctx, "brand", params.brand.as_ref())?;
    fields.set(ctx, "description", params.description.as_ref())?;
    if let Some(percent) = params.vat_percent {
        check_vat(ctx, percent)?;
        fields.set(ctx, "vat_percent", Some(&percent))?;
    }
    if let Some(supplier) = params.supplier_id {
        check_supplier(ctx, supplier)?;
        supplier_change(ctx, &mut fields, &card, supplier)?;
    }
    let added = add(ctx, card.id, &card.category.0, &params.add_variants, "add_variants")?;
    for sku in &added {
        fields.changes.push(Change::new("variants", None::<i64>, Some(&sku.0)));
    }
    if let Some(status) = params.status.map(ShownStatus::status) {
        if status == ProductStatus::Active {
            require_prices(ctx, card.id)?;
        }
        fields.set(ctx, "status", Some(&status.to_string()))?;
    }
    finish(ctx, card, fields.changes, added)
}

fn finish(ctx: &Ctx<'_>, card: ProductCard, changes: Vec<Change>, added: Vec<Sku>) -> Result<ProductChange, ShopError> {
    let id = card.id;
    if changes.is_empty() {
        return Err(ShopError::state(
            format!("product {id} already has these values"),
            "give at least one field that differs from `store_product_get`",
        ));
    }
    let fields: Vec<&str> = changes.iter().map(|change| change.field.as_str()).collect();
    let summary = format!("changed {}", fields.join(", "));
    let follow_up = (!added.is_empty())
        .then(|| format!("set prices of {} with store_price_set before they can be sold", joined(&added)));
    close(ctx, id, changes, &summary, follow_up)
}

fn unarchive(ctx: &Ctx<'_>, card: &ProductCard, status: Option<ShownStatus>) -> Result<(), ShopError> {
    if status.is_none() {
        return Err(ShopError::state(
            format!("product {} is archived", card.id),
            "pass `status` to bring it back, which takes role manager",
        ));
    }
    ctx.user.check("store_product_update of an archived product", Role::Manager)
}

fn supplier_change(
    ctx: &Ctx<'_>,
    fields: &mut Fields,
    card: &ProductCard,
    supplier: SupplierId,
) -> Result<(), ShopError> {
    if card.supplier_id != supplier {
        ctx.run("update products set supplier_id = ? where id = ?", params![supplier, card.id])?;
        let change = Change::new("supplier_id", Some(card.supplier_id), Some(supplier));
        fields.changes.push(change);
    }
    Ok(())
}

/// A product is sold only when every active variant has a price for visitors.
fn require_prices(ctx: &Ctx<'_>, id: ProductId) -> Result<(), ShopError> {
    let price = price_sql(PriceList::Retail, Currency::Czk, ctx.today);
    let missing: Option<String> = ctx.value(
        &format!(
            "select group_concat(v.sku, ', ') from variants v where v.product_id = ? and v.status = 'active' and {price} is null"
        ),
        [id],
    )?;
    match missing {
        None => Ok(()),
        Some(skus) => {
            Err(ShopError::state(format!("no retail price in CZK for {skus}"), "set it with `store_price_set` first")
                .at("status"))
        }
    }
}
