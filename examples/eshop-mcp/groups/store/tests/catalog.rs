//! Products, variants and categories.

use serde_json::{Value, json};

use crate::{ctx::Role, error::Code, testkit::TestShop};

/// A tent in two colors.
pub(super) fn new_product() -> Value {
    json!({
        "name": "Skála 4", "brand": "Rovnia", "description": "Tent for four with two porches.", "category": "tents",
        "supplier_id": "SUP-01", "vat_percent": 21,
        "variants": [
            {"name": "green", "suffix": "GREEN", "weight_g": 3400, "cost_cents": 455_000},
            {"name": "red", "suffix": "RED", "ean": "8594001234561", "weight_g": 3400, "cost_cents": 455_000}
        ]
    })
}

fn price(sku: &str) -> Value {
    json!({"sku": sku, "list": "retail", "price": {"cents": 949_000, "currency": "CZK"}, "reason": "new product"})
}

#[test]
fn products_are_filtered_by_category_tree_supplier_and_stock() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let camping = shop.ok("store_products_list", json!({"category": "camping"}));
    assert_eq!(camping["total"], 16);
    let archived = shop.ok("store_products_list", json!({"status": ["archived"]}));
    assert_eq!(archived["total"], 2);
    let merino = shop.ok(
        "store_products_list",
        json!({"text": "merino", "supplier_id": "SUP-03", "sort": "free", "direction": "desc"}),
    );
    let items = merino["items"].as_array().unwrap();
    assert!(items[0]["free"].as_i64() >= items[1]["free"].as_i64());
    let empty = shop.ok("store_products_list", json!({"in_stock": false}));
    assert!(empty["items"].as_array().unwrap().iter().all(|p| p["free"] == 0));
}

#[test]
fn lists_refuse_a_category_that_there_is_not() {
    let mut shop = TestShop::with_role(Role::Viewer);
    for tool in ["store_products_list", "store_variants_list", "store_stock_list"] {
        let refusal = shop.refused(tool, Code::NotFound, json!({"category": "boats"}));
        assert_eq!(refusal.field.as_deref(), Some("category"));
    }
}

#[test]
fn get_shows_variants_with_the_price_of_the_list_asked_for() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let retail = shop.ok("store_product_get", json!({"id": "PRD-001"}));
    let whole = shop.ok("store_product_get", json!({"id": "PRD-001", "price_list": "wholesale", "currency": "EUR"}));
    assert_eq!(retail["categories"], json!(["tents"]));
    let cents = |sheet: &Value| sheet["variants"][0]["price_cents"].as_i64().unwrap();
    assert_eq!(cents(&retail), 699_000);
    assert!(cents(&whole) < cents(&retail) / 24);
    shop.refused("store_product_get", Code::NotFound, json!({"id": "PRD-999"}));
}

#[test]
fn a_new_product_is_a_draft_until_it_has_prices() {
    let mut shop = TestShop::with_role(Role::Manager);
    let made = shop.ok("store_product_create", new_product());
    let product = &made["result"]["product"];
    assert_eq!(product["status"], "draft");
    assert_eq!(made["result"]["skus"], json!(["TNT-061-GREEN", "TNT-061-RED"]));
    let activate = json!({"id": product["id"], "status": "active"});
    let refusal = shop.refused("store_product_update", Code::State, activate.clone());
    assert!(refusal.message.contains("TNT-061-RED"), "{}", refusal.message);
    for sku in ["TNT-061-GREEN", "TNT-061-RED"] {
        shop.ok("store_price_set", price(sku));
    }
    let active = shop.ok("store_product_update", activate);
    assert_eq!(active["result"]["product"]["status"], "active");
    shop.ok("store_stock_adjust", json!({"sku": "TNT-061-RED", "warehouse": "BRN", "delta": 3, "reason": "receipt"}));
    let buyer: String = shop.sql(
        "select printf('CUS-%04d', id) from customers where segment = 'retail' and currency = 'CZK' and merged_into is null limit 1",
        [],
    );
    let order =
        json!({"customer_id": buyer, "lines": [{"sku": "TNT-061-RED", "quantity": 1}], "payment_method": "cod"});
    shop.ok("orders_create", order);
}

