//! Every invoice tool, called as a client would, with its effect on the data.

use serde_json::{Value, json};

use crate::{ctx::Role, error::Code, testkit::TestShop};

/// Code of the first invoice for which the condition holds.
fn invoice(shop: &TestShop, condition: &str) -> String {
    let sql = format!("select printf('INV-%06d', id) from invoices i where {condition} order by id limit 1");
    shop.sql(&sql, [])
}

/// Code of the first order for which the condition holds.
fn order(shop: &TestShop, condition: &str) -> String {
    let sql = format!("select printf('ORD-%06d', id) from orders o where {condition} order by id limit 1");
    shop.sql(&sql, [])
}

const UNBILLED: &str = "status = 'confirmed' and not exists (select 1 from invoices i where i.order_id = o.id)";
const UNTOUCHED: &str = "kind = 'invoice' and status = 'issued' and paid_cents = 0";

/// Drafts an invoice by hand and issues it; the code comes back.
fn issued(shop: &mut TestShop, lines: Value) -> String {
    let made = shop.ok("invoices_create", json!({"customer_id": "CUS-0001", "lines": lines}));
    let id = made["result"]["invoice"]["id"].as_str().unwrap().to_owned();
    shop.ok("invoices_issue", json!({"id": id}));
    id
}

fn repair(unit_cents: i64, quantity: i64) -> Value {
    json!({"description": "Boot repair", "quantity": quantity, "unit_cents": unit_cents, "vat_percent": 21})
}

fn currency(shop: &TestShop) -> String {
    shop.sql("select currency from customers where id = 1", [])
}

fn cents(answer: &Value, field: &str) -> i64 {
    answer["amounts"][field].as_i64().unwrap()
}

/// Heads agree with lines, settled amounts with payments, orders with payments, and numbers have no gaps.
fn assert_books_agree(shop: &TestShop) {
    let wrong = [
        "select count(*) from invoices i where total_cents <> net_cents + vat_cents or (net_cents, vat_cents, total_cents) <>
             (select sum(net_cents), sum(vat_cents), sum(total_cents) from invoice_lines l where l.invoice_id = i.id)",
        "select count(*) from invoice_lines where total_cents <> quantity * unit_cents or total_cents <> net_cents + vat_cents",
        "select count(*) from invoices where status = 'issued' and abs(paid_cents) >= abs(total_cents)
             or status = 'paid' and abs(paid_cents) < abs(total_cents)",
        "select count(*) from orders o join (select o.id, coalesce(sum(p.amount_cents), 0) as paid from orders o
             left join payments p on p.order_id = o.id group by o.id) s on s.id = o.id
         where payment_status <> case when paid = 0 then 'unpaid' when paid < total_cents then 'partial' else 'paid' end
           and payment_status not in ('refunded', 'part_refunded')",
        "select count(*) - max(cast(substr(number, 5) as integer)) from invoices where number like '2026%'",
    ];
    for sql in wrong {
        assert_eq!(shop.sql::<i64>(sql, []), 0, "{sql}");
    }
}

#[test]
fn list_filters_and_sums_all_matches() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let page = shop.ok(
        "invoices_list",
        json!({"status": ["issued"], "country": "CZ", "sort": "open_cents", "direction": "asc", "limit": 3}),
    );
    let open = |at: usize| cents(&page["items"][at], "open_cents");
    assert!(open(0) <= open(1) && open(1) <= open(2));
    let sum = &page["sums"][0];
    assert_eq!((&sum["currency"], &sum["invoices"]), (&json!("CZK"), &page["total"]));
    let expected: i64 =
        shop.sql("select sum(total_cents - paid_cents) from invoices where status = 'issued' and currency = 'CZK'", []);
    assert_eq!(sum["open_cents"], expected);
    let notes = shop.ok("invoices_list", json!({"kind": "credit_note", "limit": 1}));
    assert_eq!(notes["total"], 18);
    let credited = shop.ok("invoices_list", json!({"is_credited": true}));
    assert_eq!(credited["total"], 18);
}

