//! Every delivery list tool, called as a client would, with its effect on the data.

use serde_json::{Value, json};

use crate::{ctx::Role, error::Code, testkit::TestShop};

/// Code of the first list for which the condition on lists `d` and orders `o` holds.
fn list(shop: &TestShop, condition: &str) -> String {
    let sql = format!(
        "select printf('DL-%06d', d.id) from delivery_lists d join orders o on o.id = d.order_id
         where {condition} order by d.id limit 1"
    );
    shop.sql(&sql, [])
}

fn order_of(shop: &TestShop, list: &str) -> String {
    let sql = "select printf('ORD-%06d', order_id) from delivery_lists where printf('DL-%06d', id) = ?";
    shop.sql(sql, [list])
}

fn order_status(shop: &TestShop, order: &str) -> String {
    let sql = "select status from orders where printf('ORD-%06d', id) = ?";
    shop.sql(sql, [order])
}

fn on_hand(shop: &TestShop) -> i64 {
    shop.sql("select sum(on_hand) from stock", [])
}

fn pieces(shop: &TestShop, list: &str) -> i64 {
    let sql = "select sum(quantity) from delivery_list_items where printf('DL-%06d', delivery_list_id) = ?";
    shop.sql(sql, [list])
}

/// Reserved stock must be what open orders hold that no list has taken, and reservations by hand.
fn assert_stock_agrees(shop: &TestShop) {
    let wrong = "select count(*) from stock s where reserved <>
        (select coalesce(sum(i.quantity), 0) from order_items i join orders o on o.id = i.order_id
         where i.variant_id = s.variant_id and o.warehouse_id = s.warehouse_id
           and o.status in ('new', 'confirmed', 'on_hold', 'picking', 'packed'))
        + (select coalesce(sum(m.delta), 0) from stock_movements m join orders o on o.id = m.order_id
           where m.variant_id = s.variant_id and m.warehouse_id = s.warehouse_id
             and o.status in ('new', 'confirmed', 'on_hold', 'picking', 'packed'))
        + (select coalesce(sum(quantity), 0) from reservations r
           where r.variant_id = s.variant_id and r.warehouse_id = s.warehouse_id and r.status = 'active')
        or on_hand <> (select coalesce(sum(delta), 0) from stock_movements m
           where m.variant_id = s.variant_id and m.warehouse_id = s.warehouse_id)";
    assert_eq!(shop.sql::<i64>(wrong, []), 0);
}

/// A fresh order, confirmed, of one line with three pieces and one line with one.
fn confirmed_order(shop: &mut TestShop) -> String {
    let skus: Vec<String> = (0..2)
        .map(|skip| {
            let sql = "select v.sku from stock s join variants v on v.id = s.variant_id join products p on p.id = v.product_id
                       where s.warehouse_id = 1 and s.on_hand - s.reserved >= 5 and p.status = 'active' and v.status = 'active'
                       order by v.id limit 1 offset ?";
            shop.sql(sql, [skip])
        })
        .collect();
    let lines = json!([{"sku": skus[0], "quantity": 3}, {"sku": skus[1], "quantity": 1}]);
    let made = shop.ok(
        "orders_create",
        json!({"customer_id": "CUS-0001", "lines": lines, "payment_method": "cod", "carrier": "dpx", "warehouse": "BRN"}),
    );
    let id = made["result"]["order"]["id"].as_str().unwrap().to_owned();
    shop.ok("orders_status_change", json!({"id": id, "to": "confirmed"}));
    id
}

/// A list over the whole order, in picking.
fn picking_list(shop: &mut TestShop, order: &str) -> String {
    let made = shop.ok("deliverylists_create", json!({"order_id": order}));
    let id = made["result"]["list"]["id"].as_str().unwrap().to_owned();
    shop.ok("deliverylists_pick_start", json!({"id": id}));
    id
}