#[test]
fn a_product_is_entered_with_known_supplier_category_rate_and_ean() {
    let mut shop = TestShop::new();
    let cases = [
        ("supplier_id", json!("SUP-99"), Code::NotFound, "supplier_id"),
        ("category", json!("boats"), Code::NotFound, "category"),
        ("category", json!("camping"), Code::Invalid, "category"),
        ("vat_percent", json!(17), Code::Invalid, "vat_percent"),
        ("name", json!("Skála 2"), Code::State, "name"),
    ];
    for (member, value, code, field) in cases {
        let mut arguments = new_product();
        arguments[member] = value;
        let refusal = shop.refused("store_product_create", code, arguments);
        assert_eq!(refusal.field.as_deref(), Some(field), "{refusal:?}");
    }
    let mut arguments = new_product();
    arguments["variants"][1]["ean"] = json!("8594001234562");
    let refusal = shop.refused("store_product_create", Code::Invalid, arguments);
    assert_eq!(refusal.field.as_deref(), Some("variants[1].ean"));
    assert!(refusal.hint.contains("8594001234561"), "{}", refusal.hint);
}

#[test]
fn update_lists_changes_and_adds_variants() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let answer = shop.ok(
        "store_product_update",
        json!({
            "id": "PRD-001", "expected_version": 1, "name": "Skála 2 Plus",
            "add_variants": [{"name": "red", "suffix": "RED", "weight_g": 2350, "cost_cents": 355_000}]
        }),
    );
    assert_eq!(
        answer["result"]["changes"],
        json!([
            {"field": "name", "from": "Skála 2", "to": "Skála 2 Plus"},
            {"field": "variants", "to": "TNT-001-RED"}
        ])
    );
    let stock = shop.ok("store_stock_get", json!({"sku": "TNT-001-RED"}));
    assert_eq!(stock["warehouses"].as_array().unwrap().len(), 3);
    let stale = json!({"id": "PRD-001", "expected_version": 1, "name": "Skála 2"});
    let refusal = shop.refused("store_product_update", Code::Conflict, stale);
    assert_eq!(refusal.current_version, Some(2));
    let same = json!({"id": "PRD-001", "name": "Skála 2 Plus"});
    shop.refused("store_product_update", Code::State, same);
}

#[test]
fn archive_refuses_a_product_that_open_orders_have() {
    let mut shop = TestShop::with_role(Role::Manager);
    let (id, order): (String, String) = {
        let from = "from order_items i join orders o on o.id = i.order_id join variants v on v.id = i.variant_id
                    where o.status = 'confirmed' order by o.id, i.id limit 1";
        (
            shop.sql(&format!("select printf('PRD-%03d', v.product_id) {from}"), []),
            shop.sql(&format!("select printf('ORD-%06d', o.id) {from}"), []),
        )
    };
    let arguments = json!({"id": id, "reason": "no longer made"});
    let refusal = shop.refused("store_product_archive", Code::State, arguments);
    assert!(refusal.message.contains(&order), "{}", refusal.message);
}

#[test]
fn an_archived_product_is_not_sold_and_comes_back_by_a_manager() {
    let mut shop = TestShop::with_role(Role::Manager);
    let idle: String = shop.sql(
        "select v.sku from variants v join products p on p.id = v.product_id where p.status = 'active' and not exists
             (select 1 from order_items i join variants w on w.id = i.variant_id where w.product_id = p.id) limit 1",
        [],
    );
    let id: String = shop.sql("select printf('PRD-%03d', product_id) from variants where sku = ?", [&idle]);
    let archive = json!({"id": id, "reason": "no longer made", "expected_version": 1});
    let answer = shop.ok("store_product_archive", archive.clone());
    assert_eq!(answer["result"]["product"]["status"], "archived");
    let order = json!({"customer_id": "CUS-0001", "lines": [{"sku": idle, "quantity": 1}], "payment_method": "cod"});
    shop.refused("orders_create", Code::State, order);
    shop.refused("store_product_archive", Code::Conflict, archive);
    let again = json!({"id": id, "reason": "no longer made"});
    shop.refused("store_product_archive", Code::State, again);
    shop.refused("store_product_update", Code::State, json!({"id": id, "name": "Other"}));
    shop.ok("store_product_update", json!({"id": id, "status": "active"}));
}

#[test]
fn a_clerk_does_not_bring_back_what_was_archived() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let back = json!({"id": "PRD-030", "status": "draft"});
    shop.refused("store_product_update", Code::Forbidden, back);
}

