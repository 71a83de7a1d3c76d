//! `gatekey budget`: counts that are those of Python's tiktoken, the shop's table, its forms, and what they leave out.

use std::{fs, path::Path, process::Output};

use gatekey::tokens::Tokenizer;
use serde_json::{Value, json};

use crate::support::{
    cases::Case,
    example,
    proxy::{PATIENCE, Proxy, gatekey, modern_meta},
    root, wait_until,
};

/// `gatekey budget` over the bundled shop, at a fixed time.
fn shop(arguments: &[&str]) -> Output {
    let mut command = gatekey();
    command.arg("budget").arg("--config").arg(root().join("examples/eshop/gatekey.toml")).args(arguments);
    command.env("ESHOP_MCP", example("eshop-mcp")).env("SOURCE_DATE_EPOCH", "1790000000").output().unwrap()
}

fn said(output: &Output) -> String {
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    assert_eq!(stderr, "", "nothing but the report where nobody looks");
    stdout.into_owned()
}

fn budget(arguments: &[&str]) -> Value {
    let envelope: Value = serde_json::from_str(&said(&shop(&[arguments, &["--json"]].concat()))).unwrap();
    assert_eq!([&envelope["schema"], &envelope["kind"]], [&json!(1), &json!("report.budget")]);
    envelope["data"].clone()
}

#[test]
fn tokens_are_those_of_pythons_tiktoken() {
    let lines = fs::read_to_string(root().join("tests/fixtures/tokens/strings.jsonl")).unwrap();
    let mut wrong = Vec::new();
    for line in lines.lines() {
        let known: Value = serde_json::from_str(line).unwrap();
        let text = known["text"].as_str().unwrap();
        for tokenizer in [Tokenizer::O200kBase, Tokenizer::Cl100kBase] {
            let n_tokens = tokenizer.count(text);
            if known[tokenizer.to_string()] != n_tokens {
                wrong.push(format!("{tokenizer} of {text:?}: {n_tokens}, not {}", known[tokenizer.to_string()]));
            }
        }
    }
    assert_eq!(lines.lines().count(), 1_000);
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_shops_budget_is_the_one_that_the_product_promises() {
    let text = said(&shop(&[]));
    insta::with_settings!({snapshot_path => root().join("snapshots"), prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("budget-eshop", text);
    });

    // Set, tools, saved: the table of the shop's own report.
    let promised = [
        ("none", 11, 95.0),
        ("eshop-balikobot", 19, 89.0),
        ("eshop-deliverylists", 19, 84.0),
        ("eshop-store", 30, 79.0),
        ("eshop-analytics", 30, 76.0),
        ("eshop-invoices", 28, 69.0),
        ("eshop-orders", 76, 20.0),
        ("all", 95, 0.0),
    ];
    let found = budget(&[]);
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.len(), promised.len());
    for (row, (set, n_tools, saved)) in rows.iter().zip(promised) {
        assert_eq!((&row["set"], &row["tools"]), (&json!(set), &json!(n_tools)));
        assert!((row["saved_percent"].as_f64().unwrap() - saved).abs() <= 6.0, "{row}");
    }
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for line in text.lines().skip(3).take(promised.len()) {
        let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        let of_window = 4;
        let told: Vec<&str> =
            cells.iter().enumerate().filter(|(at, _)| *at != of_window).map(|(_, cell)| *cell).collect();
        let told = format!("| {} |", told.join(" | "));
        assert!(readme.contains(&told), "the README has another row than {told}");
    }
    for start in found["start"].as_array().unwrap() {
        let (list, full) = (start["list"].as_u64().unwrap(), found["full"]["tokens"].as_u64().unwrap());
        assert!(100 * list <= 6 * full, "{start}");
        let parts = ["meta_tools", "catalogue", "core_body", "core_tools", "instructions"];
        assert_eq!(parts.iter().map(|part| start[*part].as_u64().unwrap()).sum::<u64>(), start["total"], "{start}");
    }
}

