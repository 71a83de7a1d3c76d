//! Every order tool, called as a client would, with its effect on the data.

use serde_json::{Value, json};

use crate::{ctx::Role, error::Code, testkit::TestShop};

/// Code of the first order for which the condition holds.
fn order(shop: &TestShop, condition: &str) -> String {
    let sql = format!("select printf('ORD-%06d', id) from orders where {condition} order by id limit 1");
    shop.sql(&sql, [])
}

fn with_lines(shop: &TestShop) -> String {
    order(
        shop,
        "status = 'confirmed' and (select count(*) from order_items i where i.order_id = orders.id) = 2
         and not exists (select 1 from discounts d where d.order_id = orders.id)",
    )
}

fn free_sku(shop: &TestShop) -> String {
    shop.sql(
        "select v.sku from stock s join variants v on v.id = s.variant_id join products p on p.id = v.product_id
         where s.warehouse_id = 1 and s.on_hand - s.reserved >= 5 and p.status = 'active' order by v.id limit 1",
        [],
    )
}

fn reserved(shop: &TestShop) -> i64 {
    shop.sql("select sum(reserved) from stock", [])
}

/// Reserved stock must be what open orders and reservations by hand hold.
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
fn list_filters_sorts_and_pages() {
    let mut shop = TestShop::new();
    let first =
        shop.ok("orders_list", json!({"status": ["delivered"], "sort": "total_cents", "direction": "asc", "limit": 5}));
    assert_eq!(first["next_offset"], 5);
    let cents = |page: &Value, at: usize| page["items"][at]["totals"]["total_cents"].as_i64().unwrap();
    assert!(cents(&first, 0) <= cents(&first, 4));
    let second = shop.ok(
        "orders_list",
        json!({"status": ["delivered"], "sort": "total_cents", "direction": "asc", "limit": 5, "offset": 5}),
    );
    assert!(cents(&first, 4) <= cents(&second, 0));
    let november = shop.ok("orders_list", json!({"placed": {"from": "2026-11-01"}, "limit": 1}));
    let expected: i64 = shop.sql("select count(*) from orders where placed_at >= '2026-11-01'", []);
    assert_eq!(november["total"], expected);
}

#[test]
fn a_range_the_wrong_way_round_names_its_end() {
    let range = json!({"placed": {"from": "2026-11-02", "to": "2026-11-01"}});
    let refusal = TestShop::new().refused("orders_list", Code::Invalid, range);
    assert_eq!(refusal.field.as_deref(), Some("placed.to"));
}

#[test]
fn get_shows_lines_that_add_up_and_next_states() {
    let mut shop = TestShop::new();
    let id = with_lines(&shop);
    let sheet = shop.ok("orders_get", json!({"id": id}));
    let lines = sheet["lines"].as_array().unwrap();
    let sum: i64 = lines.iter().map(|line| line["total_cents"].as_i64().unwrap()).sum();
    assert_eq!(sheet["order"]["totals"]["items_cents"], sum);
    assert_eq!(sheet["next_statuses"], json!(["picking", "on_hold"]));
    shop.refused("orders_get", Code::NotFound, json!({"id": "ORD-999999"}));
    shop.refused("orders_get", Code::Invalid, json!({"id": "212"}));
}

#[test]
fn search_combines_conditions_and_sums_matches() {
    let mut shop = TestShop::new();
    let found = shop.ok(
        "orders_search",
        json!({"country": "SK", "payment_status": ["paid"], "total": {"min_cents": 10_000, "currency": "EUR"}, "limit": 100}),
    );
    let n_matches: i64 = found["sums"].as_array().unwrap().iter().map(|s| s["orders"].as_i64().unwrap()).sum();
    assert_eq!(found["total"], n_matches);
    assert!(n_matches > 0);
    let waiting = shop.ok("orders_search", json!({"waiting_days": 1}));
    let states = waiting["items"].as_array().unwrap();
    assert!(!states.is_empty() && states.iter().all(|o| o["status"] != "delivered"));
}

