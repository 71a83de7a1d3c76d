//! Fills delivery lists, shipments and their events.

use rusqlite::{Connection, params};

use crate::{
    common::{OrderStatus, PaymentMethod},
    error::ShopError,
    seed::{carriers::Carrier, lcg::Lcg, orders::Order},
};

/// Fills the tables.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn fill(db: &Connection, orders: &[Order]) -> Result<(), ShopError> {
    let mut lcg = Lcg::new(71);
    for order in orders {
        let Some(carrier) = order.carrier else {
            continue;
        };
        delivery_list(db, order, &mut lcg)?;
        if order.has_left() || order.status == OrderStatus::Packed {
            shipment(db, order, carrier, &mut lcg)?;
        }
    }
    Ok(())
}

fn delivery_list(db: &Connection, order: &Order, lcg: &mut Lcg) -> Result<(), ShopError> {
    let status = match order.status {
        // Some confirmed orders have their list already.
        OrderStatus::Confirmed if order.id % 2 == 0 => "draft",
        OrderStatus::New | OrderStatus::Confirmed | OrderStatus::OnHold => return Ok(()),
        OrderStatus::Picking => "picking",
        OrderStatus::Cancelled if order.id % 3 == 0 => "cancelled",
        OrderStatus::Cancelled => return Ok(()),
        _ => "confirmed",
    };
    let day = order.shipped.unwrap_or(order.placed);
    let at = |is_set: bool, time: &str| is_set.then(|| format!("{day}T{time}"));
    let (is_started, is_confirmed) = (matches!(status, "picking" | "confirmed"), status == "confirmed");
    db.execute(
        "insert into delivery_lists (order_id, warehouse_id, status, picker_id, created_at, picking_at, confirmed_at,
             cancelled_at, printed_at, updated_at)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?6, coalesce(?8, ?7, ?6, ?5))",
        params![
            order.id,
            order.warehouse_id,
            status,
            is_started.then_some(3),
            order.placed_at(),
            at(is_started, "13:00:00"),
            at(is_confirmed, "14:10:00"),
            at(status == "cancelled", "08:30:00")
        ],
    )?;
    let list_id = db.last_insert_rowid();
    for item in &order.items {
        let picked = match status {
            "confirmed" => item.quantity,
            "picking" => lcg.range(0, item.quantity),
            _ => 0,
        };
        db.execute(
            "insert into delivery_list_items (delivery_list_id, order_item_id, quantity, picked, location) values (?, ?, ?, ?, ?)",
            params![list_id, item.id, item.quantity, picked, location(item.variant.id)],
        )?;
    }
    Ok(())
}

/// The shelf of a variant: aisle, rack, level.
fn location(variant_id: i64) -> String {
    let aisle = ["A", "B", "C", "D"][usize::try_from(variant_id % 4).unwrap_or(0)];
    format!("{aisle}{:02}-{}", variant_id / 4 % 20 + 1, variant_id % 5 + 1)
}

fn shipment_status(order: &Order) -> &'static str {
    match order.status {
        OrderStatus::Packed => "created",
        OrderStatus::Shipped if order.id % 3 == 0 => "handed_over",
        OrderStatus::Shipped => "in_transit",
        OrderStatus::Returned if order.id % 2 == 0 => "returned",
        _ => "delivered",
    }
}

fn branch(db: &Connection, order: &Order, carrier: &Carrier, lcg: &mut Lcg) -> Result<Option<i64>, ShopError> {
    if !carrier.is_pickup {
        return Ok(None);
    }
    let sql = "select id from branches where carrier_id = ? and country = ? order by id limit 1 offset ?";
    let place = params![carrier.id, order.customer.country, lcg.range(0, 2)];
    Ok(Some(db.query_row(sql, place, |row| row.get(0))?))
}

fn shipment(db: &Connection, order: &Order, carrier: &Carrier, lcg: &mut Lcg) -> Result<(), ShopError> {
    let day = order.shipped.unwrap_or(order.placed);
    let status = shipment_status(order);
    let branch_id = branch(db, order, carrier, lcg)?;
    let weight: i64 = order.items.iter().map(|i| i.quantity * i.variant.weight_g).sum();
    let is_cod = order.method == PaymentMethod::Cod;
    let handed = order.shipped.map(|day| format!("{day}T17:00:00"));
    let delivered = order.delivered.map(|day| format!("{day}T16:20:00"));
    let created = format!("{day}T14:30:00");
    db.execute(
        "insert into shipments (order_id, carrier_id, branch_id, status, tracking_no, weight_g, cod_cents, value_cents,
             currency, cost_cents, expected_on, label_at, handed_over_at, delivered_at, created_at, updated_at)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?12, coalesce(?14, ?13, ?12))",
        params![
            order.id,
            carrier.id,
            branch_id,
            status,
            format!("{}{:09}", carrier.code.to_uppercase(), 400_000_000 + order.id * 7919 % 99_999_989),
            weight + 250,
            if is_cod { order.total_cents() } else { 0 },
            order.total_cents(),
            order.customer.currency,
            carrier.cost_cents,
            day.plus_days(carrier.days.1),
            created,
            handed,
            delivered
        ],
    )?;
    events(db, db.last_insert_rowid(), status, [Some(created), handed, delivered])
}

fn events(db: &Connection, shipment_id: i64, status: &str, moments: [Option<String>; 3]) -> Result<(), ShopError> {
    let last = match status {
        "returned" => ("returned", "Brno", "not collected, sent back"),
        _ => ("delivered", "destination", "handed to the recipient"),
    };
    let steps = [
        ("created", "Brno", "data received from the sender"),
        ("handed_over", "Brno depot", "accepted at the depot"),
        last,
    ];
    for ((status, place, message), at) in steps.into_iter().zip(moments) {
        if let Some(at) = at {
            db.execute(
                "insert into shipment_events (shipment_id, at, status, place, message) values (?, ?, ?, ?, ?)",
                params![shipment_id, at, status, place, message],
            )?;
        }
    }
    Ok(())
}
