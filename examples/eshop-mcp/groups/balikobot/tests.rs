//! Every parcel tool, called as a client would, with its effect on the data.

use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::{ctx::Role, error::Code, testkit::TestShop};

/// Code of the first shipment for which the condition holds, with the order as `o` and the carrier as `k`.
fn shipment(shop: &TestShop, condition: &str) -> String {
    let sql = format!(
        "select printf('SHP-%06d', s.id) from shipments s join orders o on o.id = s.order_id
         join carriers k on k.id = s.carrier_id where {condition} order by s.id limit 1"
    );
    shop.sql(&sql, [])
}

/// The first order that waits for a parcel and for which the condition holds, packed.
fn packed(shop: &mut TestShop, condition: &str) -> String {
    let sql = format!(
        "select printf('ORD-%06d', o.id) from orders o join carriers k on k.id = o.carrier_id
         join addresses a on a.id = o.shipping_address_id where o.status = 'picking' and {condition} order by o.id limit 1"
    );
    let id: String = shop.sql(&sql, []);
    shop.ok("orders_status_change", json!({"id": id, "to": "packed"}));
    id
}

/// A packed order to be delivered to a Czech door.
fn to_the_door(shop: &mut TestShop) -> String {
    packed(shop, "k.kind = 'home' and a.country = 'CZ'")
}

fn codes(answer: &Value) -> Vec<&str> {
    let carriers = answer["carriers"].as_array().unwrap();
    carriers.iter().map(|c| c["code"].as_str().unwrap()).collect()
}

#[test]
fn carriers_are_listed_by_price_with_what_keeps_them() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let all = shop.ok("balikobot_carriers_list", json!({}));
    assert_eq!(codes(&all).len(), 6);
    assert!(all["carriers"][0]["obstacle"].is_null());
    let fitting = json!({"country": "SK", "weight_g": 20_000, "cod": true, "only_fitting": true});
    let fitting = shop.ok("balikobot_carriers_list", fitting);
    assert_eq!(codes(&fitting), ["dpx"]);
    let heavy = shop.ok("balikobot_carriers_list", json!({"weight_g": 60_000, "kind": "home"}));
    let obstacle = heavy["carriers"][0]["obstacle"].as_str().unwrap();
    assert_eq!(obstacle, "weight_g 60000, allowed: up to 30000 with cpost");
}

#[test]
fn carriers_for_an_order_follow_its_country() {
    let mut shop = TestShop::new();
    let id: String = shop.sql(
        "select printf('ORD-%06d', o.id) from orders o join addresses a on a.id = o.shipping_address_id
         where a.country = 'PL' and o.payment_method = 'card' limit 1",
        [],
    );
    let list = shop.ok("balikobot_carriers_list", json!({"order_id": id, "only_fitting": true}));
    let found = codes(&list);
    assert!(!found.is_empty() && found.iter().all(|c| ["zasilka", "paczko", "dpx"].contains(c)));
    let missing = json!({"order_id": "ORD-999999"});
    shop.refused("balikobot_carriers_list", Code::NotFound, missing);
}

#[test]
fn branches_nearest_by_postcode_come_first_and_closed_ones_are_left_out() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let near = shop.ok(
        "balikobot_branches_search",
        json!({"carrier": "zasilka", "country": "CZ", "near_postcode": "779 00", "limit": 100}),
    );
    let items = near["items"].as_array().unwrap();
    assert_eq!(items[0]["city"], "Olomouc");
    assert!(items.iter().all(|b| b["is_open"] == true));
    let open = near["total"].as_i64().unwrap();
    let all = json!({"carrier": "zasilka", "country": "CZ", "include_closed": true});
    assert!(shop.ok("balikobot_branches_search", all)["total"].as_i64().unwrap() >= open);
    let boxes = shop.ok("balikobot_branches_search", json!({"text": "brno", "kind": "box"}));
    assert!(boxes["items"].as_array().unwrap().iter().all(|b| b["kind"] == "box"));
    let refusal = shop.refused("balikobot_branches_search", Code::Invalid, json!({"near_postcode": "602 00"}));
    assert_eq!(refusal.field.as_deref(), Some("country"));
}

#[test]
fn lists_refuse_a_carrier_that_there_is_not() {
    let mut shop = TestShop::with_role(Role::Viewer);
    for tool in ["balikobot_branches_search", "balikobot_shipments_list"] {
        let refusal = shop.refused(tool, Code::NotFound, json!({"carrier": "nobody"}));
        assert_eq!(refusal.field.as_deref(), Some("carrier"));
    }
}

#[test]
fn shipments_are_filtered_and_late_ones_are_marked() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let created = shop.ok("balikobot_shipments_list", json!({"status": ["created"], "limit": 100}));
    let expected: i64 = shop.sql("select count(*) from shipments where status = 'created'", []);
    assert_eq!(created["total"], expected);
    let late = shop.ok("balikobot_shipments_list", json!({"only_late": true}));
    let items = late["items"].as_array().unwrap();
    assert!(!items.is_empty() && items.iter().all(|s| s["is_late"] == true));
    let cod = shop.ok("balikobot_shipments_list", json!({"cod": true, "carrier": "dpx", "limit": 5}));
    let items = cod["items"].as_array().unwrap();
    assert!(items.iter().all(|s| s["cod_cents"].as_i64() > Some(0) && s["carrier"] == "dpx"));
}

