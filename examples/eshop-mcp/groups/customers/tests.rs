//! Every customer tool, called as a client would, with its effect on the data.

use serde_json::{Value, json};

use crate::{ctx::Role, error::Code, testkit::TestShop};

/// Code of the first customer for which the condition holds.
fn customer(shop: &TestShop, condition: &str) -> String {
    let sql = format!("select printf('CUS-%04d', id) from customers c where {condition} order by id limit 1");
    shop.sql(&sql, [])
}

fn address(street: &str) -> Value {
    json!({"name": "Jana Dvořáková", "street": street, "city": "Brno", "postcode": "602 00", "country": "CZ"})
}

fn jana() -> Value {
    json!({"kind": "person", "name": "Jana Dvořáková", "email": "jana@new.example", "billing": address("Lidická 12")})
}

const TRUSTED: &str = "kind = 'company' and segment = 'wholesale' and not exists (select 1 from invoices i
    where i.customer_id = c.id and i.status = 'issued' and i.due_on < '2026-11-27')";

#[test]
fn list_filters_sorts_and_pages() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let page = shop.ok(
        "customers_list",
        json!({"with_overdue": true, "currency": "CZK", "sort": "overdue_cents", "direction": "desc", "limit": 2}),
    );
    let cents = |at: usize| page["items"][at]["overdue_cents"].as_i64().unwrap();
    assert!(cents(0) >= cents(1) && cents(1) > 0);
    assert_eq!(page["next_offset"], 2);
    let wholesale = shop
        .ok("customers_list", json!({"segment": ["wholesale"], "with_credit": true, "kind": "company", "limit": 100}));
    let expected: i64 =
        shop.sql("select count(*) from customers where segment = 'wholesale' and credit_limit_cents > 0", []);
    assert_eq!(wholesale["total"], expected);
    let by_town = shop.ok("customers_list", json!({"text": "Passau", "country": "DE", "limit": 1}));
    assert_eq!(by_town["items"][0]["place"], "Passau, DE");
}

#[test]
fn list_tells_active_customers_from_silent_ones() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let total = |page: Value| page["total"].as_i64().unwrap();
    let active = total(shop.ok("customers_list", json!({"ordered": {"from": "2026-09-01", "to": "2026-11-27"}})));
    let expected: i64 = shop.sql(
        "select count(distinct customer_id) from orders where status <> 'cancelled' and placed_at >= '2026-09-01'",
        [],
    );
    assert_eq!(active, expected);
    // 2026-08-31 lies 88 days back.
    let silent = total(shop.ok("customers_list", json!({"silent_days": 88})));
    assert_eq!(active + silent, 80);
}

#[test]
fn get_finds_by_email_and_sums_years_and_credit() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let email: String = shop.sql("select upper(email) from customers where id = 8", []);
    let sheet = shop.ok("customers_get", json!({"email": email, "recent": 3}));
    assert_eq!(sheet["customer"]["id"], "CUS-0008");
    assert_eq!(sheet["recent_orders"].as_array().unwrap().len(), 3);
    let n_orders: i64 = sheet["years"].as_array().unwrap().iter().map(|year| year["orders"].as_i64().unwrap()).sum();
    assert_eq!(sheet["customer"]["orders"], n_orders);
    let credit = |field: &str| sheet["credit"][field].as_i64().unwrap();
    assert_eq!(credit("available_cents"), credit("limit_cents") - credit("used_cents"));
    assert_eq!(sheet["addresses"][0]["kind"], "billing");
    shop.refused("customers_get", Code::NotFound, json!({"id": "CUS-9999"}));
    shop.refused("customers_get", Code::Invalid, json!({}));
}