#[test]
fn timeline_joins_all_sources_in_order() {
    let mut shop = TestShop::new();
    let id = order(&shop, "status = 'delivered' and carrier_id is not null");
    let story = shop.ok("orders_timeline", json!({"id": id}));
    let events = story["events"].as_array().unwrap();
    let kinds: Vec<&str> = events.iter().map(|e| e["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.first(), Some(&"placed"));
    for kind in ["status", "invoice", "shipment"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    let only = shop.ok("orders_timeline", json!({"id": id, "kinds": ["shipment"], "limit": 1, "newest_first": true}));
    assert_eq!(only["is_cut"], true);
}

#[test]
fn create_reserves_the_pieces_and_prices_them() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let (sku, before) = (free_sku(&shop), reserved(&shop));
    let answer = shop.ok(
        "orders_create",
        json!({"customer_id": "CUS-0001", "lines": [{"sku": sku, "quantity": 2}], "payment_method": "cod", "carrier": "dpx"}),
    );
    assert_eq!(answer["result"]["order"]["status"], "new");
    assert!(answer["result"]["order"]["totals"]["items_cents"].as_i64().unwrap() > 0);
    assert_eq!(reserved(&shop), before + 2);
    assert_stock_agrees(&shop);
}

#[test]
fn create_refuses_more_than_is_free_and_says_how_much_is() {
    let mut shop = TestShop::new();
    let sku = free_sku(&shop);
    let lines = json!([{"sku": sku, "quantity": 500}]);
    let refusal = shop.refused(
        "orders_create",
        Code::State,
        json!({"customer_id": "CUS-0001", "lines": lines, "payment_method": "cod"}),
    );
    assert_eq!(refusal.field.as_deref(), Some("lines[0].quantity"));
    assert!(refusal.message.contains("free, 500 needed"), "{}", refusal.message);
}

#[test]
fn create_on_invoice_stops_at_the_credit_limit() {
    let mut shop = TestShop::new();
    let refusal = shop.refused(
        "orders_create",
        Code::State,
        json!({"customer_id": "CUS-0001", "lines": [{"sku": free_sku(&shop), "quantity": 1}], "payment_method": "invoice"}),
    );
    assert_eq!(refusal.field.as_deref(), Some("payment_method"));
}

#[test]
fn update_moves_reserved_pieces_and_lists_changes() {
    let mut shop = TestShop::new();
    let id = with_lines(&shop);
    let answer = shop.ok("orders_update", json!({"id": id, "customer_note": "Ring twice.", "expected_version": 1}));
    assert_eq!(answer["result"]["changes"], json!([{"field": "customer_note", "to": "Ring twice."}]));
    assert_eq!(answer["result"]["order"]["version"], 2);
    shop.refused("orders_update", Code::State, json!({"id": id, "customer_note": "Ring twice."}));
    let sku = free_sku(&shop);
    let made = shop.ok(
        "orders_create",
        json!({"customer_id": "CUS-0001", "lines": [{"sku": sku, "quantity": 1}], "payment_method": "cod", "warehouse": "BRN"}),
    );
    let made = &made["result"]["order"]["id"];
    shop.ok("orders_item_remove", json!({"id": id, "line": 1}));
    let moved = shop.ok("orders_update", json!({"id": made, "warehouse": "BRN", "internal_note": "x"}));
    assert_eq!(moved["result"]["changes"].as_array().unwrap().len(), 1);
    assert_stock_agrees(&shop);
}

#[test]
fn a_stale_version_is_a_conflict_that_gives_the_current_one() {
    let mut shop = TestShop::new();
    let id = with_lines(&shop);
    shop.ok("orders_update", json!({"id": id, "internal_note": "a", "expected_version": 1}));
    let refusal =
        shop.refused("orders_update", Code::Conflict, json!({"id": id, "internal_note": "b", "expected_version": 1}));
    assert_eq!(refusal.current_version, Some(2));
}

#[test]
fn an_order_cannot_be_shipped_twice() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let id = order(&shop, "status = 'packed'");
    let before: i64 = shop.sql("select sum(on_hand) from stock", []);
    shop.ok("orders_status_change", json!({"id": id, "to": "shipped"}));
    assert!(shop.sql::<i64>("select sum(on_hand) from stock", []) < before);
    assert_stock_agrees(&shop);
    let refusal = shop.refused("orders_status_change", Code::State, json!({"id": id, "to": "shipped"}));
    assert_eq!(refusal.hint, "from shipped it can go to delivered or returned");
}

#[test]
fn hold_takes_a_reason_and_confirming_takes_the_money() {
    let mut shop = TestShop::new();
    let id = with_lines(&shop);
    let refusal = shop.refused("orders_status_change", Code::Invalid, json!({"id": id, "to": "on_hold"}));
    assert_eq!(refusal.field.as_deref(), Some("reason"));
    let made = shop.ok(
        "orders_create",
        json!({"customer_id": "CUS-0001", "lines": [{"sku": free_sku(&shop), "quantity": 1}], "payment_method": "card"}),
    );
    let made = &made["result"]["order"]["id"];
    shop.refused("orders_status_change", Code::State, json!({"id": made, "to": "confirmed"}));
}

#[test]
fn items_are_added_to_their_line_and_removed_again() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let id = order(&shop, "status = 'confirmed' and warehouse_id = 1");
    let (sku, before) = (free_sku(&shop), reserved(&shop));
    let start = shop.ok("orders_get", json!({"id": id}));
    shop.ok("orders_item_add", json!({"id": id, "sku": sku, "quantity": 1}));
    let twice = shop.ok("orders_item_add", json!({"id": id, "sku": sku, "quantity": 2}));
    let field = twice["result"]["changes"][0]["field"].as_str().unwrap();
    let line: i64 = field.split(['[', ']']).nth(1).unwrap().parse().unwrap();
    assert_eq!(field, format!("lines[{line}].quantity"));
    assert_stock_agrees(&shop);
    let removed = shop.ok("orders_item_remove", json!({"id": id, "line": line, "quantity": 3}));
    assert_eq!(removed["applied"], true);
    assert_eq!(removed["result"]["order"]["totals"], start["order"]["totals"]);
    assert_eq!(reserved(&shop), before);
    assert_stock_agrees(&shop);
}

