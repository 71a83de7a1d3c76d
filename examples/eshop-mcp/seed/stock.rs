//! Fills stock and its movements so that they agree: receipts cover what was sold and what is left.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use crate::{
    common::OrderStatus,
    date::Date,
    error::ShopError,
    seed::{catalog::Variant, lcg::Lcg, orders::Order},
};

/// Counts of one variant in one warehouse.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    /// Left with an order, less what came back.
    gone: i64,
    reserved: i64,
}

/// Fills the tables.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn fill(db: &Connection, variants: &[Variant], orders: &[Order], first_day: Date) -> Result<(), ShopError> {
    let mut counts: BTreeMap<(i64, i64), Count> = BTreeMap::new();
    for variant in variants {
        for warehouse_id in 1..=3 {
            counts.insert((variant.id, warehouse_id), Count::default());
        }
    }
    for order in orders {
        moves(db, order, &mut counts)?;
    }
    let mut lcg = Lcg::new(59);
    for ((variant_id, warehouse_id), count) in counts {
        let free = match (warehouse_id, lcg.range(1, 100)) {
            (_, 1..=12) => 0,
            (1, _) => lcg.range(2, 40),
            (2, _) => lcg.range(0, 8),
            _ => lcg.range(0, 12),
        };
        let on_hand = count.reserved + free;
        db.execute(
            "insert into stock (variant_id, warehouse_id, on_hand, reserved) values (?, ?, ?, ?)",
            params![variant_id, warehouse_id, on_hand, count.reserved],
        )?;
        let received = on_hand + count.gone;
        for (day, quantity) in [(-20, received - received / 3), (200, received / 3)] {
            if quantity > 0 {
                let at = format!("{}T07:00:00", first_day.plus_days(day));
                movement(db, (variant_id, warehouse_id, quantity), "receipt", None, &at)?;
            }
        }
    }
    Ok(())
}

fn moves(db: &Connection, order: &Order, counts: &mut BTreeMap<(i64, i64), Count>) -> Result<(), ShopError> {
    let is_open = !order.has_left() && order.status != OrderStatus::Cancelled;
    // Damaged goods are not put back; see the reasons of refunds.
    let is_restocked = order.id % 4 != 1;
    for item in &order.items {
        let place = (item.variant.id, order.warehouse_id);
        let count = counts.entry(place).or_default();
        if is_open {
            count.reserved += item.quantity;
        }
        if let Some(day) = order.shipped {
            count.gone += item.quantity;
            let at = format!("{day}T15:00:00");
            movement(db, (place.0, place.1, -item.quantity), "sale", Some(order.id), &at)?;
        }
        if let Some(day) = order.delivered.filter(|_| item.refunded > 0 && is_restocked) {
            count.gone -= item.refunded;
            let at = format!("{day}T18:00:00");
            movement(db, (place.0, place.1, item.refunded), "return", Some(order.id), &at)?;
        }
    }
    Ok(())
}

fn movement(
    db: &Connection,
    (variant_id, warehouse_id, delta): (i64, i64, i64),
    kind: &str,
    order_id: Option<i64>,
    at: &str,
) -> Result<(), ShopError> {
    db.execute(
        "insert into stock_movements (variant_id, warehouse_id, delta, kind, order_id, user_id, at) values (?, ?, ?, ?, ?, 3, ?)",
        params![variant_id, warehouse_id, delta, kind, order_id, at],
    )?;
    Ok(())
}