#[test]
fn get_finds_by_number_and_its_vat_adds_up() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let number: String = shop.sql("select number from invoices where status = 'issued' and paid_cents > 0 limit 1", []);
    let sheet = shop.ok("invoices_get", json!({"number": number}));
    let vat: i64 = sheet["vat"].as_array().unwrap().iter().map(|rate| rate["vat_cents"].as_i64().unwrap()).sum();
    assert_eq!(vat, cents(&sheet["invoice"], "vat_cents"));
    assert_eq!(sheet["payments"][0]["amount_cents"], sheet["invoice"]["amounts"]["paid_cents"]);
    assert_eq!(sheet["next_steps"][0], "invoices_payment_record");
    shop.refused("invoices_get", Code::NotFound, json!({"number": "2026999999"}));
    shop.refused("invoices_get", Code::NotFound, json!({"id": "INV-999999"}));
    shop.refused("invoices_get", Code::Invalid, json!({}));
}

#[test]
fn create_bills_an_order_once_and_to_the_cent() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let id = order(&shop, UNBILLED);
    let made = shop.ok("invoices_create", json!({"order_id": id}));
    let total: i64 = shop.sql("select total_cents from orders where printf('ORD-%06d', id) = ?", [&id]);
    assert_eq!(cents(&made["result"]["invoice"], "total_cents"), total);
    assert_books_agree(&shop);
    let refusal = shop.refused("invoices_create", Code::State, json!({"order_id": id}));
    assert!(refusal.message.contains("is billed by INV-"), "{}", refusal.message);
    shop.refused("invoices_create", Code::NotFound, json!({"order_id": "ORD-999999"}));
    let cancelled = order(&shop, "status = 'cancelled'");
    shop.refused("invoices_create", Code::State, json!({"order_id": cancelled}));
}

#[test]
fn discounts_of_an_order_keep_their_vat_rate() {
    let mut shop = TestShop::new();
    let id = order(&shop, UNBILLED);
    shop.ok("orders_discount_apply", json!({"id": id, "line": 1, "percent": 7, "reason": "scratch"}));
    shop.ok("orders_discount_apply", json!({"id": id, "percent": 13, "reason": "late"}));
    let made = shop.ok("invoices_create", json!({"order_id": id}));
    let lines = made["result"]["lines"].as_array().unwrap();
    let is_discount = |line: &&Value| line["total_cents"].as_i64().unwrap() < 0;
    assert_eq!(lines.iter().filter(is_discount).count(), 2);
    assert_books_agree(&shop);
}

#[test]
fn create_by_hand_computes_vat_per_rate() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let book = json!({"description": "Map of the hills", "quantity": 3, "unit_cents": 100, "vat_percent": 12});
    let made = shop.ok("invoices_create", json!({"customer_id": "CUS-0001", "lines": [repair(12_100, 1), book]}));
    assert_eq!(
        made["result"]["vat"],
        json!([
            {"percent": 21, "net_cents": 10_000, "vat_cents": 2100, "total_cents": 12_100},
            {"percent": 12, "net_cents": 268, "vat_cents": 32, "total_cents": 300}
        ])
    );
    let wrong = json!({"description": "Boot repair", "quantity": 1, "unit_cents": 1, "vat_percent": 20});
    let refusal = shop.refused("invoices_create", Code::Invalid, json!({"customer_id": "CUS-0001", "lines": [wrong]}));
    assert_eq!(refusal.field.as_deref(), Some("lines[0].vat_percent"));
}

#[test]
fn issue_takes_the_next_number_and_what_was_prepaid() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let id = invoice(&shop, "status = 'draft' and order_id in (select id from orders where payment_status = 'paid')");
    let answer = shop.ok("invoices_issue", json!({"id": id, "expected_version": 1}));
    let result = &answer["result"];
    assert_eq!(result["variable_symbol"], "2026000282");
    assert_eq!(result["invoice"]["status"], "paid");
    assert_eq!(result["taken_over_cents"], result["invoice"]["amounts"]["total_cents"]);
    assert_books_agree(&shop);
    let refusal = shop.refused("invoices_issue", Code::State, json!({"id": id}));
    assert!(refusal.hint.contains("invoices_credit_note_create"));
}

