//! Reports over products, stock and parcels.

use serde_json::{Value, json};

use crate::{ctx::Role, error::Code, testkit::TestShop};

fn year() -> Value {
    json!({"from": "2025-11-01", "to": "2026-10-31"})
}

/// Conditions on `o` for sales of that year.
const SALES: &str = "o.status <> 'cancelled' and substr(o.placed_at, 1, 10) between '2025-11-01' and '2026-10-31'";

fn sum(rows: &Value, at: &str) -> i64 {
    let rows = rows.as_array().unwrap();
    rows.iter().map(|row| row.pointer(at).unwrap().as_i64().unwrap()).sum()
}

#[test]
fn top_products_are_ranked_by_pieces_as_sql_ranks_them() {
    let mut shop = TestShop::with_role(Role::Viewer);
    let report =
        shop.ok("analytics_top_products", json!({"period": year(), "by": "pieces", "limit": 3, "compare": "none"}));
    let sql = format!(
        "select sum(i.quantity) from order_items i join orders o on o.id = i.order_id
         join variants v on v.id = i.variant_id where {SALES} group by v.product_id order by 1 desc limit 1"
    );
    assert_eq!(report["items"][0]["pieces"], shop.sql::<i64>(&sql, []));
    assert_eq!(report["items"].as_array().unwrap().len(), 3);
    let variants = shop.ok(
        "analytics_top_products",
        json!({"period": year(), "level": "variant", "category": "camping", "limit": 100}),
    );
    let items = variants["items"].as_array().unwrap();
    assert!(items.iter().all(|item| {
        let category = item["category"].as_str().unwrap();
        item["sku"].is_string() && ["tents", "sleeping", "cooking"].contains(&category)
    }));
    assert_eq!(items.last().unwrap()["cumulative_percent"], 100.0);
    let refusal = shop.refused("analytics_top_products", Code::NotFound, json!({"category": "boats"}));
    assert_eq!(refusal.field.as_deref(), Some("category"));
}

#[test]
fn categories_add_up_on_both_levels() {
    let mut shop = TestShop::new();
    let pieces: i64 = shop.sql(
        &format!("select sum(i.quantity) from order_items i join orders o on o.id = i.order_id where {SALES}"),
        [],
    );
    for level in ["sub", "main"] {
        let report = shop.ok("analytics_category_performance", json!({"period": year(), "level": level}));
        assert_eq!(sum(&report["categories"], "/pieces/value"), pieces, "{level}");
        assert_eq!(
            sum(&report["categories"], "/revenue_cents/value"),
            report["revenue_cents"]["value"].as_i64().unwrap()
        );
    }
}

#[test]
fn margin_is_revenue_without_vat_less_cost_and_takes_a_manager() {
    let mut shop = TestShop::with_role(Role::Manager);
    let report =
        shop.ok("analytics_margin_report", json!({"period": year(), "group_by": "segment", "sort": "revenue"}));
    let sql = format!(
        "select sum((i.quantity - i.refunded_quantity) * i.cost_cents) from order_items i
         join orders o on o.id = i.order_id where {SALES}"
    );
    let cost = shop.sql::<i64>(&sql, []);
    assert_eq!(report["cost_cents"]["value"], cost);
    let value = |name: &str| report[name]["value"].as_i64().unwrap();
    assert_eq!(value("revenue_cents") - value("cost_cents"), value("margin_cents"));
    let revenue: Vec<i64> =
        report["groups"].as_array().unwrap().iter().map(|row| row["revenue_cents"].as_i64().unwrap()).collect();
    assert!(revenue.is_sorted_by(|a, b| a >= b));
    let mut clerk = TestShop::with_role(Role::Clerk);
    let refusal = clerk.refused("analytics_margin_report", Code::Forbidden, json!({}));
    assert!(refusal.message.contains("takes role manager"));
}

#[test]
fn turnover_starts_and_ends_with_the_stock_of_the_movements() {
    let mut shop = TestShop::new();
    let report = shop.ok("analytics_stock_turnover", json!({"group_by": "warehouse", "compare": "year_ago"}));
    let stock: i64 =
        shop.sql("select sum(s.on_hand * v.cost_cents) from stock s join variants v on v.id = s.variant_id", []);
    assert_eq!(report["total"]["closing_cents"], stock);
    assert_eq!(sum(&report["groups"], "/turns/closing_cents"), stock);
    let sold: i64 = shop.sql(
        "select -sum(delta) from stock_movements where kind in ('sale', 'return') and substr(at, 1, 10) between '2026-08-30' and '2026-11-27'",
        [],
    );
    assert_eq!(report["total"]["sold_pieces"], sold);
    let brno =
        shop.ok("analytics_stock_turnover", json!({"warehouse": "BRN", "category": "gear", "group_by": "supplier"}));
    assert!(brno["total"]["closing_cents"].as_i64().unwrap() < stock);
}