#[test]
fn the_start_is_what_a_client_of_the_real_proxy_gets() {
    let mut command = gatekey();
    command.arg("proxy").arg("--config").arg(root().join("examples/eshop/gatekey.toml"));
    command.env("ESHOP_MCP", example("eshop-mcp"));
    let mut proxy = Proxy::spawn(command);
    let greeted = proxy.initialize();
    // A busy machine starts the shop only after the first list.
    wait_until("the core tools are listed", PATIENCE, || proxy.list().len() > 11);
    let legacy = proxy.result("tools/list", json!({}));
    let discovered = proxy.result("server/discover", json!({"_meta": modern_meta()}));
    let modern = proxy.result("tools/list", json!({"_meta": modern_meta()}));
    let budget = budget(&[]);
    for (era, greeting, list) in [("legacy", greeted, legacy), ("modern", discovered, modern)] {
        let start = budget["start"].as_array().unwrap().iter().find(|start| start["era"] == era).unwrap();
        let tools: Vec<String> = list["tools"].as_array().unwrap().iter().map(Value::to_string).collect();
        let list = Tokenizer::O200kBase.count(&tools.join(","));
        let instructions = Tokenizer::O200kBase.count(greeting["instructions"].as_str().unwrap());
        assert_eq!([&start["list"], &start["instructions"]], [&json!(list), &json!(instructions)], "{era}");
    }
}

#[test]
fn chosen_sets_stand_between_the_skills_and_all() {
    let found = budget(&["--set", "eshop-orders+eshop-analytics", "--set", "eshop-store+eshop-core+eshop-balikobot"]);
    let sets: Vec<&str> = found["rows"].as_array().unwrap().iter().map(|row| row["set"].as_str().unwrap()).collect();
    assert_eq!(sets[7..], ["eshop-orders+eshop-analytics", "eshop-store+eshop-balikobot", "all"]);
    assert_eq!(found["rows"][7]["tools"], 95);
    assert_eq!(found["rows"][7]["saved_percent"], 0.0);

    let wrong = shop(&["--set", "eshop-order+eshop-store"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("did you mean `eshop-orders`?"));
}

#[test]
fn csv_has_a_line_for_each_set_and_says_where_it_comes_from() {
    let csv = said(&shop(&["--format", "csv", "--set", "eshop-orders+eshop-analytics", "--tokenizer", "cl100k_base"]));
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 10);
    assert_eq!(lines[0][0], "set");
    let saved = lines[0].iter().position(|name| *name == "saved_percent").unwrap();
    assert_eq!((lines[1][0], lines[8][0]), ("none", "eshop-orders+eshop-analytics"));
    assert_eq!(lines[8][saved], "0.0");
    for line in &lines[1..] {
        assert_eq!(line.len(), lines[0].len());
        assert_eq!(line[12..], ["cl100k_base", "false", "live", "2026-09-21T14:13:20Z"]);
    }
}

#[test]
fn an_estimate_is_called_one_in_every_form() {
    for form in ["table", "markdown", "html"] {
        let said = said(&shop(&["--format", form, "--tokenizer", "bytes"]));
        assert!(said.contains("an estimate, no tokenizer"), "{said}");
        assert!(said.contains("live from the upstreams, 2026-09-21T14:13:20Z"), "{said}");
    }
    assert_eq!(budget(&["--tokenizer", "bytes"])["is_estimate"], true);
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let page = said(&shop(&["--format", "html"]));
    let low = page.to_lowercase();
    let outside = [
        "http:",
        "https:",
        "//",
        "url(",
        "<script",
        "@import",
        "@font-face",
        "src=",
        "href=",
        "<link",
        "<iframe",
        "<img",
    ];
    for outside in outside {
        assert!(!low.contains(outside), "`{outside}` in {page}");
    }
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("default-src 'none'"));
    assert!(page.contains("<dt>eshop-orders</dt>") && page.contains("<td>eshop-orders</td>"));
}