#[test]
fn a_clerk_may_not_set_prices() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let id = order(&shop, "status = 'confirmed' and warehouse_id = 1");
    let arguments = json!({"id": id, "sku": free_sku(&shop), "quantity": 1, "unit_cents": 100});
    shop.refused("orders_item_add", Code::Forbidden, arguments);
}

#[test]
fn the_last_pieces_cannot_be_removed() {
    let mut shop = TestShop::new();
    let id = order(
        &shop,
        "status in ('new', 'confirmed') and (select count(*) from order_items i where i.order_id = orders.id) = 1",
    );
    let refusal = shop.refused("orders_item_remove", Code::State, json!({"id": id, "line": 1}));
    assert!(refusal.hint.contains("orders_cancel"));
}

#[test]
fn a_discount_lowers_the_total_and_follows_the_lines() {
    let mut shop = TestShop::with_role(Role::Manager);
    let id = with_lines(&shop);
    let answer = shop.ok("orders_discount_apply", json!({"id": id, "percent": 10, "reason": "late delivery"}));
    let totals = &answer["result"]["order"]["totals"];
    assert_eq!(totals["discount_cents"].as_i64().unwrap(), totals["items_cents"].as_i64().unwrap() / 10);
    let after = shop.ok("orders_item_remove", json!({"id": id, "line": 1}));
    let totals = &after["result"]["order"]["totals"];
    assert_eq!(totals["discount_cents"].as_i64().unwrap(), totals["items_cents"].as_i64().unwrap() / 10);
    shop.refused("orders_discount_apply", Code::Invalid, json!({"id": id, "reason": "late"}));
    shop.refused(
        "orders_discount_apply",
        Code::Invalid,
        json!({"id": id, "amount_cents": 90_000_000, "reason": "late"}),
    );
}

#[test]
fn cancel_frees_the_pieces_and_closes_the_order() {
    let mut shop = TestShop::with_role(Role::Manager);
    let (id, before) = (with_lines(&shop), reserved(&shop));
    let answer = shop.ok("orders_cancel", json!({"id": id, "reason": "customer", "note": "found it cheaper"}));
    assert_eq!(answer["result"]["order"]["status"], "cancelled");
    assert!(reserved(&shop) < before);
    assert_stock_agrees(&shop);
    let refusal =
        shop.refused("orders_item_add", Code::State, json!({"id": id, "sku": free_sku(&shop), "quantity": 1}));
    assert!(refusal.message.contains("is cancelled"), "{}", refusal.message);
    shop.refused("orders_cancel", Code::State, json!({"id": id, "reason": "customer"}));
}

#[test]
fn cancel_takes_a_manager() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let id = with_lines(&shop);
    let refusal = shop.refused("orders_cancel", Code::Forbidden, json!({"id": id, "reason": "customer"}));
    assert!(refusal.message.contains("takes role manager"), "{}", refusal.message);
}

#[test]
fn refund_pays_back_pieces_once_and_restocks_them() {
    let mut shop = TestShop::with_role(Role::Manager);
    let id = order(
        &shop,
        "status = 'delivered' and payment_status = 'paid' and discount_cents > 0
         and (select count(*) from order_items i where i.order_id = orders.id) > 1",
    );
    let before: i64 = shop.sql("select sum(on_hand) from stock", []);
    let lines = json!([{"line": 1, "quantity": 1}]);
    let answer = shop.ok("orders_refund", json!({"id": id, "lines": lines, "reason": "changed_mind", "restock": true}));
    assert!(answer["result"]["order"]["totals"]["refunded_cents"].as_i64().unwrap() > 0);
    assert_eq!(shop.sql::<i64>("select sum(on_hand) from stock", []), before + 1);
    assert_stock_agrees(&shop);
    let refusal = shop.refused(
        "orders_refund",
        Code::Invalid,
        json!({"id": id, "amount_cents": 99_000_000, "reason": "goodwill"}),
    );
    assert_eq!(refusal.field.as_deref(), Some("amount_cents"));
}