#[test]
fn dead_stock_has_not_sold_where_it_lies() {
    let mut shop = TestShop::new();
    let report = shop.ok("analytics_dead_stock", json!({"days": 60, "warehouse": "OVA", "limit": 100}));
    let expected: i64 = shop.sql(
        "select count(*) from stock s where s.warehouse_id = 3 and s.on_hand > 0 and not exists
             (select 1 from stock_movements m where m.variant_id = s.variant_id and m.warehouse_id = 3
              and m.kind in ('sale', 'receipt') and substr(m.at, 1, 10) >= '2026-09-28')",
        [],
    );
    assert!(expected > 0);
    assert_eq!(report["rows"], expected);
    let values: Vec<i64> =
        report["items"].as_array().unwrap().iter().map(|item| item["value_cents"].as_i64().unwrap()).collect();
    assert!(values.is_sorted_by(|a, b| a >= b));
    shop.refused("analytics_dead_stock", Code::Invalid, json!({"days": 5}));
    shop.refused("analytics_dead_stock", Code::NotFound, json!({"category": "boats"}));
}

#[test]
fn forecast_averages_whole_weeks_and_compares_with_the_stock() {
    let mut shop = TestShop::new();
    let report = shop.ok("analytics_forecast_demand", json!({"category": "boots", "seasonal": false, "weeks": 2}));
    let pieces: i64 = shop.sql(
        "select sum(i.quantity) from order_items i join orders o on o.id = i.order_id join variants v on v.id = i.variant_id
         join product_categories x on x.product_id = v.product_id and x.is_main = 1
         where x.category_id = 7 and o.status <> 'cancelled' and substr(o.placed_at, 1, 10) between '2026-09-28' and '2026-11-22'",
        [],
    );
    assert_eq!(sum(&report["history"], "/pieces"), pieces);
    let mean = (pieces as f64 / 8.0 * 100.0).round() / 100.0;
    assert_eq!(report["mean_pieces"], mean);
    assert_eq!(report["weeks"][1]["pieces"], mean);
    assert_eq!(report["weeks"][0]["start"], "2026-11-23");
    let on_hand: i64 = shop.sql(
        "select sum(s.on_hand) from stock s join variants v on v.id = s.variant_id
         join product_categories x on x.product_id = v.product_id and x.is_main = 1 where x.category_id = 7",
        [],
    );
    assert_eq!(report["stock"]["on_hand"], on_hand);
}

#[test]
fn forecast_knows_the_season_only_with_last_year_and_one_target() {
    let mut shop = TestShop::new();
    let report = shop.ok("analytics_forecast_demand", json!({}));
    assert_eq!(report["target"], "all");
    assert_ne!(report["weeks"][0]["factor"], 1.0);
    let long = shop.ok("analytics_forecast_demand", json!({"window": 16}));
    assert_eq!(long["weeks"][0]["factor"], 1.0);
    let sku: String = shop.sql("select sku from variants limit 1", []);
    shop.ok("analytics_forecast_demand", json!({"sku": sku, "warehouse": "BRN"}));
    shop.refused("analytics_forecast_demand", Code::Invalid, json!({"sku": sku, "category": "boots"}));
    shop.refused("analytics_forecast_demand", Code::NotFound, json!({"product_id": "PRD-999"}));
}

#[test]
fn carriers_are_judged_by_their_parcels() {
    let mut shop = TestShop::new();
    let report = shop.ok("analytics_carrier_performance", json!({"period": year()}));
    let parcels = "from shipments where status <> 'cancelled' and substr(handed_over_at, 1, 10) between '2025-11-01' and '2026-10-31'";
    let n: i64 = shop.sql(&format!("select count(*) {parcels}"), []);
    let cost: i64 = shop.sql(&format!("select sum(cost_cents) {parcels}"), []);
    assert_eq!(report["total"]["shipments"]["value"], n);
    assert_eq!(report["total"]["cost_cents"], cost);
    assert_eq!(sum(&report["carriers"], "/service/shipments/value"), n);
    let on_time: f64 = shop.sql(
        &format!(
            "select round(100.0 * sum(status = 'delivered' and substr(delivered_at, 1, 10) <= expected_on) / count(*), 2)
             {parcels} and (status = 'delivered' or status <> 'returned' and expected_on < '2026-11-27')"
        ),
        [],
    );
    assert_eq!(report["total"]["on_time"]["percent"], on_time);
    let refusal = shop.refused("analytics_carrier_performance", Code::NotFound, json!({"carrier": "nobody"}));
    assert_eq!(refusal.field.as_deref(), Some("carrier"));
    let one = shop.ok("analytics_carrier_performance", json!({"carrier": "dpx", "country": "CZ"}));
    assert!(one["carriers"].as_array().unwrap().len() <= 1);
}
