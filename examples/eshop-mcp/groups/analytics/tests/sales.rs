//! Reports over orders and visits.

use serde_json::{Value, json};

use crate::{ctx::Role, error::Code, testkit::TestShop};

/// October 2026, with the 31 days before it to compare.
fn october() -> Value {
    json!({"from": "2026-10-01", "to": "2026-10-31"})
}

/// Net of a month's sales in CZK, computed by SQL alone.
fn net(shop: &TestShop, from: &str, to: &str, condition: &str) -> i64 {
    let sql = format!(
        "select coalesce(sum(cast(round(o.total_cents * 1.0 * k.czk_micro / 1000000) as integer)
             - cast(round(o.refunded_cents * 1.0 * k.czk_micro / 1000000) as integer)), 0)
         from orders o join currencies k on k.code = o.currency
         where o.status <> 'cancelled' and substr(o.placed_at, 1, 10) between ? and ? and {condition}"
    );
    shop.sql(&sql, [from, to])
}

fn sum(rows: &Value, at: &str) -> i64 {
    let rows = rows.as_array().unwrap();
    rows.iter().map(|row| row.pointer(at).unwrap().as_i64().unwrap()).sum()
}

#[test]
fn summary_agrees_with_the_orders_and_its_groups_add_up() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let report = shop.ok("analytics_revenue_summary", json!({"period": october(), "group_by": "country"}));
    let expected = net(&shop, "2026-10-01", "2026-10-31", "true");
    let totals = &report["totals"];
    assert_eq!(totals["net_cents"]["value"], expected);
    assert_eq!(report["scope"]["compared"], "2026-08-31/2026-09-30");
    let before = net(&shop, "2026-08-31", "2026-09-30", "true");
    assert_eq!(totals["net_cents"]["previous"], before);
    assert_eq!(sum(&report["groups"], "/net_cents/value"), expected);
    let value = |name: &str| totals[name]["value"].as_i64().unwrap();
    assert_eq!(value("goods_cents") - value("discounts_cents") + value("shipping_cents"), value("gross_cents"));
    let new: i64 = shop.sql(
        "select count(*) from (select min(placed_at) as first from orders where status <> 'cancelled' group by customer_id)
         where substr(first, 1, 7) = '2026-10'",
        [],
    );
    assert_eq!(totals["new_customers"]["value"], new);
}

#[test]
fn summary_filters_and_converts() {
    let mut shop = TestShop::new();
    let arguments = json!({"period": october(), "filter": {"channel": "eshop"}, "compare": "none"});
    let czk = shop.ok("analytics_revenue_summary", arguments.clone());
    let expected = net(&shop, "2026-10-01", "2026-10-31", "o.channel = 'eshop'");
    assert_eq!(czk["totals"]["net_cents"], json!({"value": expected}));
    let mut arguments = arguments;
    arguments["currency"] = json!("EUR");
    let eur = shop.ok("analytics_revenue_summary", arguments);
    let rate: i64 = shop.sql("select czk_micro from currencies where code = 'EUR'", []);
    let converted = expected as f64 * 1e6 / rate as f64;
    let found = eur["totals"]["net_cents"]["value"].as_f64().unwrap();
    assert!((found - converted).abs() < 50.0, "{found} {converted}");
}

#[test]
fn an_empty_period_has_zeros_and_no_quotients() {
    let mut shop = TestShop::new();
    let period = json!({"from": "2020-01-01", "to": "2020-01-31"});
    let report = shop.ok("analytics_revenue_summary", json!({"period": period, "group_by": "channel"}));
    assert_eq!(report["totals"]["average_order_cents"], json!({"value": 0, "previous": 0}));
    assert_eq!(report["groups"], json!([]));
    for tool in [
        "analytics_orders_funnel",
        "analytics_top_products",
        "analytics_top_customers",
        "analytics_category_performance",
        "analytics_basket_size",
        "analytics_conversion_by_channel",
        "analytics_returns_rate",
        "analytics_stock_turnover",
        "analytics_margin_report",
        "analytics_customer_cohorts",
        "analytics_payment_delay",
        "analytics_carrier_performance",
        "analytics_anomalies",
    ] {
        shop.ok(tool, json!({"period": period}));
    }
}

#[test]
fn periods_are_refused_the_wrong_way_round_and_too_long() {
    let mut shop = TestShop::new();
    let mut refused = |period: Value| {
        let arguments = json!({"period": period});
        let refusal = shop.refused("analytics_revenue_summary", Code::Invalid, arguments);
        refusal.field.unwrap()
    };
    assert_eq!(refused(json!({"from": "2026-11-02", "to": "2026-11-01"})), "period.to");
    assert_eq!(refused(json!({"from": "2024-11-02", "to": "2026-11-01"})), "period.from");
}

#[test]
fn series_has_every_step_and_sums_to_the_summary() {
    let mut shop = TestShop::new();
    let expected = net(&shop, "2026-10-01", "2026-10-31", "true");
    for (grain, n_points) in [("day", 31), ("week", 5), ("month", 1)] {
        let report = shop.ok("analytics_revenue_timeseries", json!({"period": october(), "grain": grain}));
        let points = report["points"].as_array().unwrap();
        assert_eq!(points.len(), n_points, "{grain}");
        assert_eq!(sum(&report["points"], "/net_cents"), expected);
        assert_eq!(points.last().unwrap()["cumulative_cents"], expected);
        let before = net(&shop, "2026-08-31", "2026-09-30", "true");
        assert_eq!(sum(&report["points"], "/previous_cents"), before, "{grain}");
    }
    let smooth = shop.ok("analytics_revenue_timeseries", json!({"period": october(), "smooth": 30, "compare": "none"}));
    let points = smooth["points"].as_array().unwrap();
    assert!(points[28].get("smooth_cents").is_none());
    let mean = points[29]["cumulative_cents"].as_i64().unwrap() / 30;
    assert!((points[29]["smooth_cents"].as_i64().unwrap() - mean).abs() <= 1);
}