#[test]
fn create_stores_both_addresses_and_names_similar_customers() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let name: String = shop.sql("select name from customers where id = 1", []);
    let mut new = jana();
    new["name"] = json!(name);
    let made = shop.ok("customers_create", new.clone());
    let result = &made["result"];
    assert_eq!(result["customer"]["currency"], "CZK");
    assert_eq!(result["addresses"].as_array().unwrap().len(), 2);
    assert_eq!(result["similar"][0]["id"], "CUS-0001");
    new["email"] = json!("JANA@new.example");
    let refusal = shop.refused("customers_create", Code::State, new);
    assert_eq!(refusal.field.as_deref(), Some("email"));
    let ordered = shop.ok(
        "orders_create",
        json!({"customer_id": result["customer"]["id"], "payment_method": "cod", "lines": [{"sku": shop.sql::<String>(
            "select v.sku from stock s join variants v on v.id = s.variant_id join products p on p.id = v.product_id
             where s.warehouse_id = 1 and s.on_hand - s.reserved >= 5 and p.status = 'active' order by v.id limit 1", []), "quantity": 1}]}),
    );
    assert_eq!(ordered["applied"], true);
}

#[test]
fn create_checks_what_the_kind_allows() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let mut refused = |field: &str, code: Code, change: Value| {
        let mut new = jana();
        for (name, value) in change.as_object().unwrap() {
            new[name] = value.clone();
        }
        let refusal = shop.refused("customers_create", code, new);
        if code == Code::Invalid {
            assert_eq!(refusal.field.as_deref(), Some(field));
        }
    };
    let mut vienna = address("Ring 1");
    vienna["country"] = json!("AT");
    refused("billing.postcode", Code::Invalid, json!({"billing": vienna}));
    refused("reg_no", Code::Invalid, json!({"kind": "company"}));
    refused("segment", Code::Invalid, json!({"segment": "wholesale"}));
    refused("payment_terms_days", Code::Invalid, json!({"payment_terms_days": 14}));
    refused(
        "payment_terms_days",
        Code::Forbidden,
        json!({"kind": "company", "reg_no": "99887766", "payment_terms_days": 45}),
    );
    refused("email", Code::Invalid, json!({"email": "jana"}));
}

#[test]
fn update_lists_changes_and_refuses_to_repeat_them() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let id = customer(&shop, "kind = 'person' and marketing_consent = 1");
    let change = json!({"id": id, "phone": "", "marketing_consent": false, "segment": "club", "expected_version": 1});
    let answer = shop.ok("customers_update", change);
    let changes = answer["result"]["changes"].as_array().unwrap();
    assert!(changes.contains(&json!({"field": "marketing_consent", "from": "yes", "to": "no"})), "{changes:?}");
    assert_eq!(answer["result"]["customer"]["version"], 2);
    let row: i64 = shop.sql(
        "select count(*) from customers where printf('CUS-%04d', id) = ? and phone is null and marketing_consent = 0",
        [&id],
    );
    assert_eq!(row, 1);
    shop.refused("customers_update", Code::State, json!({"id": id, "segment": "club"}));
    let refusal =
        shop.refused("customers_update", Code::Conflict, json!({"id": id, "segment": "retail", "expected_version": 1}));
    assert_eq!(refusal.current_version, Some(2));
}

#[test]
fn update_keeps_currency_and_email_safe() {
    let mut shop = TestShop::new();
    let refusal = shop.refused("customers_update", Code::State, json!({"id": "CUS-0008", "currency": "EUR"}));
    assert_eq!(refusal.field.as_deref(), Some("currency"));
    let other: String = shop.sql("select email from customers where id = 2", []);
    shop.refused("customers_update", Code::State, json!({"id": "CUS-0008", "email": other}));
    let terms = shop.ok("customers_update", json!({"id": "CUS-0008", "payment_terms_days": 45}));
    assert_eq!(terms["result"]["changes"][0]["to"], "45");
    let days: i64 = shop.sql("select payment_terms_days from customers where id = 8", []);
    assert_eq!(days, 45);
}

#[test]
fn an_added_address_can_become_the_default() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let new = json!({"id": "CUS-0001", "kind": "shipping", "address": address("Nová 7"), "make_default": true});
    let added = shop.ok("customers_address_add", new.clone());
    let number = added["result"]["address"].as_i64().unwrap();
    let default = "select count(*) from addresses where customer_id = 1 and kind = 'shipping' and is_default = 1";
    assert_eq!(shop.sql::<i64>(default, []), 1);
    let refusal = shop.refused("customers_address_add", Code::State, new);
    assert!(refusal.message.contains(&number.to_string()));
    let before: i64 = shop.sql("select min(id) from addresses where customer_id = 1 and kind = 'shipping'", []);
    let back = shop.ok("customers_update", json!({"id": "CUS-0001", "default_address": before}));
    assert_eq!(
        back["result"]["changes"],
        json!([{"field": "default_shipping", "from": number.to_string(), "to": before.to_string()}])
    );
    shop.refused("customers_update", Code::NotFound, json!({"id": "CUS-0002", "default_address": before}));
    shop.refused(
        "customers_address_add",
        Code::NotFound,
        json!({"id": "CUS-9999", "kind": "billing", "address": address("Nová 7")}),
    );
}

/// Two persons of the same currency, both with orders.
fn pair(shop: &TestShop) -> (String, String) {
    let ordered = "kind = 'person' and currency = 'CZK' and exists (select 1 from orders o where o.customer_id = c.id)";
    let kept = customer(shop, ordered);
    let other = customer(shop, &format!("{ordered} and printf('CUS-%04d', id) <> '{kept}'"));
    (kept, other)
}

fn count(shop: &TestShop, table: &str, id: &str) -> i64 {
    let sql = format!("select count(*) from {table} where printf('CUS-%04d', customer_id) = ?");
    shop.sql(&sql, [id])
}

#[test]
fn merge_moves_everything_and_closes_the_duplicate() {
    let mut shop = TestShop::with_role(Role::Manager);
    let (kept, other) = pair(&shop);
    let tables = ["orders", "invoices", "addresses"];
    let before = tables.map(|table| count(&shop, table, &kept) + count(&shop, table, &other));
    let answer = shop.ok(
        "customers_merge",
        json!({"id": kept, "duplicate_id": other, "reason": "same phone", "expected_version": 1, "duplicate_version": 1}),
    );
    assert_eq!(answer["result"]["customer"]["id"], kept);
    assert_eq!(tables.map(|table| count(&shop, table, &kept)), before);
    assert_eq!(tables.map(|table| count(&shop, table, &other)), [0, 0, 0]);
    let defaults = "select count(*) from addresses where is_default = 1 and printf('CUS-%04d', customer_id) = ?";
    assert_eq!(shop.sql::<i64>(defaults, [&kept]), 2);
    let closed = shop.ok("customers_get", json!({"id": other}));
    assert_eq!(closed["customer"]["merged_into"], json!(kept));
    assert_eq!(closed["history"][0]["tool"], "customers_merge");
    let sheet = shop.ok("customers_get", json!({"id": kept}));
    assert_eq!(sheet["merged_from"], json!([other]));
    let list = shop.ok("customers_list", json!({}));
    assert_eq!(list["total"], 79);
}

#[test]
fn a_merged_customer_takes_no_writes() {
    let mut shop = TestShop::new();
    let (kept, other) = pair(&shop);
    let merge = json!({"id": kept, "duplicate_id": other, "reason": "same phone"});
    shop.ok("customers_merge", merge.clone());
    for (tool, arguments) in [
        ("customers_merge", merge),
        ("customers_update", json!({"id": other, "phone": ""})),
        ("customers_address_add", json!({"id": other, "kind": "billing", "address": address("Nová 7")})),
        (
            "invoices_create",
            json!({"customer_id": other, "lines": [{"description": "Boot repair", "quantity": 1, "unit_cents": 100, "vat_percent": 21}]}),
        ),
    ] {
        let refusal = shop.refused(tool, Code::State, arguments);
        assert_eq!(refusal.hint, format!("use {kept}"), "{tool}");
    }
    let email: String = shop.sql("select email from customers where printf('CUS-%04d', id) = ?", [&other]);
    let refusal = shop.refused("customers_update", Code::State, json!({"id": kept, "email": email}));
    assert!(refusal.hint.contains("merged record"), "{}", refusal.hint);
}

#[test]
fn merge_refuses_what_does_not_belong_together() {
    let mut shop = TestShop::new();
    let (kept, other) = pair(&shop);
    let euro = customer(&shop, "kind = 'person' and currency = 'EUR'");
    let mut refused = |code: Code, duplicate: &str, version: i64| {
        let arguments =
            json!({"id": kept, "duplicate_id": duplicate, "duplicate_version": version, "reason": "same phone"});
        shop.refused("customers_merge", code, arguments)
    };
    refused(Code::Invalid, &kept, 1);
    refused(Code::State, &euro, 1);
    refused(Code::NotFound, "CUS-9999", 1);
    let conflict = refused(Code::Conflict, &other, 7);
    assert_eq!(conflict.field.as_deref(), Some("duplicate_version"));
}

#[test]
fn money_and_merging_take_a_manager() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let limit = json!({"cents": 100, "currency": "CZK"});
    shop.refused(
        "customers_credit_limit_set",
        Code::Forbidden,
        json!({"id": "CUS-0008", "limit": limit, "reason": "pays well"}),
    );
    shop.refused(
        "customers_merge",
        Code::Forbidden,
        json!({"id": "CUS-0001", "duplicate_id": "CUS-0002", "reason": "same phone"}),
    );
    let mut shop = TestShop::with_role(Role::Viewer);
    shop.refused("customers_create", Code::Forbidden, jana());
}