#[test]
fn names_of_others_are_text_in_every_form() {
    let mut case = Case::new("many");
    let server = case.folder.join("server.py");
    let odd = "a|b,\"<script>x</script>";
    case.servers.insert(odd.into(), json!({"command": "python3", "args": [server, "--tool", "t"]}));
    let config = case.clients_config();
    let shown = |form: &str| {
        let output = gatekey().args(["budget", "--format", form, "--config"]).arg(&config).output().unwrap();
        said(&output)
    };
    assert!(!shown("html").contains("<script"));
    assert!(shown("csv").contains("\"a|b,\"\"<script>x</script>\",1,"));
    assert!(shown("markdown").contains("| a\\|b,"));
}

#[test]
fn two_budgets_are_compared_for_a_pull_request() {
    let scratch = tempfile::tempdir().unwrap();
    let old = scratch.path().join("old.json");
    let written = said(&shop(&["--json", "--output", old.to_str().unwrap()]));
    assert_eq!(written.trim(), "");
    let same = said(&shop(&["--compare", old.to_str().unwrap()]));
    assert!(same.contains("No set changes. 8 as before."), "{same}");

    let mut envelope: Value = serde_json::from_str(&fs::read_to_string(&old).unwrap()).unwrap();
    let rows = envelope["data"]["rows"].as_array_mut().unwrap();
    rows[1]["tools"] = json!(18);
    rows[1]["list_tokens"] = json!(10_000);
    rows[2]["set"] = json!("eshop-gone");
    fs::write(&old, envelope.to_string()).unwrap();
    let changed = said(&shop(&["--compare", old.to_str().unwrap()]));
    assert!(changed.contains("| eshop-balikobot | 18 → 19 (+1, +5.6 %) | 10,000 → "), "{changed}");
    assert!(
        changed.contains("| eshop-deliverylists (new) |") && changed.contains("| eshop-gone (gone) |"),
        "{changed}"
    );
    assert!(changed.contains("6 as before"), "{changed}");

    fs::write(&old, "{}").unwrap();
    assert_eq!(shop(&["--compare", old.to_str().unwrap()]).status.code(), Some(2));
    assert_eq!(shop(&["--compare", "nowhere.json"]).status.code(), Some(2));
    assert_eq!(shop(&["--compare", old.to_str().unwrap(), "--format", "html"]).status.code(), Some(2));
}

#[test]
fn a_server_that_is_down_is_told_of_and_the_others_are_counted() {
    let mut case = Case::new("many");
    let server = case.folder.join("server.py");
    case.servers.insert("up".into(), json!({"command": "python3", "args": [server, "--tool", "t"]}));
    case.servers.insert("down".into(), json!({"command": "/nonexistent"}));
    let output = gatekey().args(["budget", "--json", "--config"]).arg(case.clients_config()).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(envelope["data"]["full"]["tools"], 1);
    assert_eq!(envelope["diagnostics"][0]["code"], "upstream-unreachable");
    assert!(Path::new(&case.folder).is_dir());
}

#[test]
fn what_is_recorded_is_counted_without_any_upstream() {
    let scratch = tempfile::tempdir().unwrap();
    let lock = scratch.path().join("gatekey.lock");
    let mut command = gatekey();
    command.arg("lock").arg("--config").arg(root().join("examples/eshop/gatekey.toml")).arg("--lock").arg(&lock);
    assert!(command.env("ESHOP_MCP", example("eshop-mcp")).output().unwrap().status.success());
    let live = budget(&[]);
    let mut command = gatekey();
    command.args(["budget", "--json", "--offline"]).arg("--lock").arg(&lock).env("ESHOP_MCP", "/nonexistent");
    command.arg("--config").arg(root().join("examples/eshop/gatekey.toml"));
    let envelope: Value = serde_json::from_str(&said(&command.output().unwrap())).unwrap();
    let offline = &envelope["data"];
    assert_eq!([&live["source"], &offline["source"]], ["live", "lock"]);
    for part in ["rows", "start", "tasks"] {
        assert_eq!(live[part], offline[part], "{part}");
    }

    let missing = shop(&["--offline", "--lock", "nowhere.lock"]);
    assert_eq!(missing.status.code(), Some(3));
}

