//! One variant in one warehouse: how writes find the row and book a movement.

use rusqlite::params;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    common::{Sku, Version, Warehouse, first},
    ctx::Ctx,
    error::ShopError,
    groups::{
        orders::{expire, warehouse_id},
        store::codes::MovementKind,
    },
};

/// Stock of a variant in a warehouse.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ShelfState {
    pub(crate) sku: Sku,
    pub(crate) warehouse: Warehouse,
    /// Pass as `expected_version` when writing.
    pub(crate) version: i64,
    pub(crate) on_hand: i64,
    /// Held by open orders and reservations.
    pub(crate) reserved: i64,
    /// On hand and not reserved.
    pub(crate) free: i64,
}

/// The row of a variant in a warehouse.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) variant_id: i64,
    pub(crate) warehouse_id: i64,
    pub(crate) on_hand: i64,
    sku: Sku,
    warehouse: Warehouse,
    reserved: i64,
}

/// Opens a row for writing, after letting go what has expired; `field` is the SKU's argument for errors.
///
/// # Errors
/// `Refused` with `not_found` or `conflict`.
pub(crate) fn open(
    ctx: &Ctx<'_>,
    sku: &Sku,
    warehouse: Warehouse,
    expected: Option<Version>,
    field: &str,
) -> Result<Shelf, ShopError> {
    expire(ctx)?;
    let variant: Option<i64> = ctx.one("select id from variants where sku = ?", [&sku.0], first)?;
    let variant_id = variant.ok_or_else(|| ShopError::not_found("variant", &sku.0, "store_variants_list").at(field))?;
    let warehouse_id = warehouse_id(ctx, warehouse.as_str())?;
    ctx.run(
        "insert or ignore into stock (variant_id, warehouse_id, on_hand) values (?, ?, 0)",
        [variant_id, warehouse_id],
    )?;
    let sql = "select on_hand, reserved, version from stock where variant_id = ? and warehouse_id = ?";
    let (on_hand, reserved, version) =
        ctx.db.query_row(sql, [variant_id, warehouse_id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Version::check(expected, version, &format!("stock of {} in {warehouse}", sku.0))?;
    Ok(Shelf { variant_id, warehouse_id, on_hand, sku: sku.clone(), warehouse, reserved })
}

impl Shelf {
    /// Books pieces in or out.
    ///
    /// # Errors
    /// `Refused` with `state` when fewer would be left than are reserved.
    pub(crate) fn book(&self, ctx: &Ctx<'_>, delta: i64, kind: MovementKind, reason: &str) -> Result<(), ShopError> {
        let (sku, place) = (&self.sku.0, self.warehouse);
        if self.on_hand + delta < self.reserved {
            return Err(ShopError::state(
                format!(
                    "{sku} in {place}: {} on hand, {} reserved, so {} can leave, not {}",
                    self.on_hand,
                    self.reserved,
                    self.on_hand - self.reserved,
                    -delta
                ),
                "who holds pieces is in `store_stock_get`; take them off an order with `orders_item_remove` first",
            ));
        }
        ctx.run(
            "update stock set on_hand = on_hand + ?3, version = version + 1 where variant_id = ?1 and warehouse_id = ?2",
            params![self.variant_id, self.warehouse_id, delta],
        )?;
        ctx.run(
            "insert into stock_movements (variant_id, warehouse_id, delta, kind, reason, user_id, at) values (?, ?, ?, ?, ?, ?, ?)",
            params![self.variant_id, self.warehouse_id, delta, kind, reason, ctx.user.id, ctx.now()],
        )?;
        Ok(())
    }

    /// Reads how a write leaves the row.
    ///
    /// # Errors
    /// `Db` when the database fails.
    pub(crate) fn state(&self, ctx: &Ctx<'_>) -> Result<ShelfState, ShopError> {
        let sql = "select version, on_hand, reserved from stock where variant_id = ? and warehouse_id = ?";
        Ok(ctx.db.query_row(sql, [self.variant_id, self.warehouse_id], |row| {
            let (on_hand, reserved): (i64, i64) = (row.get(1)?, row.get(2)?);
            Ok(ShelfState {
                sku: self.sku.clone(),
                warehouse: self.warehouse,
                version: row.get(0)?,
                on_hand,
                reserved,
                free: on_hand - reserved,
            })
        })?)
    }
}