#[test]
fn issue_refuses_days_out_of_order_and_drafts_out_of_date() {
    let mut shop = TestShop::new();
    let id = order(&shop, UNBILLED);
    let made = shop.ok("invoices_create", json!({"order_id": id}));
    let draft = made["result"]["invoice"]["id"].clone();
    let refusal = shop.refused("invoices_issue", Code::Invalid, json!({"id": draft, "issued_on": "2026-10-01"}));
    assert_eq!(refusal.field.as_deref(), Some("issued_on"));
    shop.ok("orders_discount_apply", json!({"id": id, "percent": 10, "reason": "late"}));
    let refusal = shop.refused("invoices_issue", Code::State, json!({"id": draft}));
    assert!(refusal.hint.contains("invoices_create"));
}

#[test]
fn a_stale_version_is_a_conflict() {
    let mut shop = TestShop::new();
    let id = issued(&mut shop, json!([repair(1000, 1)]));
    let refusal = shop.refused(
        "invoices_cancel",
        Code::Conflict,
        json!({"id": id, "reason": "duplicate", "expected_version": 1}),
    );
    assert_eq!(refusal.current_version, Some(2));
}

#[test]
fn cancel_keeps_the_number_and_frees_the_order() {
    let mut shop = TestShop::with_role(Role::Manager);
    let id = invoice(&shop, UNTOUCHED);
    let answer = shop.ok("invoices_cancel", json!({"id": id, "reason": "wrong_data", "note": "branch"}));
    let result = &answer["result"];
    assert_eq!(result["invoice"]["status"], "cancelled");
    assert!(result["invoice"]["number"].is_string());
    assert_eq!(cents(&result["invoice"], "open_cents"), 0);
    let order_id = &result["invoice"]["order_id"];
    shop.ok("invoices_create", json!({"order_id": order_id}));
    assert_books_agree(&shop);
    let part_paid = invoice(&shop, "status = 'issued' and paid_cents > 0");
    let refusal = shop.refused("invoices_cancel", Code::State, json!({"id": part_paid, "reason": "duplicate"}));
    assert!(refusal.hint.contains("invoices_credit_note_create"));
}

#[test]
fn money_and_cancelling_take_a_manager() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let id = invoice(&shop, UNTOUCHED);
    shop.refused("invoices_cancel", Code::Forbidden, json!({"id": id, "reason": "duplicate"}));
    shop.refused("invoices_credit_note_create", Code::Forbidden, json!({"id": id, "reason": "other"}));
    let mut shop = TestShop::with_role(Role::Viewer);
    shop.refused("invoices_issue", Code::Forbidden, json!({"id": id}));
}

#[test]
fn a_credit_note_takes_back_pieces_once_and_lowers_what_is_open() {
    let mut shop = TestShop::with_role(Role::Manager);
    let id = issued(&mut shop, json!([repair(9999, 3)]));
    let lines = json!([{"line": 1, "quantity": 2}]);
    let answer = shop.ok("invoices_credit_note_create", json!({"id": id, "lines": lines, "reason": "returned"}));
    let result = &answer["result"];
    assert_eq!(result["set_off_cents"], 19_998);
    assert_eq!(result["credit_note"]["status"], "paid");
    assert_eq!(cents(&result["invoice"]["invoice"], "open_cents"), 9999);
    let refusal = shop.refused(
        "invoices_credit_note_create",
        Code::Invalid,
        json!({"id": id, "lines": lines, "reason": "returned"}),
    );
    assert_eq!(refusal.field.as_deref(), Some("lines[0].quantity"));
    let rest = shop.ok("invoices_credit_note_create", json!({"id": id, "reason": "other"}));
    assert_eq!(rest["result"]["invoice"]["invoice"]["status"], "paid");
    let left = "select sum(net_cents), 0 from invoices where printf('INV-%06d', id) = ?1
                or printf('INV-%06d', corrects_id) = ?1";
    assert_eq!(shop.sql::<i64>(left, [&id]), 0);
    shop.refused("invoices_credit_note_create", Code::State, json!({"id": id, "reason": "other"}));
    assert_books_agree(&shop);
}

