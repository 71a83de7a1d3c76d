//! Reports over customers and their payments.

use serde_json::{Value, json};

use crate::{ctx::Role, error::Code, testkit::TestShop};

fn sum(rows: &Value, at: &str) -> i64 {
    let rows = rows.as_array().unwrap();
    rows.iter().map(|row| row.pointer(at).unwrap().as_i64().unwrap()).sum()
}

#[test]
fn top_customers_are_those_with_most_orders() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let period = json!({"from": "2025-11-01", "to": "2026-10-31"});
    let report =
        shop.ok("analytics_top_customers", json!({"period": period, "by": "orders", "limit": 100, "compare": "none"}));
    let sales =
        "from orders where status <> 'cancelled' and substr(placed_at, 1, 10) between '2025-11-01' and '2026-10-31'";
    let most: i64 = shop.sql(&format!("select count(*) {sales} group by customer_id order by 1 desc limit 1"), []);
    let n: i64 = shop.sql(&format!("select count(distinct customer_id) {sales}"), []);
    assert_eq!(report["items"][0]["orders"], most);
    assert_eq!(report["customers"]["value"], n);
    assert_eq!(sum(&report["items"], "/net_cents/value"), report["net_cents"]["value"].as_i64().unwrap());
}

#[test]
fn cohorts_hold_every_new_customer_once() {
    let mut shop = TestShop::new();
    let report = shop
        .ok("analytics_customer_cohorts", json!({"period": {"from": "2025-11-01", "to": "2026-11-27"}, "months": 3}));
    let new: i64 = shop.sql(
        "select count(*) from (select min(placed_at) as first from orders where status <> 'cancelled' group by customer_id)
         where first >= '2025-11-01'",
        [],
    );
    assert_eq!(sum(&report["cohorts"], "/customers"), new);
    let cohort = &report["cohorts"][0];
    let month = cohort["month"].as_str().unwrap();
    assert_eq!(cohort["months"][0]["retention_percent"], 100.0);
    let next: i64 = shop.sql(
        "with firsts as (select customer_id, min(placed_at) as first from orders where status <> 'cancelled' group by customer_id)
         select count(distinct o.customer_id) from orders o join firsts f on f.customer_id = o.customer_id
         where o.status <> 'cancelled' and substr(f.first, 1, 7) = ?1
           and substr(o.placed_at, 1, 7) = substr(date(?1 || '-01', '+1 month'), 1, 7)",
        [month],
    );
    assert_eq!(cohort["months"][1]["active"], next);
    let wholesale = shop.ok("analytics_customer_cohorts", json!({"segment": "wholesale"}));
    assert!(sum(&wholesale["cohorts"], "/customers") <= 8);
}

#[test]
fn ltv_adds_what_is_expected_to_what_came() {
    let mut shop = TestShop::new();
    let report = shop.ok("analytics_customer_ltv", json!({"limit": 100, "horizon_months": 6}));
    for customer in report["customers"].as_array().unwrap() {
        let value = |name: &str| customer[name].as_i64().unwrap();
        let expected = if customer["is_active"] == true { value("monthly_cents") * 6 } else { 0 };
        assert_eq!(value("expected_cents"), expected);
        assert_eq!(value("value_cents"), value("net_cents") + expected);
    }
    let with_orders: i64 = shop.sql("select count(distinct customer_id) from orders where status <> 'cancelled'", []);
    assert_eq!(sum(&report["segments"], "/customers"), with_orders);
    let one = shop.ok("analytics_customer_ltv", json!({"customer_id": "CUS-0001"}));
    assert_eq!(one["customers"].as_array().unwrap().len(), 1);
    assert_eq!(one["segments"].as_array().unwrap().len(), 3);
    shop.refused("analytics_customer_ltv", Code::NotFound, json!({"customer_id": "CUS-9999"}));
}

#[test]
fn churn_measures_days_away_against_the_usual_gap() {
    let mut shop = TestShop::new();
    let report = shop.ok("analytics_churn_risk", json!({"min_orders": 3, "min_risk": "low", "limit": 100}));
    let known: i64 = shop.sql(
        "select count(*) from (select 1 from orders where status <> 'cancelled' group by customer_id having count(*) >= 3)",
        [],
    );
    assert_eq!(sum(&report["levels"], "/customers"), known);
    for customer in report["customers"].as_array().unwrap() {
        let number = |name: &str| customer[name].as_f64().unwrap();
        let times = number("days_away") / number("usual_gap_days");
        assert!((times - number("times_usual")).abs() < 0.01);
        let risk = match times {
            t if t >= 3.0 => "lost",
            t if t >= 2.0 => "high",
            t if t >= 1.0 => "watch",
            _ => "low",
        };
        assert_eq!(customer["risk"], risk);
    }
    let lost = shop.ok("analytics_churn_risk", json!({"min_risk": "lost"}));
    let customers = lost["customers"].as_array().unwrap();
    assert!(customers.iter().all(|customer| customer["risk"] == "lost"));
}

#[test]
fn payment_delay_counts_late_days_and_open_amounts() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let period = json!({"from": "2025-11-01", "to": "2026-11-27"});
    let report =
        shop.ok("analytics_payment_delay", json!({"period": period, "group_by": "payment_method", "compare": "none"}));
    let invoices = "from invoices i where kind = 'invoice' and status in ('issued', 'paid') and issued_on between '2025-11-01' and '2026-11-27'";
    let n: i64 = shop.sql(&format!("select count(*) {invoices}"), []);
    assert_eq!(report["invoices"]["value"], n);
    let late: f64 = shop.sql(
        &format!(
            "select round(avg(julianday((select max(paid_on) from payments p where p.invoice_id = i.id)) - julianday(due_on)), 2)
             {invoices} and paid_cents >= total_cents"
        ),
        [],
    );
    assert_eq!(report["delay"]["average_days"], late);
    let n_open: i64 = shop.sql(&format!("select count(*) {invoices} and paid_cents < total_cents"), []);
    assert_eq!(sum(&report["aging"], "/invoices"), n_open);
    assert_eq!(sum(&report["aging"], "/cents"), sum(&report["groups"], "/open_cents"));
    let customers = shop.ok("analytics_payment_delay", json!({"group_by": "customer", "limit": 1}));
    assert!(customers["groups"][0]["name"].is_string());
}
