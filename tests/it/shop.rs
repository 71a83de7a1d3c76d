//! The bundled shop behind the gate: coverage, what sets of skills cost, and the tour.

use std::{collections::BTreeMap, path::PathBuf, process::Command};

use gatekey::tokens::Tokenizer;
use serde_json::{Value, json};

use crate::support::{
    example,
    proxy::{Proxy, gatekey, names, text_of, upstream_names},
    root,
};

fn config() -> PathBuf {
    root().join("examples/eshop/gatekey.toml")
}

fn shop() -> Proxy {
    let mut command = gatekey();
    command.arg("proxy").arg("--config").arg(config()).env("ESHOP_MCP", example("eshop-mcp"));
    let mut proxy = Proxy::spawn(command);
    proxy.initialize();
    proxy
}

fn check(config: &std::path::Path) -> (i32, String) {
    let output =
        gatekey().arg("check").arg("--config").arg(config).env("ESHOP_MCP", example("eshop-mcp")).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Every definition of the shop's registry, as the server itself lists it.
fn registry() -> Vec<Value> {
    let mut server = Proxy::spawn(Command::new(example("eshop-mcp")));
    server.initialize();
    server.list()
}

#[test]
fn the_shops_map_covers_every_tool_and_a_missing_prefix_is_found_with_its_tools() {
    let (code, said) = check(&config());
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("95 tools, 7 skills: 0 errors, 0 warnings"), "{said}");

    let scratch = tempfile::tempdir().unwrap();
    let map = std::fs::read_to_string(root().join("gating-maps/eshop.toml")).unwrap();
    let lacking = map.replace("\"analytics_\"", "");
    assert_ne!(map, lacking);
    std::fs::write(scratch.path().join("eshop.toml"), lacking).unwrap();
    let text = std::fs::read_to_string(config()).unwrap();
    let text = text
        .replace("../../gating-maps/", "")
        .replace("../../skills-fixtures", &root().join("skills-fixtures").to_string_lossy());
    let broken = scratch.path().join("gatekey.toml");
    std::fs::write(&broken, text).unwrap();
    let (code, said) = check(&broken);
    assert_eq!(code, 1, "{said}");
    let uncovered: Vec<&str> = said.lines().filter(|line| line.contains("gate-uncovered-tool")).collect();
    assert_eq!(uncovered.len(), 19, "{said}");
    assert!(uncovered.iter().all(|line| line.contains("`analytics_")), "{said}");
}

#[test]
fn the_shops_sets_cost_what_the_table_says() {
    let registry = registry();
    let tokens = |tool: &Value| Tokenizer::O200kBase.count(&tool.to_string());
    let mut by_group: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for tool in &registry {
        let group = tool["name"].as_str().unwrap_or_default().split('_').next().unwrap_or_default();
        let entry = by_group.entry(group).or_default();
        *entry = (entry.0 + 1, entry.1 + tokens(tool));
    }
    let count = |groups: &[&str]| groups.iter().map(|group| by_group[group].0).sum::<usize>();
    let expected =
        [("core", 11), ("orders", 13), ("store", 19), ("deliverylists", 8), ("balikobot", 8), ("analytics", 19)];
    for (group, n_tools) in expected {
        assert_eq!(count(&[group]), n_tools, "{group}");
    }
    assert_eq!(count(&["invoices", "customers"]), 17);
    assert_eq!(registry.len(), 95);

    let whole: usize = registry.iter().map(tokens).sum();
    let percent = |groups: &[&str]| {
        let part: usize = groups.iter().chain(&["core"]).map(|group| by_group[group].1).sum();
        100 * part / whole
    };
    let orders = ["orders", "customers", "store", "invoices", "deliverylists", "balikobot"];
    let shares = format!("none {} balikobot {} orders {}", percent(&[]), percent(&["balikobot"]), percent(&orders));
    assert!(percent(&[]) < 6, "{shares}");
    assert!(percent(&["balikobot"]) < 14, "{shares}");
    assert!((70..88).contains(&percent(&orders)), "{shares}");
    assert_eq!(percent(&[&orders[..], &["analytics"]].concat()), 100);

    let mut proxy = shop();
    let loaded = proxy.call("skill_load", json!({"name": "eshop-orders"}));
    let opened = loaded["structuredContent"]["tools"].as_array().cloned().unwrap_or_default();
    assert_eq!(opened.len(), 65);
    // Hosts show the model one of the two.
    for form in [text_of(&loaded).to_owned(), loaded["structuredContent"].to_string()] {
        let cost = Tokenizer::O200kBase.count(&form);
        assert!(cost <= 6_000, "loading eshop-orders costs {cost} tokens");
    }
    let in_list: usize =
        registry.iter().filter(|tool| opened.iter().any(|open| open["name"] == tool["name"])).map(tokens).sum();
    assert!(in_list > 60_000, "the same tools cost {in_list} tokens in the list");
}

