//! Stock: lists, bookings, transfers, reservations.

use serde_json::{Value, json};

use crate::{ctx::Role, error::Code, testkit::TestShop};

/// A SKU of which Brno has pieces free.
pub(super) fn free_sku(shop: &TestShop) -> String {
    shop.sql(
        "select v.sku from stock s join variants v on v.id = s.variant_id join products p on p.id = v.product_id
         where s.warehouse_id = 1 and s.on_hand - s.reserved >= 5 and p.status = 'active' order by v.id desc limit 1",
        [],
    )
}

/// A SKU of which Brno holds pieces for an open order.
fn held_sku(shop: &TestShop) -> String {
    shop.sql(
        "select v.sku from order_items i join orders o on o.id = i.order_id join variants v on v.id = i.variant_id
         where o.status = 'confirmed' and o.warehouse_id = 1 order by v.id limit 1",
        [],
    )
}

/// A number of the row of a SKU in Brno.
fn brno(shop: &TestShop, column: &str, sku: &str) -> i64 {
    let sql = format!(
        "select s.{column} from stock s join variants v on v.id = s.variant_id where s.warehouse_id = 1 and v.sku = ?"
    );
    shop.sql(&sql, [sku])
}

/// Stock must be what movements add up to, and reserved what open orders and reservations hold.
fn assert_stock_agrees(shop: &TestShop) {
    let wrong = "select count(*) from stock s where reserved <>
        (select coalesce(sum(i.quantity), 0) from order_items i join orders o on o.id = i.order_id
         where i.variant_id = s.variant_id and o.warehouse_id = s.warehouse_id
           and o.status in ('new', 'confirmed', 'on_hold', 'picking', 'packed'))
        + (select coalesce(sum(quantity), 0) from reservations r
           where r.variant_id = s.variant_id and r.warehouse_id = s.warehouse_id and r.status = 'active')
        or on_hand <> (select coalesce(sum(delta), 0) from stock_movements m
           where m.variant_id = s.variant_id and m.warehouse_id = s.warehouse_id)";
    assert_eq!(shop.sql::<i64>(wrong, []), 0);
}

#[test]
fn list_shows_levels_against_the_reorder_point() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let low = shop.ok("store_stock_list", json!({"warehouse": "BRN", "level": "low", "sort": "free", "limit": 100}));
    let rows = low["items"].as_array().unwrap();
    let number = |row: &Value, member: &str| row[member].as_i64().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        assert!(number(row, "free") > 0 && number(row, "free") <= number(row, "reorder_point"));
    }
    assert!(rows.is_sorted_by_key(|row| number(row, "free")));
    let held = shop.ok("store_stock_list", json!({"only_reserved": true, "limit": 100}));
    assert!(held["items"].as_array().unwrap().iter().all(|row| number(row, "reserved") > 0));
    let tents = shop.ok("store_stock_list", json!({"category": "tents", "text": "skála 2"}));
    assert_eq!(tents["total"], 6);
}

#[test]
fn get_names_the_orders_that_hold_pieces() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let sku = held_sku(&shop);
    let stock = shop.ok("store_stock_get", json!({"sku": sku}));
    let sum = |list: &str, member: &str| -> i64 {
        let list = stock[list].as_array().unwrap().iter();
        list.map(|item| item[member].as_i64().unwrap()).sum()
    };
    assert_eq!(sum("warehouses", "reserved"), sum("orders", "quantity") + sum("reservations", "quantity"));
    assert_eq!(sum("warehouses", "free"), stock["free"].as_i64().unwrap());
    let receipts = shop.ok("store_stock_get", json!({"sku": sku, "kinds": ["receipt"], "limit": 1}));
    assert_eq!(receipts["movements"].as_array().unwrap().len(), 1);
    assert_eq!(receipts["movements"][0]["kind"], "receipt");
    shop.refused("store_stock_get", Code::NotFound, json!({"sku": "TNT-999"}));
}

#[test]
fn adjust_books_a_difference_or_a_count() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let sku = free_sku(&shop);
    let before = brno(&shop, "on_hand", &sku);
    let broken = json!({"sku": sku, "warehouse": "BRN", "delta": -1, "reason": "damage", "note": "torn"});
    let answer = shop.ok("store_stock_adjust", broken);
    assert_eq!(answer["result"]["stock"]["on_hand"], before - 1);
    let version = &answer["result"]["stock"]["version"];
    let counted =
        json!({"sku": sku, "warehouse": "BRN", "counted": before + 2, "reason": "count", "expected_version": version});
    let answer = shop.ok("store_stock_adjust", counted.clone());
    assert_eq!(answer["result"]["delta"], 3);
    assert_stock_agrees(&shop);
    shop.refused("store_stock_adjust", Code::Conflict, counted);
}

#[test]
fn adjust_never_goes_below_what_is_reserved() {
    let mut shop = TestShop::new();
    let sku = held_sku(&shop);
    let held = brno(&shop, "reserved", &sku);
    let low = json!({"sku": sku, "warehouse": "BRN", "counted": held - 1, "reason": "count"});
    let refusal = shop.refused("store_stock_adjust", Code::State, low);
    assert_eq!(refusal.field.as_deref(), Some("counted"));
    assert!(refusal.message.contains(&format!("{held} reserved")), "{}", refusal.message);
}

#[test]
fn adjust_refuses_what_does_not_fit_together() {
    let mut shop = TestShop::new();
    let sku = free_sku(&shop);
    let cases = [
        json!({"reason": "count"}),
        json!({"delta": 1, "counted": 5, "reason": "count"}),
        json!({"delta": 0, "reason": "count"}),
        json!({"delta": -1, "reason": "receipt"}),
        json!({"delta": 1, "reason": "damage"}),
    ];
    for mut arguments in cases {
        arguments["sku"] = json!(sku);
        arguments["warehouse"] = json!("BRN");
        let refusal = shop.refused("store_stock_adjust", Code::Invalid, arguments);
        assert_eq!(refusal.field.as_deref(), Some("delta"), "{refusal:?}");
    }
}