#[test]
fn what_proxies_sent_stands_beside_the_estimate() {
    let scratch = tempfile::tempdir().unwrap();
    let config = root().join("examples/eshop/gatekey.toml");
    let command = |name: &str| {
        let mut command = gatekey();
        command.arg(name).arg("--config").arg(&config).env("XDG_STATE_HOME", scratch.path());
        command.env("ESHOP_MCP", example("eshop-mcp"));
        command
    };
    let mut proxy = Proxy::spawn(command("proxy"));
    let greeted = proxy.initialize();
    wait_until("the core tools are listed", PATIENCE, || proxy.list().len() > 11);
    let loaded = proxy.raw_call("skill_load", r#"{"name":"eshop-store"}"#);
    let result = proxy.raw_call("store_warehouses_list", "{}");
    proxy.call("orders_get", json!({"id": "secret-of-a-customer"}));
    proxy.close();
    assert!(proxy.ended(PATIENCE).success());

    let file = scratch.path().join("gatekey/sent.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains("secret") && !text.contains("store_") && !text.contains("eshop"), "{text}");
    let output = command("budget").args(["--json", "--measured"]).output().unwrap();
    let envelope: Value = serde_json::from_str(&said(&output)).unwrap();
    let measured = &envelope["data"]["measured"];
    assert_eq!(measured["sessions"], 1);
    let part = |what: &str| {
        let parts = measured["parts"].as_array().unwrap();
        parts.iter().find(|part| part["what"] == what).unwrap_or_else(|| panic!("{what} in {measured}")).clone()
    };
    let json_bytes = greeted["instructions"].to_string().len();
    assert_eq!([&part("instructions")["n"], &part("instructions")["bytes"]], [&json!(1), &json!(json_bytes)]);
    assert_eq!(part("first_list")["n"], 1);
    assert_eq!([&part("load")["n"], &part("load")["bytes"]], [&json!(1), &json!(loaded.len())]);
    // The whole line.
    let n_bytes = part("result")["bytes"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap();
    assert!(part("result")["n"] == 1 && (result.len()..result.len() + 60).contains(&n_bytes), "{measured}");
    assert_eq!(part("refusal")["n"], 1);
    // Its own text by its own ratio: what was loaded costs about what the row says.
    let row = envelope["data"]["rows"].as_array().unwrap().iter().find(|row| row["set"] == "eshop-store").unwrap();
    let row = row["dispatch_tokens"].as_f64().unwrap() - envelope["data"]["rows"][0]["list_tokens"].as_f64().unwrap();
    assert!((part("load")["tokens"].as_f64().unwrap() / row - 1.0).abs() < 0.1, "{measured}");
    let shown = command("budget").arg("--measured").output().unwrap();
    assert!(said(&shown).contains("What running proxies really sent"));
}

#[test]
fn progress_is_told_on_a_terminal_and_nowhere_else() {
    let scratch = tempfile::tempdir().unwrap();
    let server = scratch.path().join("slow.py");
    // It answers nothing before two seconds are over.
    let code = "import sys, time, json\ntime.sleep(2)\nfor line in sys.stdin:\n    message = json.loads(line)\n    if 'id' in message:\n        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'error': {'code': -32601, 'message': 'no'}}), flush=True)\n";
    fs::write(&server, code).unwrap();
    let config = scratch.path().join("servers.json");
    fs::write(&config, json!({"mcpServers": {"slow": {"command": "python3", "args": [server]}}}).to_string()).unwrap();
    let words = ["budget", "--format", "csv", "--config", config.to_str().unwrap()];
    let piped = gatekey().args(words).output().unwrap();
    assert!(!String::from_utf8_lossy(&piped.stderr).contains("asking"), "{piped:?}");

    let mut terminal = std::process::Command::new("python3");
    terminal.args(["-c", "import pty, sys; pty.spawn(sys.argv[1:])", env!("CARGO_BIN_EXE_gatekey")]).args(words);
    let shown = terminal.env("XDG_CACHE_HOME", scratch.path()).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("\r\x1b[2Kasking 1 upstream\r\x1b[2K"), "{shown:?}");
}
