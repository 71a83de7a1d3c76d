//! Fills the daily visits of the e-shop, never fewer checkouts than orders.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use crate::{
    date::Date,
    error::ShopError,
    seed::{lcg::Lcg, orders::Order},
};

/// Channels with their sessions on a usual day.
const CHANNELS: [(&str, i64); 5] = [("organic", 46), ("paid", 28), ("email", 12), ("direct", 20), ("social", 17)];

/// Fills the table.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn fill(db: &Connection, orders: &[Order], first_day: Date, end: Date) -> Result<(), ShopError> {
    let mut placed: BTreeMap<(Date, &str), i64> = BTreeMap::new();
    for order in orders {
        *placed.entry((order.placed, order.source)).or_insert(0) += 1;
    }
    let mut lcg = Lcg::new(83);
    for offset in 0..end.days_since(first_day) {
        let day = first_day.plus_days(offset);
        for (channel, usual) in CHANNELS {
            let n_orders = placed.get(&(day, channel)).copied().unwrap_or(0);
            let mut sessions = usual * lcg.range(60, 140) / 100;
            if channel == "paid" && (300..304).contains(&offset) {
                // A campaign that brought clicks and no orders; reports on anomalies should find it.
                sessions *= 5;
            }
            let checkouts = n_orders + lcg.range(0, 1 + sessions / 25);
            let carts = checkouts + lcg.range(1, 2 + sessions / 10);
            db.execute(
                "insert into visits values (?, ?, ?, ?, ?, ?)",
                params![day, channel, sessions.max(carts), sessions * lcg.range(22, 38) / 10, carts, checkouts],
            )?;
        }
    }
    Ok(())
}