#[test]
fn list_filters_by_state_picker_variant_and_day() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let open = shop.ok("deliverylists_list", json!({"status": ["draft", "picking"], "sort": "most_missing"}));
    let expected: i64 = shop.sql("select count(*) from delivery_lists where status in ('draft', 'picking')", []);
    assert_eq!(open["total"], expected);
    let missing: Vec<i64> =
        open["items"].as_array().unwrap().iter().map(|card| card["progress"]["missing"].as_i64().unwrap()).collect();
    assert!(missing.is_sorted_by(|a, b| a >= b), "{missing:?}");
    let november = shop.ok(
        "deliverylists_list",
        json!({"confirmed": {"from": "2026-11-01"}, "picker": "petr", "carrier": "dpx", "printed": true, "sort": "newest"}),
    );
    let expected: i64 = shop.sql(
        "select count(*) from delivery_lists d join orders o on o.id = d.order_id join carriers k on k.id = o.carrier_id
         where d.confirmed_at >= '2026-11-01' and k.code = 'dpx'",
        [],
    );
    assert_eq!(november["total"], expected);
    let range = json!({"created": {"from": "2026-11-02", "to": "2026-11-01"}});
    let refusal = shop.refused("deliverylists_list", Code::Invalid, range);
    assert_eq!(refusal.field.as_deref(), Some("created.to"));
}

#[test]
fn get_shows_lines_by_shelf_and_what_may_follow() {
    let mut shop = TestShop::new();
    let id = list(&shop, "d.status = 'picking'");
    let sheet = shop.ok("deliverylists_get", json!({"id": id}));
    let lines = sheet["lines"].as_array().unwrap();
    let planned: i64 = lines.iter().map(|l| l["quantity"].as_i64().unwrap()).sum();
    assert_eq!(sheet["list"]["progress"]["pieces"], planned);
    assert_eq!(planned, pieces(&shop, &id));
    let shelves: Vec<&str> = lines.iter().map(|line| line["location"].as_str().unwrap()).collect();
    assert!(shelves.is_sorted());
    assert_eq!(sheet["next_tools"][1], "deliverylists_confirm");
    shop.refused("deliverylists_get", Code::NotFound, json!({"id": "DL-999999"}));
    shop.refused("deliverylists_get", Code::Invalid, json!({"id": "42"}));
}

#[test]
fn create_plans_every_piece_once_and_leaves_the_stock() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let order = confirmed_order(&mut shop);
    let before = on_hand(&shop);
    let made = shop.ok(
        "deliverylists_create",
        json!({"order_id": order, "lines": [{"line": 1, "quantity": 2}], "note": "Fragile."}),
    );
    assert_eq!(made["result"]["list"]["progress"]["pieces"], 2);
    assert_eq!(made["result"]["list"]["version"], 1);
    let rest = shop.ok("deliverylists_create", json!({"order_id": order}));
    assert_eq!(rest["result"]["list"]["progress"]["pieces"], 2);
    shop.refused("deliverylists_create", Code::State, json!({"order_id": order}));
    let refusal = shop.refused("deliverylists_create", Code::State, json!({"order_id": order, "lines": [{"line": 1}]}));
    assert_eq!(refusal.field.as_deref(), Some("lines[0].quantity"));
    assert_eq!(on_hand(&shop), before);
    assert_stock_agrees(&shop);
}

#[test]
fn create_refuses_unknown_orders_old_versions_and_wrong_states() {
    let mut shop = TestShop::new();
    let refusal = shop.refused("deliverylists_create", Code::NotFound, json!({"order_id": "ORD-999999"}));
    assert_eq!(refusal.field.as_deref(), Some("order_id"));
    let order = confirmed_order(&mut shop);
    shop.refused("deliverylists_create", Code::Conflict, json!({"order_id": order, "expected_version": 1}));
    shop.refused("deliverylists_create", Code::NotFound, json!({"order_id": order, "lines": [{"line": 9}]}));
    let delivered = list(&shop, "o.status = 'delivered'");
    let delivered = order_of(&shop, &delivered);
    shop.refused("deliverylists_create", Code::State, json!({"order_id": delivered}));
}

