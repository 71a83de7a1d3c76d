//! What order writes do to the stock: reserve, release, ship, take back.

use rusqlite::params;

use crate::{
    common::{OrderId, Sku},
    ctx::Ctx,
    error::ShopError,
};

/// A variant as an order line needs it.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) id: i64,
    pub(crate) vat_percent: i64,
    pub(crate) cost_cents: i64,
}

/// Finds a variant that may be sold; `field` is the argument's name for errors.
///
/// # Errors
/// `Refused` with `not_found` or `state`.
pub(crate) fn sellable(ctx: &Ctx<'_>, sku: &Sku, field: &str) -> Result<Variant, ShopError> {
    let sql = "select v.id, p.vat_percent, v.cost_cents, p.status = 'active' and v.status = 'active'
               from variants v join products p on p.id = v.product_id where v.sku = ?";
    let found = ctx.one(sql, [&sku.0], |row| {
        let variant = Variant { id: row.get(0)?, vat_percent: row.get(1)?, cost_cents: row.get(2)? };
        Ok((variant, row.get::<_, bool>(3)?))
    })?;
    match found {
        Some((variant, true)) => Ok(variant),
        Some(_) => Err(ShopError::state(
            format!("{} is not for sale", sku.0),
            "choose an active variant with `store_variants_list`",
        )
        .at(field)),
        None => Err(ShopError::not_found("variant", &sku.0, "store_variants_list").at(field)),
    }
}

/// Finds the number of a warehouse by its code.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn warehouse_id(ctx: &Ctx<'_>, code: &str) -> Result<i64, ShopError> {
    ctx.value("select id from warehouses where code = ?", [code])
}

/// Lets reservations by hand go whose last day has passed.
///
/// Reads call it too, so that they show what the next write will find; their transaction is rolled back.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn expire(ctx: &Ctx<'_>) -> Result<(), ShopError> {
    let over = "r.variant_id = stock.variant_id and r.warehouse_id = stock.warehouse_id and r.status = 'active' and r.expires_on < ?1";
    ctx.run(
        &format!(
            "update stock set version = version + 1,
                 reserved = reserved - (select sum(r.quantity) from reservations r where {over})
             where exists (select 1 from reservations r where {over})"
        ),
        [ctx.today],
    )?;
    ctx.run("update reservations set status = 'released' where status = 'active' and expires_on < ?", [ctx.today])?;
    Ok(())
}

/// Sets pieces aside.
///
/// # Errors
/// `Refused` with `state` when too few are free; the hint says where there are enough.
pub(crate) fn reserve(ctx: &Ctx<'_>, variant_id: i64, warehouse_id: i64, quantity: i64) -> Result<(), ShopError> {
    expire(ctx)?;
    let n_rows = ctx.run(
        "update stock set reserved = reserved + ?3, version = version + 1
         where variant_id = ?1 and warehouse_id = ?2 and on_hand - reserved >= ?3",
        params![variant_id, warehouse_id, quantity],
    )?;
    if n_rows == 1 {
        return Ok(());
    }
    let free: i64 = ctx.value(
        "select coalesce(max(on_hand - reserved), 0) from stock where variant_id = ? and warehouse_id = ?",
        params![variant_id, warehouse_id],
    )?;
    let (sku, code): (String, String) = ctx.db.query_row(
        "select v.sku, w.code from variants v, warehouses w where v.id = ? and w.id = ?",
        [variant_id, warehouse_id],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let elsewhere: Option<String> = ctx.value(
        "select group_concat(w.code || ' ' || (s.on_hand - s.reserved), ', ') from stock s join warehouses w on w.id = s.warehouse_id
         where s.variant_id = ? and s.warehouse_id <> ? and s.on_hand > s.reserved",
        params![variant_id, warehouse_id],
    )?;
    let hint = match elsewhere {
        Some(places) => {
            format!("free elsewhere: {places}; use that warehouse or `store_stock_transfer`")
        }
        None => "none is free anywhere; take fewer, or see `store_reorder_suggest`".to_owned(),
    };
    Err(ShopError::state(format!("{sku} in {code}: {free} free, {quantity} needed"), hint))
}

/// Gives back pieces that were set aside.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn release(ctx: &Ctx<'_>, variant_id: i64, warehouse_id: i64, quantity: i64) -> Result<(), ShopError> {
    ctx.run(
        "update stock set reserved = reserved - ?3, version = version + 1 where variant_id = ?1 and warehouse_id = ?2",
        params![variant_id, warehouse_id, quantity],
    )?;
    Ok(())
}

