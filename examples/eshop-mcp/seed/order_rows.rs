//! Writes the made-up orders down: orders, items, events, discounts, refunds.

use rusqlite::{Connection, params};

use crate::{
    common::OrderStatus,
    error::ShopError,
    seed::orders::{Item, Order},
};

/// Writes all orders.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn fill(db: &Connection, orders: &[Order]) -> Result<(), ShopError> {
    for order in orders {
        row(db, order)?;
        for (line, item) in (1_i64..).zip(&order.items) {
            item_row(db, order.id, line, item)?;
        }
        events(db, order)?;
        if order.discount_percent > 0 {
            db.execute(
                "insert into discounts (order_id, percent, amount_cents, reason, created_at) values (?, ?, ?, 'seasonal code', ?)",
                params![order.id, order.discount_percent, order.discount_cents(), order.placed_at()],
            )?;
        }
        refund(db, order)?;
    }
    Ok(())
}

fn row(db: &Connection, order: &Order) -> Result<(), ShopError> {
    let delivered_at = order.delivered.map(|day| format!("{day}T16:20:00"));
    let shipped_at = order.shipped.map(|day| format!("{day}T15:00:00"));
    let is_cancelled = order.status == OrderStatus::Cancelled;
    let cancelled_at = is_cancelled.then(|| format!("{}T08:30:00", order.placed.plus_days(1)));
    let updated_at = delivered_at
        .clone()
        .or_else(|| cancelled_at.clone())
        .or_else(|| shipped_at.clone())
        .unwrap_or_else(|| order.placed_at());
    db.execute(
        "insert into orders (id, customer_id, status, channel, source, warehouse_id, currency, items_cents, discount_cents,
             shipping_cents, total_cents, refunded_cents, payment_method, payment_status, billing_address_id,
             shipping_address_id, carrier_id, placed_at, shipped_at, delivered_at, cancelled_at, cancel_reason, updated_at)
         values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            order.id,
            order.customer.id,
            order.status,
            order.channel,
            order.source,
            order.warehouse_id,
            order.customer.currency,
            order.items_cents(),
            order.discount_cents(),
            order.shipping_cents,
            order.total_cents(),
            order.refund_cents(),
            order.method,
            order.payment,
            order.customer.billing_id,
            order.customer.shipping_id,
            order.carrier.map(|c| c.id),
            order.placed_at(),
            shipped_at,
            delivered_at,
            cancelled_at,
            is_cancelled.then_some("customer changed their mind"),
            updated_at
        ],
    )?;
    Ok(())
}

fn item_row(db: &Connection, order_id: i64, line: i64, item: &Item) -> Result<(), ShopError> {
    db.execute(
        "insert into order_items (id, order_id, line, variant_id, quantity, unit_cents, total_cents, vat_percent, cost_cents, refunded_quantity)
         values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            item.id,
            order_id,
            line,
            item.variant.id,
            item.quantity,
            item.unit_cents,
            item.total_cents(),
            item.variant.vat_percent,
            item.variant.cost_cents,
            item.refunded
        ],
    )?;
    Ok(())
}

fn events(db: &Connection, order: &Order) -> Result<(), ShopError> {
    for (at, user, kind, message) in story(order) {
        db.execute(
            "insert into order_events (order_id, at, user_id, kind, message) values (?, ?, ?, ?, ?)",
            params![order.id, at, user, kind, message],
        )?;
    }
    Ok(())
}

/// Moment, person, kind and text of each event.
fn story(order: &Order) -> Vec<(String, Option<i64>, &'static str, String)> {
    let placed = order.placed_at();
    let text = format!("placed through {}", order.channel);
    let mut story = vec![(placed.clone(), None, "placed", text)];
    let mut status = |at: String, user: Option<i64>, message: &str| {
        story.push((at, user, "status", message.to_owned()));
    };
    match order.status {
        OrderStatus::New => return story,
        OrderStatus::Cancelled => {
            let at = format!("{}T08:30:00", order.placed.plus_days(1));
            status(at, Some(4), "new -> cancelled: customer changed their mind");
            return story;
        }
        _ => status(placed.clone(), Some(2), "new -> confirmed"),
    }
    if order.status == OrderStatus::OnHold {
        status(placed, Some(3), "confirmed -> on_hold: waiting for an answer");
        return story;
    }
    let picked = order.shipped.map_or(placed, |day| format!("{day}T13:00:00"));
    if order.status != OrderStatus::Confirmed {
        status(picked.clone(), Some(3), "confirmed -> picking");
    }
    if order.has_left() || order.status == OrderStatus::Packed {
        status(picked, Some(3), "picking -> packed");
    }
    if let Some(day) = order.shipped {
        status(format!("{day}T15:00:00"), Some(3), "packed -> shipped");
    }
    if let Some(day) = order.delivered {
        status(format!("{day}T16:20:00"), None, "shipped -> delivered");
        if order.status == OrderStatus::Returned {
            status(format!("{day}T17:30:00"), Some(3), "delivered -> returned: sent back");
        }
    }
    story
}

fn refund(db: &Connection, order: &Order) -> Result<(), ShopError> {
    let (Some(delivered), true) = (order.delivered, order.refund_cents() > 0) else {
        return Ok(());
    };
    let reasons = ["changed_mind", "damaged", "not_as_described", "wrong_item"];
    let reason = usize::try_from(order.id % 4).ok().and_then(|at| reasons.get(at)).unwrap_or(&"goodwill");
    let at = format!("{delivered}T18:00:00");
    let is_restocked = *reason != "damaged";
    db.execute(
        "insert into refunds (order_id, amount_cents, reason, method, restocked, user_id, created_at)
         values (?, ?, ?, 'original', ?, 4, ?)",
        params![order.id, order.refund_cents(), reason, is_restocked, at],
    )?;
    let refund_id = db.last_insert_rowid();
    for item in order.items.iter().filter(|item| item.refunded > 0) {
        let amount = item.refunded * item.unit_cents;
        db.execute(
            "insert into refund_items values (?, ?, ?, ?)",
            params![refund_id, item.id, item.refunded, amount - amount * order.discount_percent / 100],
        )?;
    }
    db.execute(
        "insert into order_events (order_id, at, user_id, kind, message) values (?, ?, 4, 'refund', ?)",
        params![order.id, at, format!("refunded {} cents: {reason}", order.refund_cents())],
    )?;
    Ok(())
}
