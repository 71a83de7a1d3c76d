//! Prices and their periods.

use serde_json::{Value, json};

use crate::{ctx::Role, error::Code, testkit::TestShop};

/// An offer for some days of December.
pub(super) fn christmas() -> Value {
    json!({
        "sku": "TNT-001-GREEN", "list": "retail", "price": {"cents": 599_000, "currency": "CZK"},
        "valid_from": "2026-12-01", "valid_to": "2026-12-24", "reason": "Christmas offer"
    })
}

/// Amounts with first and last day.
fn periods(prices: &Value) -> Vec<(i64, &str, &str)> {
    let text = |value: &'_ Value| -> &'static str {
        match value.as_str() {
            Some("2025-06-01") => "start",
            Some("2026-11-30") => "11-30",
            Some("2026-12-01") => "12-01",
            Some("2026-12-09") => "12-09",
            Some("2026-12-10") => "12-10",
            Some("2026-12-24") => "12-24",
            Some("2026-12-25") => "12-25",
            Some(_) => "other",
            None => "open",
        }
    };
    let prices = prices.as_array().unwrap().iter();
    prices
        .map(|p| {
            let cents = p["amount_cents"].as_i64().unwrap();
            (cents, text(&p["valid_from"]), text(&p["valid_to"]))
        })
        .collect()
}

fn assert_no_overlap(shop: &TestShop) {
    let wrong = "select count(*) from prices a join prices b on a.variant_id = b.variant_id and a.list = b.list
                     and a.currency = b.currency and a.id < b.id
                 where a.valid_from <= coalesce(b.valid_to, '9999') and b.valid_from <= coalesce(a.valid_to, '9999')";
    assert_eq!(shop.sql::<i64>(wrong, []), 0);
}

#[test]
fn list_gives_the_prices_of_a_day_or_all_periods() {
    let mut shop = TestShop::with_role(Role::Manager);
    let today = shop.ok("store_prices_list", json!({"sku": "TNT-001-GREEN"}));
    assert_eq!(today["total"], 9);
    shop.ok("store_price_set", christmas());
    let filter = json!({"sku": "TNT-001-GREEN", "list": "retail", "currency": "CZK", "on": "2026-12-24"});
    let then = shop.ok("store_prices_list", filter);
    assert_eq!(then["items"][0]["amount_cents"], 599_000);
    let all = json!({"product_id": "PRD-001", "list": "retail", "currency": "CZK", "all_periods": true});
    assert_eq!(shop.ok("store_prices_list", all)["total"], 4);
}

#[test]
fn an_offer_interrupts_the_price_before() {
    let mut shop = TestShop::with_role(Role::Manager);
    let answer = shop.ok("store_price_set", christmas());
    assert_eq!(
        periods(&answer["result"]["prices"]),
        [(699_000, "start", "11-30"), (599_000, "12-01", "12-24"), (699_000, "12-25", "open")]
    );
    assert_no_overlap(&shop);
    let card = shop.ok("store_product_get", json!({"id": "PRD-001"}));
    assert_eq!(card["variants"][0]["price_cents"], 699_000);
    assert_eq!(card["variants"][0]["version"], 2);
}

#[test]
fn a_price_within_the_period_stops_the_call_unless_replaced() {
    let mut shop = TestShop::with_role(Role::Manager);
    shop.ok("store_price_set", christmas());
    let mut lasting = christmas();
    lasting["valid_to"] = Value::Null;
    lasting["price"]["cents"] = json!(649_000);
    let refusal = shop.refused("store_price_set", Code::State, lasting.clone());
    assert!(refusal.message.contains("2026-12-01"), "{}", refusal.message);
    lasting["replace"] = json!(true);
    let answer = shop.ok("store_price_set", lasting);
    assert_eq!(periods(&answer["result"]["prices"]), [(699_000, "start", "11-30"), (649_000, "12-01", "open")]);
    let mut short = christmas();
    short["valid_to"] = json!("2026-12-09");
    short["replace"] = json!(true);
    let answer = shop.ok("store_price_set", short);
    assert_eq!(
        periods(&answer["result"]["prices"]),
        [(699_000, "start", "11-30"), (599_000, "12-01", "12-09"), (649_000, "12-10", "open")]
    );
    assert_no_overlap(&shop);
}

#[test]
fn a_price_from_today_is_charged_today() {
    let mut shop = TestShop::with_role(Role::Manager);
    let sku: String = super::stock::free_sku(&shop);
    let price =
        json!({"sku": sku, "list": "retail", "price": {"cents": 100, "currency": "CZK"}, "reason": "clearance"});
    let answer = shop.ok("store_price_set", price);
    assert!(answer["result"]["warning"].is_string());
    let buyer: String = shop.sql(
        "select printf('CUS-%04d', id) from customers where segment = 'retail' and currency = 'CZK' and merged_into is null limit 1",
        [],
    );
    let order = json!({"customer_id": buyer, "lines": [{"sku": sku, "quantity": 2}], "payment_method": "cod"});
    let order = shop.ok("orders_create", order);
    assert_eq!(order["result"]["order"]["totals"]["items_cents"], 200);
}

#[test]
fn a_price_lies_ahead_and_the_right_way_round() {
    let mut shop = TestShop::new();
    let cases = [
        ("valid_from", json!("2026-11-26"), Code::Invalid, "valid_from"),
        ("valid_to", json!("2026-11-30"), Code::Invalid, "valid_to"),
        ("price", json!({"cents": 0, "currency": "CZK"}), Code::Invalid, "price.cents"),
        ("sku", json!("TNT-999"), Code::NotFound, "sku"),
        ("expected_version", json!(7), Code::Conflict, "expected_version"),
    ];
    for (member, value, code, field) in cases {
        let mut arguments = christmas();
        arguments[member] = value;
        let refusal = shop.refused("store_price_set", code, arguments);
        assert_eq!(refusal.field.as_deref(), Some(field), "{refusal:?}");
    }
}