#[test]
fn funnel_narrows_and_ends_with_the_delivered() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let report = shop.ok("analytics_orders_funnel", json!({"period": october()}));
    let stages = report["stages"].as_array().unwrap();
    let n = |at: usize| stages[at]["orders"]["value"].as_i64().unwrap();
    let placed: i64 = shop.sql("select count(*) from orders where substr(placed_at, 1, 7) = '2026-10'", []);
    let delivered: i64 = shop.sql(
        "select count(*) from orders where substr(placed_at, 1, 7) = '2026-10' and status in ('delivered', 'returned')",
        [],
    );
    assert_eq!((n(0), n(5)), (placed, delivered));
    assert!((0..5).all(|at| n(at) >= n(at + 1)));
    assert_eq!(stages[5]["stage"], "delivered");
    assert!(stages[5]["median_hours"].as_f64().unwrap() > 0.0);
    assert_eq!(sum(&report["now"], "/orders"), placed);
}

#[test]
fn baskets_fall_into_sizes_and_pairs_are_counted() {
    let mut shop = TestShop::new();
    let year = json!({"from": "2025-11-01", "to": "2026-10-31"});
    let report = shop.ok("analytics_basket_size", json!({"period": year, "min_together": 1, "limit": 100}));
    let orders = report["orders"]["value"].as_i64().unwrap();
    assert_eq!(sum(&report["sizes"], "/orders"), orders);
    let pair = &report["pairs"][0];
    let together: i64 = shop.sql(
        "select count(distinct a.order_id) from order_items a join variants va on va.id = a.variant_id
         join order_items b on b.order_id = a.order_id join variants vb on vb.id = b.variant_id
         join orders o on o.id = a.order_id
         where printf('PRD-%03d', va.product_id) = ? and printf('PRD-%03d', vb.product_id) = ? and o.status <> 'cancelled'
           and substr(o.placed_at, 1, 10) between '2025-11-01' and '2026-10-31'",
        [pair["first"].as_str().unwrap(), pair["second"].as_str().unwrap()],
    );
    assert_eq!(pair["orders"], together);
}

#[test]
fn conversion_follows_visits_to_orders() {
    let mut shop = TestShop::new();
    let report =
        shop.ok("analytics_conversion_by_channel", json!({"period": october(), "channels": ["paid", "email"]}));
    let paid = &report["channels"][0];
    assert_eq!(paid["channel"], "paid");
    let sessions: i64 =
        shop.sql("select sum(sessions) from visits where channel = 'paid' and substr(day, 1, 7) = '2026-10'", []);
    let orders: i64 =
        shop.sql("select count(*) from orders where source = 'paid' and substr(placed_at, 1, 7) = '2026-10'", []);
    assert_eq!(paid["steps"]["sessions"]["value"], sessions);
    assert_eq!(paid["steps"]["orders"]["value"], orders);
    let expected = (orders as f64 / sessions as f64 * 10_000.0).round() / 100.0;
    assert_eq!(paid["steps"]["conversion"]["percent"], expected);
    assert_eq!(
        sum(&report["channels"], "/steps/sessions/value"),
        report["total"]["sessions"]["value"].as_i64().unwrap()
    );
}

#[test]
fn returns_count_refunded_pieces_and_reasons() {
    let mut shop = TestShop::new();
    let year = json!({"from": "2025-11-01", "to": "2026-10-31"});
    let report = shop.ok("analytics_returns_rate", json!({"period": year, "group_by": "category", "min_pieces": 1}));
    let (sold, returned): (i64, i64) = {
        let of = |column: &str| {
            let sql = format!(
                "select sum(i.{column}) from order_items i join orders o on o.id = i.order_id
                 where o.status <> 'cancelled' and substr(o.placed_at, 1, 10) between '2025-11-01' and '2026-10-31'"
            );
            shop.sql(&sql, [])
        };
        (of("quantity"), of("refunded_quantity"))
    };
    assert_eq!(report["pieces_sold"]["value"], sold);
    assert_eq!(report["pieces_returned"]["value"], returned);
    assert_eq!(sum(&report["groups"], "/returned"), returned);
    let n_refunds: i64 = shop.sql(
        "select count(*) from refunds r join orders o on o.id = r.order_id
         where o.status <> 'cancelled' and substr(o.placed_at, 1, 10) between '2025-11-01' and '2026-10-31'",
        [],
    );
    assert_eq!(sum(&report["reasons"], "/refunds"), n_refunds);
}

#[test]
fn anomalies_find_the_clicks_that_brought_no_orders() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let report = shop.ok("analytics_anomalies", json!({"measures": ["sessions"], "channels": ["paid"]}));
    let days: Vec<&str> =
        report["items"].as_array().unwrap().iter().map(|item| item["day"].as_str().unwrap()).collect();
    for day in ["2026-07-28", "2026-07-29", "2026-07-30", "2026-07-31"] {
        assert!(days.contains(&day), "{days:?}");
    }
    assert_eq!(days.len(), 4, "{days:?}");
    let top = &report["items"][0];
    assert!(top["score"].as_f64().unwrap() > 5.0);
    assert_eq!(top["value"]["value"], 155);
    assert!(top["reading"].as_str().unwrap().starts_with("clicks that bring"));
    let calm =
        shop.ok("analytics_anomalies", json!({"measures": ["sessions"], "channels": ["paid"], "threshold": 20.0}));
    assert_eq!(calm["found"], 0);
    let all = shop.ok("analytics_anomalies", json!({}));
    assert!(all["found"].as_i64().unwrap() >= 4);
}