/// Gives back everything that is set aside for an order, and puts back what delivery lists have taken.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn release_all(ctx: &Ctx<'_>, id: OrderId, warehouse_id: i64) -> Result<(), ShopError> {
    for piece in contents(ctx, id)? {
        release(ctx, piece.variant_id, warehouse_id, piece.waiting)?;
        if piece.taken > 0 {
            take_back(ctx, id, piece.variant_id, warehouse_id, piece.taken)?;
        }
    }
    Ok(())
}

/// Lets all pieces of an order leave the warehouse that no delivery list has taken yet.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn ship_all(ctx: &Ctx<'_>, id: OrderId, warehouse_id: i64) -> Result<(), ShopError> {
    for piece in contents(ctx, id)? {
        if piece.waiting > 0 {
            take(ctx, id, piece.variant_id, warehouse_id, piece.waiting)?;
        }
    }
    Ok(())
}

/// Takes reserved pieces of an order from the shelf.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn take(
    ctx: &Ctx<'_>,
    id: OrderId,
    variant_id: i64,
    warehouse_id: i64,
    quantity: i64,
) -> Result<(), ShopError> {
    ctx.run(
        "update stock set reserved = reserved - ?3, on_hand = on_hand - ?3, version = version + 1
         where variant_id = ?1 and warehouse_id = ?2",
        params![variant_id, warehouse_id, quantity],
    )?;
    movement(ctx, id, (variant_id, warehouse_id, -quantity), "sale")
}

/// Puts taken pieces of an order back on the shelf and reserves them for it again.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn untake(
    ctx: &Ctx<'_>,
    id: OrderId,
    variant_id: i64,
    warehouse_id: i64,
    quantity: i64,
) -> Result<(), ShopError> {
    take_back(ctx, id, variant_id, warehouse_id, quantity)?;
    ctx.run(
        "update stock set reserved = reserved + ?3 where variant_id = ?1 and warehouse_id = ?2",
        params![variant_id, warehouse_id, quantity],
    )?;
    Ok(())
}

/// How many pieces of an order have left the shelf and not come back.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn taken(ctx: &Ctx<'_>, id: OrderId) -> Result<i64, ShopError> {
    Ok(contents(ctx, id)?.iter().map(|piece| piece.taken).sum())
}

/// Puts pieces that came back on the shelf.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn take_back(
    ctx: &Ctx<'_>,
    id: OrderId,
    variant_id: i64,
    warehouse_id: i64,
    quantity: i64,
) -> Result<(), ShopError> {
    ctx.run(
        "update stock set on_hand = on_hand + ?3, version = version + 1 where variant_id = ?1 and warehouse_id = ?2",
        params![variant_id, warehouse_id, quantity],
    )?;
    movement(ctx, id, (variant_id, warehouse_id, quantity), "return")
}

/// Pieces of one variant in an order.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) variant_id: i64,
    /// Still on the shelf, reserved.
    pub(crate) waiting: i64,
    /// Off the shelf: shipped, or taken by a confirmed delivery list.
    pub(crate) taken: i64,
}

/// Reads what an order holds, by variant.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn contents(ctx: &Ctx<'_>, id: OrderId) -> Result<Vec<Contents>, ShopError> {
    ctx.all(
        "select i.variant_id, sum(i.quantity), (select coalesce(-sum(m.delta), 0) from stock_movements m
             where m.order_id = i.order_id and m.variant_id = i.variant_id)
         from order_items i where i.order_id = ? group by i.variant_id",
        [id],
        |row| {
            let (quantity, taken): (i64, i64) = (row.get(1)?, row.get(2)?);
            Ok(Contents { variant_id: row.get(0)?, waiting: quantity - taken, taken })
        },
    )
}

fn movement(
    ctx: &Ctx<'_>,
    id: OrderId,
    (variant_id, warehouse_id, delta): (i64, i64, i64),
    kind: &str,
) -> Result<(), ShopError> {
    ctx.run(
        "insert into stock_movements (variant_id, warehouse_id, delta, kind, order_id, user_id, at) values (?, ?, ?, ?, ?, ?, ?)",
        params![variant_id, warehouse_id, delta, kind, id, ctx.user.id, ctx.now()],
    )?;
    Ok(())
}
