//! Reservations by hand: setting pieces aside for no order, changing that, letting them go.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Sku, Version, Warehouse},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::{
        orders::{release, reserve as hold},
        store::{
            codes::ReservationId,
            shelf::{self, Shelf, ShelfState},
        },
    },
};

/// How long a reservation holds when no day is given.
const USUAL_DAYS: i64 = 14;

/// Later than this nobody remembers what the pieces were for.
const LONGEST_DAYS: i64 = 90;

/// What to set aside.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReserveParams {
    /// Reservation to change instead of making a new one, from store_stock_get.
    id: Option<ReservationId>,
    sku: Sku,
    warehouse: Warehouse,
    /// Of the stock row.
    expected_version: Option<Version>,
    /// Pieces to hold from now on; 0 lets a reservation go.
    #[schemars(range(min = 0, max = 500), example = 2)]
    quantity: i64,
    /// Last day; two weeks from today when absent, the day it has when changing one.
    expires_on: Option<Date>,
    /// What for.
    #[schemars(length(min = 3, max = 200), example = &"held for Mr. Novák until Friday")]
    reason: String,
}

/// The reservation and the row it is on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Reserved {
    id: ReservationId,
    /// Pieces it holds; 0 when it was let go.
    quantity: i64,
    /// Last day it holds.
    expires_on: Option<Date>,
    stock: ShelfState,
}

pub(crate) fn reserve(ctx: &Ctx<'_>, params: ReserveParams) -> Result<Reserved, ShopError> {
    let shelf = shelf::open(ctx, &params.sku, params.warehouse, params.expected_version, "sku")?;
    check_day(ctx, params.expires_on)?;
    let (id, expires_on) = match params.id {
        Some(id) => change(ctx, &params, &shelf, id)?,
        None => make(ctx, &params, &shelf)?,
    };
    let (quantity, place, reason) = (params.quantity, params.warehouse, &params.reason);
    ctx.log(&params.sku.0, &format!("{id}: {quantity} reserved in {place}, {reason}"))?;
    Ok(Reserved { id, quantity, expires_on, stock: shelf.state(ctx)? })
}

fn check_day(ctx: &Ctx<'_>, day: Option<Date>) -> Result<(), ShopError> {
    let last = ctx.today.plus_days(LONGEST_DAYS);
    match day {
        Some(day) if day < ctx.today || day > last => {
            let allowed = format!("{} (today) to {last}", ctx.today);
            Err(ShopError::invalid("expires_on", day, &allowed))
        }
        _ => Ok(()),
    }
}

fn make(ctx: &Ctx<'_>, params: &ReserveParams, shelf: &Shelf) -> Result<(ReservationId, Option<Date>), ShopError> {
    if params.quantity == 0 {
        return Err(ShopError::invalid("quantity", 0, "1 or more without `id`"));
    }
    hold(ctx, shelf.variant_id, shelf.warehouse_id, params.quantity).map_err(|error| error.at("quantity"))?;
    let day = params.expires_on.unwrap_or(ctx.today.plus_days(USUAL_DAYS));
    let id = ctx.insert(
        "insert into reservations (variant_id, warehouse_id, quantity, reason, status, expires_on, user_id, created_at)
         values (?, ?, ?, ?, 'active', ?, ?, ?)",
        params![shelf.variant_id, shelf.warehouse_id, params.quantity, params.reason, day, ctx.user.id, ctx.now()],
    )?;
    Ok((ReservationId(id), Some(day)))
}

fn change(
    ctx: &Ctx<'_>,
    params: &ReserveParams,
    shelf: &Shelf,
    id: ReservationId,
) -> Result<(ReservationId, Option<Date>), ShopError> {
    let sql = "select quantity, expires_on, status = 'active' from reservations where id = ? and variant_id = ? and warehouse_id = ?";
    let place = params![id, shelf.variant_id, shelf.warehouse_id];
    let found: Option<(i64, Option<Date>, bool)> =
        ctx.one(sql, place, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let (before, day) = match found {
        Some((before, day, true)) => (before, day),
        Some(_) => {
            return Err(ShopError::state(
                format!("reservation {id} was let go or has expired"),
                "make a new one without `id`",
            )
            .at("id"));
        }
        None => {
            let kind = format!("reservation of {} in {} with code", params.sku.0, params.warehouse);
            return Err(ShopError::not_found(&kind, id, "store_stock_get").at("id"));
        }
    };
    let more = params.quantity - before;
    if more > 0 {
        hold(ctx, shelf.variant_id, shelf.warehouse_id, more).map_err(|error| error.at("quantity"))?;
    } else {
        release(ctx, shelf.variant_id, shelf.warehouse_id, -more)?;
    }
    let day = params.expires_on.or(day);
    if params.quantity == 0 {
        ctx.run("update reservations set status = 'released' where id = ?", [id])?;
    } else {
        ctx.run(
            "update reservations set quantity = ?, expires_on = ?, reason = ? where id = ?",
            params![params.quantity, day, params.reason, id],
        )?;
    }
    Ok((id, day))
}
