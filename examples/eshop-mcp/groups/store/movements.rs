//! One variant in all warehouses: counts, who holds pieces, and the latest movements.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{DateRange, Limit, OrderId, Sku, Warehouse},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::{
        orders::expire,
        store::{
            codes::{MovementKind, ReservationId},
            shelf::ShelfState,
            view::variant_of,
        },
    },
    query::Filter,
};

/// Which variant, and how much of its past.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetParams {
    sku: Sku,
    /// Kinds of movements to show; all when absent.
    #[serde(default)]
    #[schemars(length(max = 5), example = [MovementKind::Adjust, MovementKind::Transfer])]
    kinds: Vec<MovementKind>,
    /// Days of the movements to show; the latest when absent.
    moved: Option<DateRange>,
    #[serde(default)]
    limit: Limit,
}

/// Stock of a variant everywhere.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VariantStock {
    name: String,
    warehouses: Vec<ShelfState>,
    /// Pieces free to sell in all warehouses.
    free: i64,
    /// Open orders that hold pieces.
    orders: Vec<Held>,
    /// Active reservations by hand.
    reservations: Vec<Reservation>,
    /// Latest first; `limit` is for these.
    movements: Vec<Movement>,
}

/// Pieces that an order holds.
#[derive(Debug, Serialize, JsonSchema)]
struct Held {
    order_id: OrderId,
    warehouse: Warehouse,
    quantity: i64,
}

/// Pieces held by hand.
#[derive(Debug, Serialize, JsonSchema)]
struct Reservation {
    /// Pass as `id` to store_stock_reserve.
    id: ReservationId,
    warehouse: Warehouse,
    quantity: i64,
    reason: String,
    /// Last day it holds.
    expires_on: Option<Date>,
    by: String,
}

/// Pieces that came or went.
#[derive(Debug, Serialize, JsonSchema)]
struct Movement {
    at: String,
    warehouse: Warehouse,
    kind: MovementKind,
    /// Negative when pieces went out.
    delta: i64,
    order_id: Option<OrderId>,
    reason: Option<String>,
}

pub(crate) fn get(ctx: &Ctx<'_>, params: GetParams) -> Result<VariantStock, ShopError> {
    expire(ctx)?;
    let variant = variant_of(ctx, &params.sku, "sku")?;
    let id: i64 = ctx.value("select id from variants where sku = ?", [&params.sku.0])?;
    Ok(VariantStock {
        name: variant.name,
        warehouses: shelves(ctx, &params.sku, id)?,
        free: variant.free,
        orders: orders(ctx, id)?,
        reservations: reservations(ctx, id)?,
        movements: movements(ctx, &params, id)?,
    })
}

fn shelves(ctx: &Ctx<'_>, sku: &Sku, id: i64) -> Result<Vec<ShelfState>, ShopError> {
    let sql = "select w.code, s.version, s.on_hand, s.reserved, s.on_hand - s.reserved from stock s
               join warehouses w on w.id = s.warehouse_id where s.variant_id = ? order by w.id";
    ctx.all(sql, [id], |row| {
        Ok(ShelfState {
            sku: sku.clone(),
            warehouse: row.get(0)?,
            version: row.get(1)?,
            on_hand: row.get(2)?,
            reserved: row.get(3)?,
            free: row.get(4)?,
        })
    })
}

fn orders(ctx: &Ctx<'_>, id: i64) -> Result<Vec<Held>, ShopError> {
    let sql = "select o.id, w.code, sum(i.quantity) from order_items i join orders o on o.id = i.order_id
                   join warehouses w on w.id = o.warehouse_id
               where i.variant_id = ? and o.status in ('new', 'confirmed', 'on_hold', 'picking', 'packed')
               group by o.id order by o.id";
    ctx.all(sql, [id], |row| Ok(Held { order_id: row.get(0)?, warehouse: row.get(1)?, quantity: row.get(2)? }))
}

fn reservations(ctx: &Ctx<'_>, id: i64) -> Result<Vec<Reservation>, ShopError> {
    let sql = "select r.id, w.code, r.quantity, r.reason, r.expires_on, u.login from reservations r
                   join warehouses w on w.id = r.warehouse_id join users u on u.id = r.user_id
               where r.variant_id = ? and r.status = 'active' order by r.id";
    ctx.all(sql, params![id], |row| {
        Ok(Reservation {
            id: row.get(0)?,
            warehouse: row.get(1)?,
            quantity: row.get(2)?,
            reason: row.get(3)?,
            expires_on: row.get(4)?,
            by: row.get(5)?,
        })
    })
}

fn movements(ctx: &Ctx<'_>, params: &GetParams, id: i64) -> Result<Vec<Movement>, ShopError> {
    let mut filter = Filter::default();
    filter.bind("m.variant_id = ?", Some(&id))?;
    filter.any("m.kind", &params.kinds)?;
    filter.days("m.at", "moved", params.moved.as_ref())?;
    let sql = format!(
        "select m.at, w.code, m.kind, m.delta, m.order_id, m.reason from stock_movements m
         join warehouses w on w.id = m.warehouse_id{} order by m.at desc, m.id desc limit {}",
        filter.to_sql(),
        params.limit.0
    );
    ctx.all(&sql, rusqlite::params_from_iter(&filter.values), |row| {
        Ok(Movement {
            at: row.get(0)?,
            warehouse: row.get(1)?,
            kind: row.get(2)?,
            delta: row.get(3)?,
            order_id: row.get(4)?,
            reason: row.get(5)?,
        })
    })
}