#[test]
fn a_credit_note_by_amount_divides_over_the_rates() {
    let mut shop = TestShop::new();
    let map = json!({"description": "Map of the hills", "quantity": 1, "unit_cents": 10_000, "vat_percent": 12});
    let id = issued(&mut shop, json!([repair(20_000, 1), map]));
    let answer = shop.ok(
        "invoices_credit_note_create",
        json!({"id": id, "amount_cents": 3000, "reason": "discount", "note": "late"}),
    );
    let totals: Vec<i64> =
        answer["result"]["vat"].as_array().unwrap().iter().map(|rate| rate["total_cents"].as_i64().unwrap()).collect();
    assert_eq!(totals, [-2000, -1000]);
    let refusal = shop.refused(
        "invoices_credit_note_create",
        Code::Invalid,
        json!({"id": id, "amount_cents": 27_001, "reason": "discount"}),
    );
    assert!(refusal.hint.contains("27000"), "{}", refusal.hint);
    assert_books_agree(&shop);
}

#[test]
fn a_refund_settles_the_credit_note_of_its_order() {
    let mut shop = TestShop::with_role(Role::Manager);
    let id = invoice(
        &shop,
        "kind = 'invoice' and status = 'paid' and order_id in
             (select id from orders where status = 'delivered' and payment_status = 'paid')",
    );
    let sheet = shop.ok("invoices_get", json!({"id": id}));
    let order_id = sheet["invoice"]["order_id"].clone();
    shop.ok("orders_refund", json!({"id": order_id, "amount_cents": 1000, "reason": "goodwill"}));
    let note = json!({"id": id, "amount_cents": 1500, "reason": "discount"});
    let answer = shop.ok("invoices_credit_note_create", note);
    let result = &answer["result"];
    assert_eq!(result["refunded_cents"], 1000);
    let (note, currency) = (&result["credit_note"]["id"], &sheet["invoice"]["amounts"]["currency"]);
    let pay = json!({"invoice_id": note, "amount": {"cents": 500, "currency": currency}, "method": "bank_transfer"});
    let refusal = shop.refused("invoices_payment_record", Code::State, pay.clone());
    assert!(refusal.hint.contains("orders_refund"));
    shop.ok("orders_refund", json!({"id": order_id, "amount_cents": 500, "reason": "goodwill"}));
    let paid = shop.ok("invoices_payment_record", pay);
    assert_eq!(paid["result"]["invoice"]["status"], "paid");
    assert_eq!(paid["result"]["direction"], "out");
    assert_books_agree(&shop);
}

#[test]
fn paying_an_invoice_settles_its_order() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let id = invoice(&shop, &format!("{UNTOUCHED} and order_id is not null"));
    let sheet = shop.ok("invoices_get", json!({"id": id}));
    let currency = &sheet["invoice"]["amounts"]["currency"];
    let open = cents(&sheet["invoice"], "open_cents");
    let mut pay = json!({"invoice_id": id, "amount": {"cents": 100, "currency": currency}, "method": "bank_transfer",
                         "reference": "VS 1", "paid_on": "2026-11-26"});
    let first = shop.ok("invoices_payment_record", pay.clone());
    assert_eq!(first["result"]["order"]["payment_status"], "partial");
    let refusal = shop.refused("invoices_payment_record", Code::State, pay.clone());
    assert_eq!(refusal.field.as_deref(), Some("reference"));
    pay["reference"] = json!("VS 2");
    pay["amount"]["cents"] = json!(open);
    let refusal = shop.refused("invoices_payment_record", Code::Invalid, pay.clone());
    assert_eq!(refusal.field.as_deref(), Some("amount.cents"));
    pay["amount"]["cents"] = json!(open - 100);
    let last = shop.ok("invoices_payment_record", pay);
    assert_eq!(last["result"]["invoice"]["status"], "paid");
    assert_eq!(last["result"]["order"]["payment_status"], "paid");
    assert_books_agree(&shop);
}