#[test]
fn a_new_limit_is_kept_with_its_reason_and_review() {
    let mut shop = TestShop::with_role(Role::Manager);
    let id = customer(&shop, TRUSTED);
    let sheet = shop.ok("customers_get", json!({"id": id}));
    let before = sheet["credit"]["limit_cents"].as_i64().unwrap();
    let limit = json!({"cents": before + 100_000, "currency": sheet["customer"]["currency"]});
    let set = json!({"id": id, "limit": limit, "reason": "pays on time", "review_on": "2027-05-27"});
    let answer = shop.ok("customers_credit_limit_set", set.clone());
    let result = &answer["result"];
    assert_eq!(result["before"]["limit_cents"], before);
    assert_eq!(result["after"]["limit_cents"], before + 100_000);
    let tasks = shop.ok("core_tasks_list", json!({"about": id}));
    assert!(tasks["items"].as_array().unwrap().iter().any(|task| task["id"] == result["task"]));
    let sheet = shop.ok("customers_get", json!({"id": id}));
    let summary = sheet["history"][0]["summary"].as_str().unwrap();
    assert!(summary.ends_with("pays on time"), "{summary}");
    shop.refused("customers_credit_limit_set", Code::State, set);
}

#[test]
fn old_debts_keep_a_limit_from_rising_but_not_from_falling() {
    let mut shop = TestShop::with_role(Role::Manager);
    let mut set =
        json!({"id": "CUS-0008", "limit": {"cents": 90_000_000, "currency": "CZK"}, "reason": "asked for it"});
    let refusal = shop.refused("customers_credit_limit_set", Code::State, set.clone());
    assert!(refusal.hint.contains("invoices_overdue_list"));
    set["limit"]["cents"] = json!(0);
    let lowered = shop.ok("customers_credit_limit_set", set.clone());
    assert!(lowered["result"]["follow_up"].as_str().unwrap().contains("above the limit"));
    set["limit"]["currency"] = json!("EUR");
    let refusal = shop.refused("customers_credit_limit_set", Code::Invalid, set);
    assert_eq!(refusal.field.as_deref(), Some("limit.currency"));
    let person = customer(&shop, "kind = 'person' and currency = 'CZK'");
    let limit = json!({"cents": 100, "currency": "CZK"});
    let refusal = shop.refused(
        "customers_credit_limit_set",
        Code::Invalid,
        json!({"id": person, "limit": limit, "reason": "asked for it"}),
    );
    assert_eq!(refusal.field.as_deref(), Some("limit.cents"));
}