#[test]
fn item_set_plans_in_draft_and_counts_while_picking() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let order = confirmed_order(&mut shop);
    let made = shop.ok("deliverylists_create", json!({"order_id": order}));
    let id = &made["result"]["list"]["id"];
    let set = shop.ok(
        "deliverylists_item_set",
        json!({"id": id, "line": 1, "quantity": 2, "location": "B07-3", "expected_version": 1}),
    );
    assert_eq!(set["result"]["changes"][0]["from"], "3");
    assert_eq!(set["result"]["changes"][1]["to"], "B07-3");
    shop.refused(
        "deliverylists_item_set",
        Code::Conflict,
        json!({"id": id, "line": 1, "quantity": 1, "expected_version": 1}),
    );
    shop.refused("deliverylists_item_set", Code::State, json!({"id": id, "line": 1, "picked": 1}));
    let refusal = shop.refused("deliverylists_item_set", Code::Invalid, json!({"id": id, "line": 1, "quantity": 4}));
    assert_eq!(refusal.field.as_deref(), Some("quantity"));
    shop.ok("deliverylists_pick_start", json!({"id": id}));
    let picked = shop.ok("deliverylists_item_set", json!({"id": id, "line": 1, "picked": 2}));
    assert_eq!(picked["result"]["list"]["progress"]["missing"], 1);
    let refusal = shop.refused("deliverylists_item_set", Code::Invalid, json!({"id": id, "line": 1, "picked": 3}));
    assert_eq!(refusal.field.as_deref(), Some("picked"));
    shop.refused("deliverylists_item_set", Code::NotFound, json!({"id": id, "line": 9, "picked": 1}));
}

#[test]
fn a_draft_keeps_its_last_line() {
    let mut shop = TestShop::new();
    let order = confirmed_order(&mut shop);
    let made = shop.ok("deliverylists_create", json!({"order_id": order}));
    let id = &made["result"]["list"]["id"];
    let set = |line: i64| json!({"id": id, "line": line, "quantity": 0});
    let one = shop.ok("deliverylists_item_set", set(2));
    assert_eq!(one["result"]["lines"].as_array().unwrap().len(), 1);
    let refusal = shop.refused("deliverylists_item_set", Code::State, set(1));
    assert!(refusal.hint.contains("deliverylists_cancel"));
}

#[test]
fn pick_start_names_a_picker_and_moves_the_order() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let order = confirmed_order(&mut shop);
    let made = shop.ok("deliverylists_create", json!({"order_id": order}));
    let id = &made["result"]["list"]["id"];
    shop.refused("deliverylists_pick_start", Code::Invalid, json!({"id": id, "picker": "pavla"}));
    shop.refused("deliverylists_pick_start", Code::NotFound, json!({"id": id, "picker": "nobody"}));
    let started = shop.ok("deliverylists_pick_start", json!({"id": id, "picker": "petr"}));
    assert_eq!(started["result"]["list"]["picker"], "petr");
    assert_eq!(order_status(&shop, &order), "picking");
    shop.refused("deliverylists_pick_start", Code::State, json!({"id": id}));
}

#[test]
fn confirm_takes_the_stock_and_shipping_does_not_take_it_again() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let order = confirmed_order(&mut shop);
    let id = picking_list(&mut shop, &order);
    let before = on_hand(&shop);
    let refusal = shop.refused("deliverylists_confirm", Code::State, json!({"id": id}));
    assert!(refusal.message.contains("nothing is picked"));
    let answer = shop.ok("deliverylists_confirm", json!({"id": id, "all_picked": true}));
    assert_eq!(answer["result"]["list"]["status"], "confirmed");
    assert_eq!(answer["result"]["list"]["order"]["status"], "packed");
    assert_eq!(on_hand(&shop), before - 4);
    assert_stock_agrees(&shop);
    shop.ok("orders_status_change", json!({"id": order, "to": "shipped"}));
    assert_eq!(on_hand(&shop), before - 4);
    assert_stock_agrees(&shop);
    shop.refused("deliverylists_confirm", Code::State, json!({"id": id}));
}

