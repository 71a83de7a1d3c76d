//! What holds for every tool of every group.

use serde_json::{Map, Value};

use crate::{
    groups::{GROUPS, entries},
    tool::{Effect, Entry, NONE},
};

/// All tools that the shop is to have, by group; descriptions may name only these.
const NAMES: &[(&str, &str)] = &[
    (
        "core",
        "whoami shop_info search currency_convert vat_rates_list calendar_workdays activity_list notes_list note_create tasks_list task_create",
    ),
    (
        "orders",
        "list get search timeline create update status_change item_add item_remove discount_apply cancel refund split",
    ),
    (
        "invoices",
        "list get create issue cancel credit_note_create payment_record payments_list reminder_send overdue_list",
    ),
    ("customers", "list get create update merge address_add credit_limit_set"),
    (
        "store",
        "products_list product_get product_create product_update product_archive variants_list variant_update categories_list category_assign prices_list price_set stock_list stock_get stock_adjust stock_transfer stock_reserve warehouses_list suppliers_list reorder_suggest",
    ),
    ("deliverylists", "list get create item_set pick_start confirm cancel print"),
    (
        "balikobot",
        "carriers_list branches_search shipments_list shipment_get shipment_create shipment_cancel label_get track",
    ),
    (
        "analytics",
        "revenue_summary revenue_timeseries orders_funnel top_products top_customers category_performance basket_size conversion_by_channel returns_rate stock_turnover dead_stock margin_report customer_cohorts customer_ltv churn_risk payment_delay carrier_performance forecast_demand anomalies",
    ),
];

fn names_of(group: &str) -> Vec<String> {
    let (_, names) = NAMES.iter().find(|(name, _)| *name == group).unwrap();
    names.split(' ').map(|name| format!("{group}_{name}")).collect()
}

#[test]
fn names_are_the_agreed_ones_in_a_fixed_order() {
    let mut expected: Vec<String> = GROUPS.iter().flat_map(|(group, _)| names_of(group)).collect();
    expected.sort();
    let found: Vec<String> = entries().iter().map(|e| e.spec.name.to_owned()).collect();
    assert_eq!(found, expected);
}

#[test]
fn descriptions_have_four_parts_and_name_only_real_tools() {
    let all: Vec<String> = NAMES.iter().flat_map(|(group, _)| names_of(group)).collect();
    for Entry { spec, .. } in entries() {
        for part in [spec.does, spec.when, spec.effects, spec.limits] {
            assert!(!part.is_empty(), "{}", spec.name);
            let words = part.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
            for word in words.filter(|w| NAMES.iter().any(|(g, _)| w.starts_with(&format!("{g}_")))) {
                assert!(all.iter().any(|name| name == word), "{}: {word}", spec.name);
            }
        }
        assert!(all.iter().any(|n| n != spec.name && spec.when.contains(n)), "{} names no alternative", spec.name);
        let is_read = matches!(spec.effect, Effect::Read);
        assert_eq!(is_read, spec.effects == NONE, "{}", spec.name);
    }
}

#[test]
fn parameters_have_descriptions_and_examples_that_fit() {
    for entry in entries() {
        let root = entry.definition.input_schema.as_ref();
        assert_eq!(root["additionalProperties"], false, "{}", entry.spec.name);
        parameters(entry.spec.name, root, root);
    }
}

fn parameters(path: &str, schema: &Map<String, Value>, root: &Map<String, Value>) {
    for (name, parameter) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = format!("{path}.{name}");
        let target = target(parameter, root);
        let member = |key: &str| parameter.get(key).or_else(|| target.get(key));
        assert!(member("description").is_some(), "{path} has no description");
        let examples = member("examples").and_then(Value::as_array);
        let examples = examples.unwrap_or_else(|| panic!("{path} has no example"));
        let mut schema = parameter.clone();
        schema["$defs"] = root.get("$defs").cloned().unwrap_or_else(|| serde_json::json!({}));
        for example in examples {
            if let Err(error) = jsonschema::validate(&schema, example) {
                panic!("{path}: {error}");
            }
        }
        let items = target.get("items").map(|items| self::target(items, root));
        for nested in [Some(target), items].into_iter().flatten() {
            parameters(&path, nested.as_object().unwrap(), root);
        }
    }
}

fn target<'a>(schema: &'a Value, root: &'a Map<String, Value>) -> &'a Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => &root["$defs"][reference.strip_prefix("#/$defs/").unwrap()],
        None => schema,
    }
}