#[test]
fn transfer_moves_all_lines_or_none() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let (sku, held) = (free_sku(&shop), held_sku(&shop));
    let (before, contents) = (brno(&shop, "on_hand", &sku), shop.contents());
    let lines = json!([{"sku": sku, "quantity": 2}, {"sku": held, "quantity": 1000}]);
    let both = json!({"from": "BRN", "to": "PRG", "lines": lines, "reason": "refill the store"});
    let refusal = shop.refused("store_stock_transfer", Code::State, both);
    assert_eq!(refusal.field.as_deref(), Some("lines[1].quantity"));
    assert!(shop.contents() == contents);
    let lines = json!([{"sku": sku, "quantity": 2}]);
    let one = json!({"from": "BRN", "to": "PRG", "lines": lines, "reason": "refill the store"});
    let answer = shop.ok("store_stock_transfer", one);
    assert_eq!(answer["result"]["from"][0]["on_hand"], before - 2);
    assert_eq!(answer["result"]["pieces"], 2);
    assert_stock_agrees(&shop);
    let moved = shop.ok("store_stock_get", json!({"sku": sku, "kinds": ["transfer"]}));
    assert_eq!(moved["movements"].as_array().unwrap().len(), 2);
}

#[test]
fn transfer_needs_two_places_single_lines_and_fresh_versions() {
    let mut shop = TestShop::new();
    let sku = free_sku(&shop);
    let line = json!({"sku": sku, "quantity": 1});
    let stale = json!({"sku": sku, "quantity": 1, "expected_version": 99});
    let cases = [
        (Code::Invalid, "BRN", json!([line])),
        (Code::Invalid, "PRG", json!([line, line])),
        (Code::Conflict, "PRG", json!([stale])),
        (Code::NotFound, "PRG", json!([{"sku": "TNT-999", "quantity": 1}])),
    ];
    for (code, to, lines) in cases {
        let arguments = json!({"from": "BRN", "to": to, "lines": lines, "reason": "refill"});
        shop.refused("store_stock_transfer", code, arguments);
    }
}

#[test]
fn a_reservation_is_made_changed_and_let_go() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let sku = free_sku(&shop);
    let before = brno(&shop, "reserved", &sku);
    let mut arguments = json!({"sku": sku, "warehouse": "BRN", "quantity": 2, "reason": "held for Mr. Novák"});
    let made = shop.ok("store_stock_reserve", arguments.clone());
    assert_eq!(made["result"]["expires_on"], "2026-12-11");
    assert_eq!(brno(&shop, "reserved", &sku), before + 2);
    arguments["id"] = made["result"]["id"].clone();
    arguments["quantity"] = json!(3);
    arguments["expires_on"] = json!("2026-12-20");
    let changed = shop.ok("store_stock_reserve", arguments.clone());
    assert_eq!(changed["result"]["stock"]["reserved"], before + 3);
    assert_stock_agrees(&shop);
    arguments["quantity"] = json!(0);
    shop.ok("store_stock_reserve", arguments.clone());
    assert_eq!(brno(&shop, "reserved", &sku), before);
    assert_stock_agrees(&shop);
    shop.refused("store_stock_reserve", Code::State, arguments);
}

#[test]
fn a_reservation_holds_free_pieces_for_some_weeks_only() {
    let mut shop = TestShop::new();
    let sku = free_sku(&shop);
    let cases = [
        ("quantity", json!(500), Code::State, "quantity"),
        ("quantity", json!(0), Code::Invalid, "quantity"),
        ("expires_on", json!("2026-11-26"), Code::Invalid, "expires_on"),
        ("expires_on", json!("2027-11-26"), Code::Invalid, "expires_on"),
        ("id", json!("RES-0001"), Code::NotFound, "id"),
        ("expected_version", json!(99), Code::Conflict, "expected_version"),
    ];
    for (member, value, code, field) in cases {
        let mut arguments = json!({"sku": sku, "warehouse": "BRN", "quantity": 1, "reason": "photo"});
        arguments[member] = value;
        let refusal = shop.refused("store_stock_reserve", code, arguments);
        assert_eq!(refusal.field.as_deref(), Some(field), "{refusal:?}");
    }
}

/// Lets a reservation's last day pass, as time does.
fn let_expire(shop: &TestShop, id: &str) {
    let sql = "update reservations set expires_on = '2026-11-26' where printf('RES-%04d', id) = ? returning id";
    shop.sql::<i64>(sql, [id]);
}

#[test]
fn an_expired_reservation_holds_nothing_in_reads_and_writes() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let sku = free_sku(&shop);
    let free = brno(&shop, "on_hand", &sku) - brno(&shop, "reserved", &sku);
    let all = json!({"sku": sku, "warehouse": "BRN", "quantity": free, "reason": "held for a club"});
    let made = shop.ok("store_stock_reserve", all.clone());
    let order = json!({"customer_id": "CUS-0001", "lines": [{"sku": sku, "quantity": 1}], "payment_method": "cod"});
    shop.refused("orders_create", Code::State, order.clone());
    let_expire(&shop, made["result"]["id"].as_str().unwrap());
    let stock = shop.ok("store_stock_get", json!({"sku": sku}));
    assert_eq!(stock["warehouses"][0]["free"], free);
    assert_eq!(stock["reservations"], json!([]));
    shop.ok("orders_create", order);
    assert_stock_agrees(&shop);
    let status = "select status from reservations order by id desc limit 1";
    assert_eq!(shop.sql::<String>(status, []), "released");
}