#[test]
fn a_short_confirmation_leaves_the_rest_to_another_list() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let order = confirmed_order(&mut shop);
    let id = picking_list(&mut shop, &order);
    shop.ok("deliverylists_item_set", json!({"id": id, "line": 1, "picked": 2}));
    let refusal = shop.refused("deliverylists_confirm", Code::State, json!({"id": id}));
    assert!(refusal.message.starts_with("2 pieces are missing"), "{}", refusal.message);
    let short = shop.ok("deliverylists_confirm", json!({"id": id, "allow_short": true}));
    assert_eq!(short["result"]["list"]["order"]["status"], "picking");
    assert_stock_agrees(&shop);
    let rest = picking_list(&mut shop, &order);
    assert_eq!(pieces(&shop, &rest), 2);
    let last = shop.ok("deliverylists_confirm", json!({"id": rest, "all_picked": true}));
    assert_eq!(last["result"]["list"]["order"]["status"], "packed");
    assert_stock_agrees(&shop);
}

#[test]
fn cancelling_a_confirmed_list_returns_the_stock_and_takes_a_manager() {
    let mut shop = TestShop::with_role(Role::Manager);
    let order = confirmed_order(&mut shop);
    let id = picking_list(&mut shop, &order);
    let before = on_hand(&shop);
    shop.ok("deliverylists_confirm", json!({"id": id, "all_picked": true}));
    let answer = shop.ok("deliverylists_cancel", json!({"id": id, "reason": "mistake", "note": "wrong color"}));
    assert_eq!(answer["result"]["list"]["order"]["status"], "confirmed");
    assert_eq!(on_hand(&shop), before);
    assert_stock_agrees(&shop);
    shop.refused("deliverylists_cancel", Code::State, json!({"id": id, "reason": "mistake"}));
    let mut clerk = TestShop::with_role(Role::Clerk);
    let packed = list(&clerk, "d.status = 'confirmed' and o.status = 'packed'");
    let refusal = clerk.refused("deliverylists_cancel", Code::Forbidden, json!({"id": packed, "reason": "mistake"}));
    assert!(refusal.message.contains("takes role manager"));
}

#[test]
fn cancel_lets_a_clerk_drop_open_lists_and_nobody_a_shipped_one() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let id = list(&shop, "d.status = 'picking'");
    let order = order_of(&shop, &id);
    let before = on_hand(&shop);
    shop.ok("deliverylists_cancel", json!({"id": id, "reason": "out_of_stock"}));
    assert_eq!(order_status(&shop, &order), "confirmed");
    assert_eq!(on_hand(&shop), before);
    let mut admin = TestShop::new();
    let shipped = list(&admin, "d.status = 'confirmed' and o.status = 'shipped'");
    let refusal = admin.refused("deliverylists_cancel", Code::State, json!({"id": shipped, "reason": "damaged"}));
    assert!(refusal.hint.contains("orders_refund"));
}

#[test]
fn a_list_confirmed_before_anything_left_has_nothing_to_return() {
    let mut shop = TestShop::new();
    let id = list(&shop, "d.status = 'confirmed' and o.status = 'packed'");
    let before = on_hand(&shop);
    shop.ok("deliverylists_cancel", json!({"id": id, "reason": "order_changed"}));
    assert_eq!(on_hand(&shop), before);
    assert_stock_agrees(&shop);
}

#[test]
fn cancelling_the_order_puts_taken_pieces_back_for_all() {
    let mut shop = TestShop::new();
    let reserved = |shop: &TestShop| shop.sql::<i64>("select sum(reserved) from stock", []);
    let (start, held) = (on_hand(&shop), reserved(&shop));
    let order = confirmed_order(&mut shop);
    let id = picking_list(&mut shop, &order);
    shop.ok("deliverylists_confirm", json!({"id": id, "all_picked": true}));
    shop.ok("orders_cancel", json!({"id": order, "reason": "customer"}));
    assert_eq!((on_hand(&shop), reserved(&shop)), (start, held));
    assert_stock_agrees(&shop);
    let sheet = shop.ok("deliverylists_get", json!({"id": id}));
    assert_eq!(sheet["list"]["status"], "cancelled");
}