#[test]
fn a_payment_in_advance_lets_the_order_be_confirmed() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let sku: String = shop.sql(
        "select v.sku from stock s join variants v on v.id = s.variant_id join products p on p.id = v.product_id
         where s.warehouse_id = 1 and s.on_hand - s.reserved >= 5 and p.status = 'active' order by v.id limit 1",
        [],
    );
    let made = shop.ok(
        "orders_create",
        json!({"customer_id": "CUS-0001", "lines": [{"sku": sku, "quantity": 1}], "payment_method": "card"}),
    );
    let made = &made["result"]["order"];
    let amount = json!({"cents": made["totals"]["total_cents"], "currency": made["totals"]["currency"]});
    let paid = shop.ok(
        "invoices_payment_record",
        json!({"order_id": made["id"], "amount": amount, "method": "card", "expected_version": 1}),
    );
    assert_eq!(paid["result"]["order"]["payment_status"], "paid");
    assert_eq!(paid["result"]["order"]["version"], 2);
    shop.ok("orders_status_change", json!({"id": made["id"], "to": "confirmed"}));
    let waiting = shop.ok("invoices_payments_list", json!({"is_unassigned": true, "order_id": made["id"]}));
    assert_eq!(waiting["total"], 1);
    assert_books_agree(&shop);
}

#[test]
fn an_order_with_an_open_invoice_is_paid_through_it() {
    let mut shop = TestShop::new();
    let id: String =
        shop.sql("select printf('ORD-%06d', order_id) from invoices where status = 'issued' order by id limit 1", []);
    let amount = json!({"cents": 100, "currency": "CZK"});
    let refusal = shop.refused(
        "invoices_payment_record",
        Code::State,
        json!({"order_id": id, "amount": amount, "method": "cash"}),
    );
    assert!(refusal.hint.contains("INV-"), "{}", refusal.hint);
    let draft = invoice(&shop, "status = 'draft'");
    shop.refused(
        "invoices_payment_record",
        Code::State,
        json!({"invoice_id": draft, "amount": amount, "method": "cash"}),
    );
}

#[test]
fn payments_list_filters_and_sums() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let page = shop.ok(
        "invoices_payments_list",
        json!({"methods": ["bank_transfer"], "paid": {"from": "2026-06-01"}, "amount": {"min_cents": 100_000, "currency": "CZK"}, "limit": 2}),
    );
    let expected: i64 = shop.sql(
        "select sum(amount_cents) from payments where method = 'bank_transfer' and paid_on >= '2026-06-01'
         and currency = 'CZK' and amount_cents >= 100000",
        [],
    );
    assert_eq!(page["sums"][0]["amount_cents"], expected);
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    let none = shop.ok("invoices_payments_list", json!({"direction": "out"}));
    assert_eq!(none["total"], 0);
}

#[test]
fn reminders_grow_one_level_at_a_time() {
    let mut shop = TestShop::with_role(Role::Clerk);
    let id = invoice(
        &shop,
        "status = 'issued' and due_on < '2026-11-27' and not exists (select 1 from reminders r where r.invoice_id = i.id)",
    );
    let refusal = shop.refused("invoices_reminder_send", Code::Invalid, json!({"id": id, "level": 2}));
    assert_eq!(refusal.field.as_deref(), Some("level"));
    let sent = shop.ok("invoices_reminder_send", json!({"id": id}));
    assert_eq!(sent["result"]["reminder"]["level"], 1);
    assert_eq!(sent["result"]["next_from"], "2026-12-04");
    let refusal = shop.refused("invoices_reminder_send", Code::State, json!({"id": id}));
    assert!(refusal.hint.contains("2026-12-04"), "{}", refusal.hint);
    let twice = invoice(&shop, "(select max(level) from reminders r where r.invoice_id = i.id) = 2");
    let last =
        shop.ok("invoices_reminder_send", json!({"id": twice, "level": 3, "channel": "post", "fee_cents": 5000}));
    assert_eq!(last["result"]["history"].as_array().unwrap().len(), 3);
    assert!(last["result"]["next_from"].is_null());
    shop.refused("invoices_reminder_send", Code::State, json!({"id": twice}));
}

#[test]
fn only_overdue_invoices_are_reminded() {
    let mut shop = TestShop::new();
    for condition in
        ["status = 'issued' and due_on >= '2026-11-27'", "status = 'paid' and kind = 'invoice'", "kind = 'credit_note'"]
    {
        let id = invoice(&shop, condition);
        shop.refused("invoices_reminder_send", Code::State, json!({"id": id}));
    }
}

