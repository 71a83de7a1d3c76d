//! Taking a product out of the catalog.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{Change, OrderId, ProductId, Version, first},
    ctx::Ctx,
    error::ShopError,
    groups::{
        orders::expire,
        store::{
            codes::ProductStatus,
            view::{ProductChange, close, open},
        },
    },
};

/// Which product, and why.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArchiveParams {
    id: ProductId,
    expected_version: Option<Version>,
    /// Why, for colleagues.
    #[schemars(length(min = 3, max = 200), example = &"the maker stopped it")]
    reason: String,
}

pub(crate) fn archive(ctx: &Ctx<'_>, params: ArchiveParams) -> Result<ProductChange, ShopError> {
    expire(ctx)?;
    let card = open(ctx, params.id, params.expected_version)?;
    let id = card.id;
    if card.status == ProductStatus::Archived {
        return Err(ShopError::state(
            format!("product {id} is archived already"),
            "bring it back with `store_product_update` and a status",
        ));
    }
    refuse_open(ctx, id)?;
    ctx.run("update products set status = 'archived' where id = ?", [id])?;
    let changes = vec![Change::new("status", Some(card.status), Some(ProductStatus::Archived))];
    let follow_up = (card.free > 0).then(|| {
        format!(
            "{} pieces are left: move them with store_stock_transfer or write them off with store_stock_adjust",
            card.free
        )
    });
    let summary = format!("archived: {}", params.reason);
    close(ctx, id, changes, &summary, follow_up)
}

fn refuse_open(ctx: &Ctx<'_>, id: ProductId) -> Result<(), ShopError> {
    let sql = "select distinct o.id from order_items i join orders o on o.id = i.order_id join variants v on v.id = i.variant_id
               where v.product_id = ? and o.status in ('new', 'confirmed', 'on_hold', 'picking', 'packed') order by o.id";
    let open: Vec<OrderId> = ctx.all(sql, [id], first)?;
    if open.is_empty() {
        return Ok(());
    }
    let codes: Vec<String> = open.iter().take(5).map(ToString::to_string).collect();
    Err(ShopError::state(
        format!("{} open orders have product {id}: {}", open.len(), codes.join(", ")),
        "ship them or remove the lines with `orders_item_remove` first; to stop selling now set status draft with `store_product_update`",
    ))
}