#[test]
fn the_catalogue_is_within_its_budget_wherever_it_stands() {
    let mut proxy = shop();
    let listed = proxy.list();
    let load = listed.iter().find(|tool| tool["name"] == "skill_load").unwrap();
    let description = load["description"].as_str().unwrap();
    let name = &load["inputSchema"]["properties"]["name"];
    assert!(description.len() <= 2_048, "{} bytes", description.len());
    let count = |text: &str| Tokenizer::O200kBase.count(text);
    let core = std::fs::read_to_string(root().join("skills-fixtures/eshop/eshop-core/SKILL.md")).unwrap();
    let catalogue = count(description) + count(name["description"].as_str().unwrap());
    assert!(catalogue <= 1_500 + count(&core) + 100, "{catalogue} tokens");
    let both = format!("{description}{name}");
    for skill in
        ["eshop-orders", "eshop-store", "eshop-invoices", "eshop-deliverylists", "eshop-balikobot", "eshop-analytics"]
    {
        assert!(
            name["enum"].as_array().unwrap().contains(&json!(skill)) && both.contains(&format!("{skill}: ")),
            "{skill}"
        );
    }
    assert!(both.contains("Always active, `eshop-core`"), "the core skill's body is there");
    assert_eq!(upstream_names(&listed).len(), 11);
    assert!(names(&listed)[6..].iter().all(|name| name.starts_with("core_")), "ours first, then core");
}

#[test]
fn the_shop_is_read_and_written_by_key_and_by_name() {
    let mut proxy = shop();
    let closed = proxy.call("store_stock_list", json!({}));
    assert_eq!(closed["structuredContent"]["skill"], "eshop-store", "the most specific of three skills is named");
    let key = proxy.load("eshop-store")["key"].clone();
    let listed =
        proxy.call("tool_call_read", json!({"key": key, "name": "store_products_list", "arguments": {"limit": 1}}));
    assert_ne!(listed["isError"], true, "{listed}");
    let refused = proxy.call("tool_call_read", json!({"key": key, "name": "store_stock_adjust", "arguments": {}}));
    assert_eq!(refused["structuredContent"]["code"], "not_read_only");
    let wrong = proxy.call("tool_call_write", json!({"key": key, "name": "store_stock_adjust", "arguments": {}}));
    assert_eq!(wrong["structuredContent"]["code"], "invalid_arguments", "{wrong}");
    let by_name = proxy.call("store_warehouses_list", json!({}));
    assert_ne!(by_name["isError"], true, "{by_name}");
    let other = proxy.modern_call("tool_call_read", json!({"key": key, "name": "orders_list", "arguments": {}}));
    assert_eq!(other["structuredContent"]["code"], "inactive", "a key opens its own skill only");
}

#[test]
fn without_a_config_the_shop_becomes_a_skill_for_each_of_its_modules() {
    let mut command = gatekey();
    command.args(["proxy", "--upstream"]).arg(example("eshop-mcp"));
    let mut proxy = Proxy::spawn(command);
    proxy.initialize();
    let listed = proxy.list();
    let load = listed.iter().find(|tool| tool["name"] == "skill_load").unwrap();
    let skills = load["inputSchema"]["properties"]["name"]["enum"].as_array().unwrap();
    let modules = ["analytics", "balikobot", "core", "customers", "deliverylists", "invoices", "orders", "store"];
    assert_eq!(*skills, modules.map(|module| json!(format!("eshop-mcp-{module}"))));
    assert_eq!(proxy.load("eshop-mcp-store")["tools"].as_array().map(Vec::len), Some(19));
}

#[test]
fn the_tour_shows_the_gate_at_work() {
    let output = Command::new(example("tour")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    for part in [
        "Tools in the list: skill_load, ",
        "✗ `orders_list` is closed. Call skill_load with name \"eshop-orders\" first",
        "opens 65 tools.",
        "→ tool_call_read",
        "all 95 tools of the shop",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
}
