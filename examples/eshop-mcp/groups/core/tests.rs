//! Every core tool, called as a client would.

use serde_json::json;

use crate::{ctx::Role, error::Code, testkit::TestShop};

#[test]
fn whoami_tells_the_acting_person() {
    let answer = TestShop::with_role(Role::Clerk).ok("core_whoami", json!({}));
    assert_eq!(answer, json!({"login": "hana", "name": "Hana Králová", "role": "clerk"}));
}

#[test]
fn shop_info_gives_today_and_the_people() {
    let answer = TestShop::new().ok("core_shop_info", json!({}));
    assert_eq!(answer["today"], "2026-11-27");
    assert_eq!(answer["people"].as_array().unwrap().len(), 6);
}

#[test]
fn search_finds_records_by_name_code_and_sku() {
    let mut shop = TestShop::new();
    let first = |shop: &mut TestShop, query: &str| shop.ok("core_search", json!({"query": query}))["hits"][0].clone();
    assert_eq!(first(&mut shop, "ORD-000212")["code"], "ORD-000212");
    assert_eq!(first(&mut shop, "COO-011")["label"], "Plamen Spider stove");
    let people = shop.ok("core_search", json!({"query": "horák", "kind": "customer", "limit": 2}));
    assert!(people["hits"].as_array().unwrap().iter().all(|hit| hit["kind"] == "customer"));
}

#[test]
fn search_takes_percent_signs_literally() {
    let answer = TestShop::new().ok("core_search", json!({"query": "%%"}));
    assert_eq!(answer, json!({"hits": []}));
}

#[test]
fn currency_is_converted_at_the_fixed_rate() {
    let answer = TestShop::new()
        .ok("core_currency_convert", json!({"amount": {"cents": 10_000, "currency": "EUR"}, "to": "CZK"}));
    assert_eq!(answer, json!({"amount": {"cents": 243_500, "currency": "CZK"}, "rate": 24.35}));
}

#[test]
fn vat_rates_are_given_by_country() {
    let answer = TestShop::new().ok("core_vat_rates_list", json!({"country": "CZ"}));
    assert_eq!(answer["rates"].as_array().unwrap().len(), 3);
    assert_eq!(answer["rates"][0]["percent"], 21);
}

#[test]
fn workdays_skip_weekends_and_holidays() {
    let mut shop = TestShop::new();
    let by_count = shop.ok("core_calendar_workdays", json!({"from": "2026-12-23", "add": 3}));
    assert_eq!(by_count["to"], "2026-12-30");
    let by_day = shop.ok("core_calendar_workdays", json!({"from": "2026-12-23", "to": "2026-12-30"}));
    assert_eq!(by_day["workdays"], 3);
    shop.refused("core_calendar_workdays", Code::Invalid, json!({}));
}

#[test]
fn a_note_is_listed_and_logged() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let written = shop.ok("core_note_create", json!({"about": "ORD-000300", "body": "Ring twice."}));
    assert_eq!(written["applied"], true);
    let notes = shop.ok("core_notes_list", json!({"about": "ORD-000300"}));
    assert_eq!(notes["items"][0]["body"], "Ring twice.");
    let log = shop.ok("core_activity_list", json!({"about": "ORD-000300", "since": "2026-11-27"}));
    assert_eq!(log["items"][0]["tool"], "core_note_create");
}

#[test]
fn a_task_is_listed_by_assignee() {
    let mut shop = TestShop::new();
    shop.ok("core_task_create", json!({"title": "Count tents", "assignee": "petr", "due_on": "2026-11-28"}));
    let tasks = shop.ok("core_tasks_list", json!({"assignee": "petr", "status": "open", "due_by": "2026-11-28"}));
    let titles: Vec<_> = tasks["items"].as_array().unwrap().iter().map(|t| &t["title"]).collect();
    assert_eq!(titles, ["Return faulty stoves to the supplier", "Count tents"]);
}

#[test]
fn a_dry_run_answers_in_the_same_shape_and_stores_nothing() {
    let mut shop = TestShop::new();
    let before = shop.contents();
    let answer = shop.ok("core_task_create", json!({"title": "Count tents", "dry_run": true}));
    assert_eq!(answer["applied"], false);
    assert_eq!(answer["result"]["title"], "Count tents");
    assert_eq!(shop.contents(), before);
}

#[test]
fn a_viewer_may_not_write_and_learns_which_role_may() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let refusal = shop.refused("core_note_create", Code::Forbidden, json!({"about": "ORD-000300", "body": "x"}));
    assert!(refusal.message.contains("takes role clerk"), "{}", refusal.message);
}

#[test]
fn bad_arguments_name_the_field_the_value_and_what_is_allowed() {
    let mut shop = TestShop::new();
    let refusal = shop.refused("core_tasks_list", Code::Invalid, json!({"limit": 500}));
    assert_eq!(refusal.field.as_deref(), Some("limit"));
    assert!(refusal.message.contains("500") && refusal.message.contains("100"), "{}", refusal.message);
    let refusal = shop.refused("core_tasks_list", Code::Invalid, json!({"colour": "red"}));
    assert_eq!(refusal.field.as_deref(), Some("colour"));
    assert_eq!(refusal.hint, "parameters of this tool: status, assignee, about, due_by, limit");
    let refusal = shop.refused("core_task_create", Code::Invalid, json!({"title": "abc", "assignee": "bob"}));
    assert!(refusal.hint.contains("petr"), "{}", refusal.hint);
}

#[test]
fn an_unknown_record_is_not_found() {
    let refusal = TestShop::new().refused("core_notes_list", Code::NotFound, json!({"about": "ORD-999999"}));
    assert_eq!(refusal.field.as_deref(), Some("about"));
}