#[test]
fn overdue_list_ages_debts_and_knows_who_can_be_reminded() {
    let mut shop = TestShop::new();
    let page = shop.ok("invoices_overdue_list", json!({"limit": 100}));
    let items = page["items"].as_array().unwrap();
    let days = |at: usize| items[at]["invoice"]["days_overdue"].as_i64().unwrap();
    assert!(days(0) >= days(1));
    let n_aged: i64 = page["aging"].as_array().unwrap().iter().map(|row| row["invoices"].as_i64().unwrap()).sum();
    assert_eq!(page["total"], n_aged);
    assert_eq!(items[0]["age"], "over_90");
    let id = items[0]["invoice"]["id"].clone();
    let before = shop.ok("invoices_overdue_list", json!({"remindable": true}));
    shop.ok("invoices_reminder_send", json!({"id": id}));
    let after = shop.ok("invoices_overdue_list", json!({"remindable": true}));
    let total = |page: &Value| page["total"].as_i64().unwrap();
    assert_eq!(total(&after), total(&before) - 1);
    let sent = shop.ok("invoices_overdue_list", json!({"levels": [3]}));
    assert_eq!(sent["items"][0]["invoice"]["id"], id);
    shop.refused("invoices_overdue_list", Code::Invalid, json!({"min_days": 30, "max_days": 10}));
}

#[test]
fn dry_runs_of_all_writes_store_nothing() {
    let mut shop = TestShop::new();
    let currency = currency(&shop);
    let open = issued(&mut shop, json!([repair(1000, 2)]));
    let (draft, unbilled) = (invoice(&shop, "status = 'draft'"), order(&shop, UNBILLED));
    let overdue = invoice(&shop, "status = 'issued' and due_on < '2026-11-27'");
    let amount = json!({"cents": 100, "currency": currency});
    let before = shop.contents();
    let calls = [
        ("invoices_create", json!({"order_id": unbilled})),
        ("invoices_issue", json!({"id": draft})),
        ("invoices_cancel", json!({"id": open, "reason": "duplicate"})),
        ("invoices_credit_note_create", json!({"id": open, "reason": "other"})),
        ("invoices_payment_record", json!({"invoice_id": open, "amount": amount, "method": "cash"})),
        ("invoices_reminder_send", json!({"id": overdue})),
    ];
    for (tool, mut arguments) in calls {
        arguments["dry_run"] = json!(true);
        assert_eq!(shop.ok(tool, arguments)["applied"], false, "{tool}");
        assert!(shop.contents() == before, "{tool} stored something");
    }
}

#[test]
fn a_whole_credit_note_mirrors_an_invoice_of_an_order() {
    let mut shop = TestShop::new();
    let id = invoice(
        &shop,
        "kind = 'invoice' and status = 'paid' and not exists (select 1 from invoices n where n.corrects_id = i.id)
         and exists (select 1 from invoice_lines l where l.invoice_id = i.id and total_cents < 0)",
    );
    let answer = shop.ok("invoices_credit_note_create", json!({"id": id, "reason": "returned"}));
    let sheet = shop.ok("invoices_get", json!({"id": id}));
    for field in ["net_cents", "vat_cents", "total_cents"] {
        assert_eq!(cents(&answer["result"]["credit_note"], field), -cents(&sheet["invoice"], field), "{field}");
    }
    assert_eq!(answer["result"]["credit_note"]["status"], "issued");
    assert!(answer["result"]["invoice"]["follow_up"].as_str().unwrap().contains("orders_refund"));
    assert_books_agree(&shop);
}

#[test]
fn a_reminder_by_post_goes_to_the_billing_address() {
    let mut shop = TestShop::new();
    let id = invoice(&shop, "status = 'issued' and due_on < '2026-11-27'");
    let sent = shop.ok("invoices_reminder_send", json!({"id": id, "channel": "post", "dry_run": true}));
    let street: String = shop.sql(
        "select street from addresses a join invoices i on i.customer_id = a.customer_id
         where printf('INV-%06d', i.id) = ? and a.kind = 'billing' and a.is_default = 1",
        [&id],
    );
    let recipient = sent["result"]["recipient"].as_str().unwrap();
    assert!(recipient.contains(&street), "{recipient}");
}