#[test]
fn variants_are_found_by_words_place_and_free_pieces() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let boots = shop.ok("store_variants_list", json!({"text": "BTS-017"}));
    assert_eq!(boots["total"], 4);
    let of_product = shop.ok("store_variants_list", json!({"product_id": "PRD-001", "currency": "EUR"}));
    assert_eq!(of_product["items"][0]["sku"], "TNT-001-GREEN");
    let scarce = shop.ok("store_variants_list", json!({"max_free": 5, "category": "wear"}));
    let items = scarce["items"].as_array().unwrap();
    assert!(items.iter().all(|v| v["free"].as_i64().unwrap() <= 5));
    let in_outlet: i64 = shop.sql("select count(*) from stock where warehouse_id = 3 and on_hand > reserved", []);
    let there = shop.ok("store_variants_list", json!({"free_in": "OVA"}));
    assert_eq!(there["total"], in_outlet);
}

#[test]
fn variant_update_changes_one_and_keeps_costs_to_managers() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let answer = shop.ok(
        "store_variant_update",
        json!({"sku": "TNT-001-GREEN", "expected_version": 1, "weight_g": 2400, "ean": "8594001234561", "status": "discontinued"}),
    );
    let fields: Vec<&str> =
        answer["result"]["changes"].as_array().unwrap().iter().map(|c| c["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["ean", "weight_g", "status"]);
    let order =
        json!({"customer_id": "CUS-0001", "lines": [{"sku": "TNT-001-GREEN", "quantity": 1}], "payment_method": "cod"});
    shop.refused("orders_create", Code::State, order);
    let refused = [
        (Code::Conflict, json!({"sku": "TNT-001-GREEN", "expected_version": 1, "name": "x"})),
        (Code::State, json!({"sku": "TNT-001-GREEN", "weight_g": 2400})),
        (Code::Invalid, json!({"sku": "TNT-002-GREEN", "ean": "8594001234561"})),
        (Code::Forbidden, json!({"sku": "TNT-001-GREEN", "cost_cents": 1})),
        (Code::NotFound, json!({"sku": "TNT-999", "weight_g": 1})),
    ];
    for (code, arguments) in refused {
        shop.refused("store_variant_update", code, arguments);
    }
}

#[test]
fn categories_come_as_a_tree() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let all = shop.ok("store_categories_list", json!({}));
    assert_eq!(all["categories"].as_array().unwrap().len(), 15);
    let camping = shop.ok("store_categories_list", json!({"root": "camping"}));
    let slugs: Vec<&str> =
        camping["categories"].as_array().unwrap().iter().map(|c| c["slug"].as_str().unwrap()).collect();
    assert_eq!(slugs, ["camping", "cooking", "sleeping", "tents"]);
    let filled = json!({"root": "camping", "include_empty": false});
    let filled = shop.ok("store_categories_list", filled);
    assert_eq!(filled["categories"].as_array().unwrap().len(), 3);
}

#[test]
fn assign_keeps_exactly_one_main_category() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let alone = json!({"id": "PRD-001", "remove": ["tents"]});
    shop.refused("store_category_assign", Code::State, alone);
    let answer = shop.ok(
        "store_category_assign",
        json!({"id": "PRD-001", "expected_version": 1, "main": "packs", "add": ["care"], "remove": ["tents"]}),
    );
    assert_eq!(
        answer["result"]["changes"],
        json!([
            {"field": "category", "from": "tents", "to": "packs"},
            {"field": "categories", "from": "tents", "to": "care, packs"}
        ])
    );
    let mains = "select count(*) from products p where 1 <> (select sum(is_main) from product_categories c where c.product_id = p.id)";
    assert_eq!(shop.sql::<i64>(mains, []), 0);
    let refused = [
        (Code::Conflict, json!({"id": "PRD-001", "expected_version": 1, "add": ["maps"]})),
        (Code::Invalid, json!({"id": "PRD-001", "add": ["camping"]})),
        (Code::Invalid, json!({"id": "PRD-001", "remove": ["boots"]})),
        (Code::NotFound, json!({"id": "PRD-001", "add": ["boats"]})),
        (Code::State, json!({"id": "PRD-001", "add": ["care"]})),
    ];
    for (code, arguments) in refused {
        shop.refused("store_category_assign", code, arguments);
    }
}