#[test]
fn lines_of_an_order_stay_while_its_pieces_are_taken() {
    let mut shop = TestShop::new();
    let order = confirmed_order(&mut shop);
    let id = picking_list(&mut shop, &order);
    shop.ok("deliverylists_item_set", json!({"id": id, "line": 1, "picked": 1}));
    shop.ok("deliverylists_confirm", json!({"id": id, "allow_short": true}));
    let hold = json!({"id": order, "to": "on_hold", "reason": "wants less"});
    shop.ok("orders_status_change", hold);
    let remove = json!({"id": order, "line": 1, "quantity": 1});
    let refusal = shop.refused("orders_item_remove", Code::State, remove.clone());
    assert!(refusal.hint.contains("deliverylists_cancel"));
    shop.ok("deliverylists_cancel", json!({"id": id, "reason": "order_changed"}));
    assert_eq!(order_status(&shop, &order), "on_hold");
    shop.ok("orders_item_remove", remove);
    assert_stock_agrees(&shop);
}

#[test]
fn print_writes_shelves_or_contents_and_marks_copies() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let order = confirmed_order(&mut shop);
    let id = picking_list(&mut shop, &order);
    let first = shop.ok("deliverylists_print", json!({"id": id, "width": 60}));
    let text = first["result"]["text"].as_str().unwrap();
    assert!(text.starts_with(&format!("PICKING LIST {id}")), "{text}");
    assert!(text.lines().any(|line| line.starts_with("[ ] ")), "{text}");
    assert!(text.contains("2 lines, 4 pieces"), "{text}");
    assert_eq!(first["result"]["is_copy"], false);
    let version = first["result"]["list"]["version"].clone();
    let second = shop.ok("deliverylists_print", json!({"id": id, "paper": "packing"}));
    let text = second["result"]["text"].as_str().unwrap();
    assert!(text.starts_with(&format!("DELIVERY NOTE {id} (COPY)")), "{text}");
    assert_eq!(second["result"]["list"]["version"], version);
    let cancelled = list(&shop, "d.status = 'cancelled'");
    shop.refused("deliverylists_print", Code::State, json!({"id": cancelled}));
}

#[test]
fn writes_take_a_clerk() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let id = list(&shop, "d.status = 'draft'");
    for tool in ["deliverylists_pick_start", "deliverylists_print"] {
        shop.refused(tool, Code::Forbidden, json!({"id": id}));
    }
}

#[test]
fn dry_runs_of_all_writes_store_nothing() {
    let mut shop = TestShop::new();
    let order = confirmed_order(&mut shop);
    let (draft, picking) = (list(&shop, "d.status = 'draft'"), list(&shop, "d.status = 'picking'"));
    let line: i64 = shop.sql(
        "select i.line from delivery_list_items l join order_items i on i.id = l.order_item_id
         where printf('DL-%06d', l.delivery_list_id) = ? limit 1",
        [&draft],
    );
    let before = shop.contents();
    let calls: [(&str, Value); 6] = [
        ("deliverylists_create", json!({"order_id": order})),
        ("deliverylists_item_set", json!({"id": draft, "line": line, "location": "D20-9"})),
        ("deliverylists_pick_start", json!({"id": draft})),
        ("deliverylists_confirm", json!({"id": picking, "all_picked": true})),
        ("deliverylists_cancel", json!({"id": picking, "reason": "mistake"})),
        ("deliverylists_print", json!({"id": draft})),
    ];
    for (tool, mut arguments) in calls {
        arguments["dry_run"] = json!(true);
        assert_eq!(shop.ok(tool, arguments)["applied"], false, "{tool}");
        assert!(shop.contents() == before, "{tool} stored something");
    }
}
