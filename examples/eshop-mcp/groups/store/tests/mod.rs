//! Every store tool, called as a client would, with its effect on the data.

mod catalog;
mod prices;
mod stock;

use serde_json::{Value, json};

use crate::{ctx::Role, error::Code, testkit::TestShop};

/// Arguments of each write that succeed in a fresh shop.
fn writes(shop: &TestShop) -> Vec<(&'static str, Value)> {
    let idle: String = shop.sql(
        "select printf('PRD-%03d', p.id) from products p where p.status = 'active' and not exists
             (select 1 from order_items i join variants v on v.id = i.variant_id where v.product_id = p.id) limit 1",
        [],
    );
    vec![
        ("store_product_create", catalog::new_product()),
        ("store_product_update", json!({"id": "PRD-001", "name": "Skála 2 Plus"})),
        ("store_product_archive", json!({"id": idle, "reason": "no longer made"})),
        ("store_variant_update", json!({"sku": "TNT-001-GREEN", "weight_g": 2400})),
        ("store_category_assign", json!({"id": "PRD-001", "add": ["care"]})),
        ("store_price_set", prices::christmas()),
        ("store_stock_adjust", json!({"sku": "TNT-001-GREEN", "warehouse": "BRN", "delta": 5, "reason": "receipt"})),
        (
            "store_stock_transfer",
            json!({"from": "BRN", "to": "PRG", "lines": [{"sku": stock::free_sku(shop), "quantity": 1}], "reason": "refill the store"}),
        ),
        (
            "store_stock_reserve",
            json!({"sku": stock::free_sku(shop), "warehouse": "BRN", "quantity": 1, "reason": "photo shooting"}),
        ),
    ]
}

#[test]
fn dry_runs_of_all_writes_store_nothing() {
    let mut shop = TestShop::new();
    let before = shop.contents();
    for (tool, mut arguments) in writes(&shop) {
        arguments["dry_run"] = json!(true);
        assert_eq!(shop.ok(tool, arguments)["applied"], false, "{tool}");
        assert!(shop.contents() == before, "{tool} stored something");
    }
}

#[test]
fn a_viewer_writes_nothing() {
    let mut shop = TestShop::with_role(Role::Viewer);
    for (tool, arguments) in writes(&shop) {
        shop.refused(tool, Code::Forbidden, arguments);
    }
}

#[test]
fn prices_and_archiving_take_a_manager_and_the_rest_a_clerk() {
    let mut shop = TestShop::with_role(Role::Clerk);
    for (tool, arguments) in writes(&shop) {
        if matches!(tool, "store_price_set" | "store_product_archive") {
            let refusal = shop.refused(tool, Code::Forbidden, arguments);
            assert!(refusal.message.contains("takes role manager"), "{refusal:?}");
        } else {
            assert_eq!(shop.ok(tool, arguments)["applied"], true, "{tool}");
        }
    }
}

#[test]
fn warehouses_sum_up_their_rows() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let answer = shop.ok("store_warehouses_list", json!({}));
    let places = answer["warehouses"].as_array().unwrap();
    let codes: Vec<&str> = places.iter().map(|p| p["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["BRN", "PRG", "OVA"]);
    let sum: i64 = places.iter().map(|p| p["on_hand"].as_i64().unwrap()).sum();
    assert_eq!(sum, shop.sql::<i64>("select sum(on_hand) from stock", []));
    let outlet = shop.ok("store_warehouses_list", json!({"kind": "outlet"}));
    assert_eq!(outlet["warehouses"].as_array().unwrap().len(), 1);
}

#[test]
fn suppliers_are_found_by_brand_product_and_speed() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let mut ids = |arguments: Value| -> Vec<String> {
        let answer = shop.ok("store_suppliers_list", arguments);
        let suppliers = answer["suppliers"].as_array().unwrap().iter();
        suppliers.map(|s| s["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(json!({})).len(), 6);
    assert_eq!(ids(json!({"text": "lumen"})), ["SUP-05"]);
    assert_eq!(ids(json!({"product_id": "PRD-001"})), ["SUP-01"]);
    assert_eq!(ids(json!({"max_lead_days": 7, "country": "CZ"})).len(), 2);
}

#[test]
fn suggestions_come_in_whole_packs_and_name_the_delivery_day() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let answer = shop.ok("store_reorder_suggest", json!({}));
    let suppliers = answer["suppliers"].as_array().unwrap();
    assert!(!suppliers.is_empty());
    for supplier in suppliers {
        let lines = supplier["lines"].as_array().unwrap();
        let cost: i64 = lines.iter().map(|l| l["cost_cents"].as_i64().unwrap()).sum();
        assert_eq!(supplier["cost_cents"], cost);
        assert!(supplier["arrives_on"].as_str().unwrap() > "2026-11-27");
        for line in lines {
            let pack: i64 = shop.sql("select reorder_qty from variants where sku = ?", [line["sku"].as_str().unwrap()]);
            assert_eq!(line["quantity"].as_i64().unwrap() % pack, 0);
            assert!(line["sold"].as_i64().unwrap() > 0);
        }
    }
    let id = &suppliers[0]["supplier_id"];
    let one = shop.ok("store_reorder_suggest", json!({"supplier_id": id}));
    assert_eq!(one["suppliers"], json!([suppliers[0]]));
    let in_outlet = json!({"warehouse": "OVA", "include_unsold": true});
    let in_outlet = shop.ok("store_reorder_suggest", in_outlet);
    assert!(!in_outlet["suppliers"].as_array().unwrap().is_empty());
}

#[test]
fn suggestions_reckon_with_sales_and_the_days_to_cover() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let single = json!({"sku": "POL-048", "reorder_qty": 1});
    shop.ok("store_variant_update", single);
    // Nine were sold in 90 days, four are free, the point is 8, a delivery takes 14 days.
    for (cover_days, quantity) in [(30, 9), (180, 24)] {
        let arguments = json!({"supplier_id": "SUP-04", "cover_days": cover_days});
        let answer = shop.ok("store_reorder_suggest", arguments);
        let line = &answer["suppliers"][0]["lines"][0];
        assert_eq!((&line["sku"], &line["days_left"]), (&json!("POL-048"), &json!(40)));
        assert_eq!(line["quantity"], quantity);
    }
}