#[test]
fn an_unpaid_order_has_nothing_to_refund() {
    let mut shop = TestShop::new();
    let id = order(&shop, "payment_status = 'unpaid' and status <> 'cancelled'");
    shop.refused("orders_refund", Code::State, json!({"id": id, "amount_cents": 100, "reason": "goodwill"}));
}

#[test]
fn split_keeps_every_piece_and_every_cent_of_the_goods() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let id = with_lines(&shop);
    let before = shop.ok("orders_get", json!({"id": id}));
    let answer = shop.ok("orders_split", json!({"id": id, "lines": [{"line": 2}], "reason": "boots arrive next week"}));
    let cents = |order: &Value| order["totals"]["items_cents"].as_i64().unwrap();
    let (left, part) = (&answer["result"]["order"], &answer["result"]["part"]);
    assert_eq!(cents(left) + cents(part), cents(&before["order"]));
    let sheet = shop.ok("orders_get", json!({"id": part["id"]}));
    assert_eq!(sheet["parent"], json!(id));
    assert_stock_agrees(&shop);
    shop.refused("orders_split", Code::Invalid, json!({"id": id, "lines": [{"line": 1}], "reason": "all of it"}));
}

#[test]
fn dry_runs_of_all_writes_store_nothing() {
    let mut shop = TestShop::new();
    let (open, packed) = (with_lines(&shop), order(&shop, "status = 'packed'"));
    let paid = order(&shop, "status = 'delivered' and payment_status = 'paid'");
    let sku = free_sku(&shop);
    let before = shop.contents();
    let calls = [
        (
            "orders_create",
            json!({"customer_id": "CUS-0001", "lines": [{"sku": sku, "quantity": 1}], "payment_method": "cod"}),
        ),
        ("orders_update", json!({"id": open, "internal_note": "x"})),
        ("orders_status_change", json!({"id": packed, "to": "shipped"})),
        ("orders_item_remove", json!({"id": open, "line": 1})),
        ("orders_discount_apply", json!({"id": open, "percent": 5, "reason": "late"})),
        ("orders_cancel", json!({"id": open, "reason": "duplicate"})),
        ("orders_refund", json!({"id": paid, "amount_cents": 100, "reason": "goodwill"})),
        ("orders_split", json!({"id": open, "lines": [{"line": 1}], "reason": "later"})),
    ];
    for (tool, mut arguments) in calls {
        arguments["dry_run"] = json!(true);
        assert_eq!(shop.ok(tool, arguments)["applied"], false, "{tool}");
        assert!(shop.contents() == before, "{tool} stored something");
    }
}

#[test]
fn removed_pieces_leave_the_delivery_list_too() {
    let mut shop = TestShop::new();
    let id = order(
        &shop,
        "status = 'confirmed' and exists (select 1 from delivery_lists d where d.order_id = orders.id)
         and (select count(*) from order_items i where i.order_id = orders.id) > 1",
    );
    let count = "select count(*) from delivery_list_items l join delivery_lists d on d.id = l.delivery_list_id
                 where printf('ORD-%06d', d.order_id) = ?";
    let before: i64 = shop.sql(count, [&id]);
    shop.ok("orders_item_remove", json!({"id": id, "line": 1}));
    assert_eq!(shop.sql::<i64>(count, [&id]), before - 1);
}

#[test]
fn a_split_divides_the_payments_and_a_larger_order_is_paid_in_part() {
    let mut shop = TestShop::new();
    let id = order(
        &shop,
        "status = 'confirmed' and payment_status = 'paid'
         and (select count(*) from order_items i where i.order_id = orders.id) > 1",
    );
    let answer = shop.ok("orders_split", json!({"id": id, "lines": [{"line": 1}], "reason": "later"}));
    for part in ["order", "part"] {
        assert_eq!(answer["result"][part]["payment_status"], "paid", "{part}");
    }
    let sums = "select count(*) from orders o where payment_status = 'paid' and status = 'confirmed'
                and total_cents <> (select sum(amount_cents) from payments p where p.order_id = o.id)";
    assert_eq!(shop.sql::<i64>(sums, []), 0);
    let sku: String = shop.sql(
        "select v.sku from stock s join variants v on v.id = s.variant_id join products p on p.id = v.product_id
         join orders o on o.warehouse_id = s.warehouse_id
         where printf('ORD-%06d', o.id) = ? and s.on_hand > s.reserved and p.status = 'active' order by v.id limit 1",
        [&id],
    );
    let more = shop.ok("orders_item_add", json!({"id": id, "sku": sku, "quantity": 1}));
    assert_eq!(more["result"]["order"]["payment_status"], "partial");
    assert!(more["result"]["follow_up"].as_str().unwrap().contains("invoices_payment_record"));
}