#[test]
fn dry_runs_of_all_writes_store_nothing() {
    let mut shop = TestShop::new();
    let (kept, other) = pair(&shop);
    let before = shop.contents();
    let calls = [
        ("customers_create", jana()),
        ("customers_update", json!({"id": kept, "phone": ""})),
        ("customers_address_add", json!({"id": kept, "kind": "billing", "address": address("Nová 7")})),
        ("customers_merge", json!({"id": kept, "duplicate_id": other, "reason": "same phone"})),
        (
            "customers_credit_limit_set",
            json!({"id": "CUS-0008", "limit": {"cents": 0, "currency": "CZK"}, "reason": "late", "review_on": "2027-01-04"}),
        ),
    ];
    for (tool, mut arguments) in calls {
        arguments["dry_run"] = json!(true);
        assert_eq!(shop.ok(tool, arguments)["applied"], false, "{tool}");
        assert!(shop.contents() == before, "{tool} stored something");
    }
}

#[test]
fn a_currency_can_change_before_anything_is_owed_in_it() {
    let mut shop = TestShop::new();
    let mut new = jana();
    new["kind"] = json!("company");
    new["reg_no"] = json!("99887766");
    let made = shop.ok("customers_create", new);
    let id = &made["result"]["customer"]["id"];
    let limit = |cents: i64| json!({"id": id, "limit": {"cents": cents, "currency": "CZK"}, "reason": "new partner"});
    shop.ok("customers_credit_limit_set", limit(100));
    let change = json!({"id": id, "currency": "EUR"});
    let refusal = shop.refused("customers_update", Code::State, change.clone());
    assert!(refusal.hint.contains("customers_credit_limit_set"));
    shop.ok("customers_credit_limit_set", limit(0));
    let changed = shop.ok("customers_update", change);
    assert_eq!(changed["result"]["customer"]["currency"], "EUR");
}