#[test]
fn get_shows_the_recipient_and_whether_it_can_be_cancelled() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let id = shipment(&shop, "s.status = 'delivered'");
    let sheet = shop.ok("balikobot_shipment_get", json!({"id": id}));
    assert_eq!(sheet["can_cancel"], false);
    assert!(sheet["recipient"]["city"].is_string() && sheet["delivered_at"].is_string());
    let missing = json!({"id": "SHP-999999"});
    shop.refused("balikobot_shipment_get", Code::NotFound, missing);
}

#[test]
fn create_takes_weight_and_worth_from_the_order() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let order = to_the_door(&mut shop);
    let answer = shop.ok("balikobot_shipment_create", json!({"order_id": order}));
    let made = &answer["result"]["shipment"];
    assert_eq!(made["status"], "created");
    let expected: String = shop.sql(
        "select k.code || ' ' || (250 + (select sum(i.quantity * v.weight_g) from order_items i
             join variants v on v.id = i.variant_id where i.order_id = o.id)) || ' ' || o.total_cents
         from orders o join carriers k on k.id = o.carrier_id where printf('ORD-%06d', o.id) = ?",
        [&order],
    );
    let sheet = shop.ok("balikobot_shipment_get", json!({"id": made["id"]}));
    let found = [&made["carrier"], &made["weight_g"], &sheet["value_cents"]];
    assert_eq!(found.map(|value| value.to_string().replace('"', "")).join(" "), expected);
    let follow_up = answer["result"]["follow_up"].as_str().unwrap();
    assert!(follow_up.contains("orders_status_change"));
}

#[test]
fn a_second_shipment_takes_split() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let order = to_the_door(&mut shop);
    let first = shop.ok("balikobot_shipment_create", json!({"order_id": order}));
    let first = first["result"]["shipment"]["id"].as_str().unwrap();
    let refusal = shop.refused("balikobot_shipment_create", Code::State, json!({"order_id": order}));
    assert!(refusal.message.contains(first), "{}", refusal.message);
    let split = json!({"order_id": order, "split": true, "weight_g": 900});
    shop.ok("balikobot_shipment_create", split);
    let both = shop.ok("balikobot_shipments_list", json!({"order_id": order}));
    assert_eq!(both["total"], 2);
}

#[test]
fn parcels_of_one_order_collect_its_cash_once() {
    let mut shop = TestShop::new();
    let id = shipment(&shop, "s.status = 'created' and s.cod_cents > 0");
    let gone = shop.ok("balikobot_shipment_cancel", json!({"id": id, "reason": "two cartons instead"}));
    let due = gone["result"]["freed_cod_cents"].as_i64().unwrap();
    let order = &gone["result"]["shipment"]["order_id"];
    let first = json!({"order_id": order, "carrier": "dpx", "cod_cents": 1000});
    shop.ok("balikobot_shipment_create", first);
    let mut second = json!({"order_id": order, "carrier": "dpx", "split": true, "cod_cents": due});
    let refusal = shop.refused("balikobot_shipment_create", Code::Invalid, second.clone());
    assert_eq!(refusal.field.as_deref(), Some("cod_cents"));
    second["cod_cents"] = Value::Null;
    let rest = shop.ok("balikobot_shipment_create", second);
    assert_eq!(rest["result"]["shipment"]["cod_cents"], due - 1000);
}

#[test]
fn carriers_limits_are_kept() {
    let mut shop = TestShop::new();
    let order = to_the_door(&mut shop);
    let cases = [
        (json!({"weight_g": 90_000}), "weight_g"),
        (json!({"carrier": "zasilka", "weight_g": 900}), "branch"),
        (json!({"carrier": "dpx", "weight_g": 900, "branch": "ZASILKA-60200-1"}), "branch"),
        (json!({"cod_cents": 99_999_999}), "cod_cents"),
    ];
    for (mut arguments, field) in cases {
        arguments["order_id"] = json!(order);
        let refusal = shop.refused("balikobot_shipment_create", Code::Invalid, arguments);
        assert_eq!(refusal.field.as_deref(), Some(field), "{refusal:?}");
    }
}

#[test]
fn a_carrier_does_not_leave_its_countries() {
    let mut shop = TestShop::new();
    let order = to_the_door(&mut shop);
    let abroad = json!({"order_id": order, "carrier": "alpex"});
    let refusal = shop.refused("balikobot_shipment_create", Code::Invalid, abroad);
    assert!(refusal.hint.contains("DE,AT"), "{}", refusal.hint);
    let unknown = json!({"order_id": order, "carrier": "nobody"});
    shop.refused("balikobot_shipment_create", Code::NotFound, unknown);
}

#[test]
fn a_pickup_parcel_goes_to_an_open_branch_of_its_carrier() {
    let mut shop = TestShop::new();
    let order = to_the_door(&mut shop);
    let branch = |is_open: bool| {
        format!("select code from branches where carrier_id = 1 and country = 'CZ' and is_open = {is_open} limit 1")
    };
    let open: String = shop.sql(&branch(true), []);
    let mut arguments = json!({"order_id": order, "carrier": "zasilka", "weight_g": 2000});
    arguments["branch"] = json!("ZASILKA-81101-1");
    shop.refused("balikobot_shipment_create", Code::NotFound, arguments.clone());
    let closed: String = shop.sql("update branches set is_open = 0 where code = 'ZASILKA-70200-2' returning code", []);
    arguments["branch"] = json!(closed);
    shop.refused("balikobot_shipment_create", Code::State, arguments.clone());
    arguments["branch"] = json!(open);
    let answer = shop.ok("balikobot_shipment_create", arguments);
    assert_eq!(answer["result"]["shipment"]["branch"], json!(open));
}

#[test]
fn only_packed_orders_get_a_parcel() {
    let mut shop = TestShop::new();
    let id: String = shop.sql("select printf('ORD-%06d', id) from orders where status = 'confirmed' limit 1", []);
    let refusal = shop.refused("balikobot_shipment_create", Code::State, json!({"order_id": id}));
    assert!(refusal.message.contains("is confirmed"), "{}", refusal.message);
}

#[test]
fn cancel_ends_a_shipment_before_pick_up_only() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let id = shipment(&shop, "s.status = 'created'");
    let stale = json!({"id": id, "reason": "wrong box", "expected_version": 7});
    let refusal = shop.refused("balikobot_shipment_cancel", Code::Conflict, stale);
    assert_eq!(refusal.current_version, Some(1));
    let answer = shop.ok("balikobot_shipment_cancel", json!({"id": id, "reason": "wrong box", "expected_version": 1}));
    assert_eq!(answer["result"]["shipment"]["status"], "cancelled");
    assert_eq!(answer["result"]["shipment"]["version"], 2);
    let again = json!({"id": id, "reason": "wrong box"});
    shop.refused("balikobot_shipment_cancel", Code::State, again);
    let gone = shipment(&shop, "s.status = 'handed_over'");
    shop.refused("balikobot_shipment_cancel", Code::State, json!({"id": gone, "reason": "wrong box"}));
}

#[test]
fn labels_come_for_printers_and_as_a_document() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let id = shipment(&shop, "s.status = 'created' and s.cod_cents > 0");
    let zpl = shop.ok("balikobot_label_get", json!({"id": id}));
    let content = zpl["content"].as_str().unwrap();
    assert!(content.starts_with("^XA") && content.ends_with("^XZ\n"));
    assert!(content.contains(zpl["tracking_no"].as_str().unwrap()) && content.contains("COD "));
    let pdf = shop.ok("balikobot_label_get", json!({"id": id, "format": "pdf"}));
    let bytes = BASE64.decode(pdf["content"].as_str().unwrap().as_bytes()).unwrap();
    assert!(bytes.starts_with(b"%PDF-1.4") && bytes.len() < 3000);
    assert_eq!(pdf["size_bytes"], bytes.len());
    let late = shipment(&shop, "s.status = 'delivered'");
    shop.refused("balikobot_label_get", Code::State, json!({"id": late}));
}

#[test]
fn track_tells_the_events_in_order_by_code_or_number() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let id = shipment(&shop, "s.status = 'delivered'");
    let way = shop.ok("balikobot_track", json!({"id": id}));
    let events = way["events"].as_array().unwrap();
    assert_eq!(events.first().unwrap()["status"], "created");
    assert_eq!(events.last().unwrap()["status"], "delivered");
    let number = &way["shipment"]["tracking_no"];
    let same = shop.ok("balikobot_track", json!({"tracking_no": number, "newest_first": true}));
    assert_eq!(same["shipment"]["id"], json!(id));
    assert_eq!(same["events"][0]["status"], "delivered");
    for (code, arguments) in [
        (Code::Invalid, json!({})),
        (Code::Invalid, json!({"id": id, "tracking_no": number})),
        (Code::NotFound, json!({"tracking_no": "DPX000000000"})),
    ] {
        shop.refused("balikobot_track", code, arguments);
    }
}

#[test]
fn a_viewer_sends_and_cancels_nothing() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let id = shipment(&shop, "s.status = 'created'");
    let cancel = json!({"id": id, "reason": "wrong box"});
    shop.refused("balikobot_shipment_cancel", Code::Forbidden, cancel);
    let create = json!({"order_id": "ORD-000001"});
    shop.refused("balikobot_shipment_create", Code::Forbidden, create);
}

#[test]
fn dry_runs_store_nothing() {
    let mut shop = TestShop::new();
    let order = to_the_door(&mut shop);
    let id = shipment(&shop, "s.status = 'created'");
    let before = shop.contents();
    let create = json!({"order_id": order, "dry_run": true});
    assert_eq!(shop.ok("balikobot_shipment_create", create)["applied"], false);
    let cancel = json!({"id": id, "reason": "wrong box", "dry_run": true});
    assert_eq!(shop.ok("balikobot_shipment_cancel", cancel)["applied"], false);
    assert!(shop.contents() == before);
}
