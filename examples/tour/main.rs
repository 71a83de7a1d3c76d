//! A walk through the gate with a real client, the real program and the bundled shop: what the agent sees first, a call
//! that is refused, the skill that opens it, and what all of it costs in tokens.
//!
//! `cargo build --release --bins --examples && target/release/examples/tour`

#![expect(clippy::print_stdout, reason = "showing is what the tour is for")]

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
};

use gatekey::tokens::Tokenizer;
use rmcp::{
    RoleClient, ServiceExt as _,
    model::{CallToolRequestParams, CallToolResult, Tool},
    service::{RunningService, ServerSink},
    transport::TokioChildProcess,
};
use serde_json::{Value, json};
use tokio::process::Command;

type Client = RunningService<RoleClient, ()>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let examples = env::current_exe()?.parent().map(Path::to_path_buf).unwrap_or_default();
    let shop = examples.join("eshop-mcp");
    let gatekey = examples.parent().map(|folder| folder.join("gatekey")).unwrap_or_default();
    for program in [&shop, &gatekey] {
        if !program.is_file() {
            return Err(format!("{} is missing: cargo build --release --bins --examples", program.display()).into());
        }
    }
    let direct = ().serve(TokioChildProcess::new(Command::new(&shop))?).await?;
    let registry = direct.list_all_tools().await?;
    direct.cancel().await?;

    let mut command = Command::new(&gatekey);
    command.arg("proxy").arg("--config").arg(config()).env("ESHOP_MCP", &shop);
    let client = ().serve(TokioChildProcess::new(command)?).await?;
    walk(&client, &registry).await?;
    client.cancel().await?;
    Ok(())
}

fn config() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/eshop/gatekey.toml")
}

async fn walk(client: &Client, registry: &[Tool]) -> Result<(), Box<dyn Error>> {
    chapter(1, "What the agent sees first");
    let start = client.list_all_tools().await?;
    let catalogue = start.iter().find(|tool| tool.name == "skill_load");
    let described =
        catalogue.and_then(|tool| tool.input_schema.get("properties")?.get("name")?.get("description")?.as_str());
    println!("{}\n", described.unwrap_or_default().trim_start_matches("Name of the skill.").trim());
    println!("Tools in the list: {}", names(&start));

    chapter(2, "A call that is refused");
    show_call("orders_list", &json!({"limit": 2}));
    show(&call(client, "orders_list", json!({"limit": 2})).await?, 500);

    chapter(3, "Loading the skill");
    show_call("skill_load", &json!({"name": "eshop-orders"}));
    let loaded = call(client, "skill_load", json!({"name": "eshop-orders"})).await?;
    show(&loaded, 1_900);
    let opened = loaded.structured_content.clone().unwrap_or_default();
    let key = opened["key"].as_str().unwrap_or_default().to_owned();
    let n_opened = opened["tools"].as_array().map_or(0, Vec::len);
    println!("\nThe key {key} opens {n_opened} tools.");

    chapter(4, "A call by key");
    let dispatched = json!({"key": key, "name": "orders_list", "arguments": {"limit": 2}});
    show_call("tool_call_read", &dispatched);
    let orders = call(client, "tool_call_read", dispatched).await?;
    show(&orders, 700);

    chapter(5, "A call by name, in this session");
    show_call("store_stock_list", &json!({"limit": 1}));
    show(&call(client, "store_stock_list", json!({"limit": 1})).await?, 500);

    chapter(6, "What it costs, in tokens of o200k_base");
    let whole: usize = registry.iter().map(tokens).sum();
    let before: usize = start.iter().map(tokens).sum();
    let load = Tokenizer::O200kBase.count(text(&loaded));
    let list_form: usize = registry.iter().filter(|tool| is_opened(&opened, &tool.name)).map(tokens).sum();
    println!("{whole:>7}  all {} tools of the shop in the list, as without gatekey", registry.len());
    println!(
        "{before:>7}  the list at the start: meta-tools, catalogue and {} core tools ({:.0} % saved)",
        start.len() - 6,
        saved(before, whole)
    );
    println!("{load:>7}  loading eshop-orders: playbook, references, key, {n_opened} signatures");
    println!("{list_form:>7}  the same {n_opened} tools as schemas in the list");
    Ok(())
}

fn chapter(number: usize, title: &str) {
    println!("\n━━━ {number}. {title} ━━━\n");
}

async fn call(client: &ServerSink, tool: &str, arguments: Value) -> Result<CallToolResult, Box<dyn Error>> {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    Ok(client.call_tool(CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)).await?)
}

fn show_call(tool: &str, arguments: &Value) {
    println!("→ {tool} {arguments}");
}

/// Prints the text of a result, up to `most` characters.
fn show(result: &CallToolResult, most: usize) {
    let mark = if result.is_error == Some(true) { "✗" } else { "←" };
    let text = text(result);
    let shown: String = text.chars().take(most).collect();
    let more = text.chars().count().saturating_sub(most);
    println!(
        "{mark} {}{}",
        shown.trim_end(),
        if more > 0 { format!(" … ({more} more characters)") } else { String::new() }
    );
}

fn text(result: &CallToolResult) -> &str {
    result.content.first().and_then(|part| part.as_text()).map(|text| text.text.as_str()).unwrap_or_default()
}

fn names(tools: &[Tool]) -> String {
    tools.iter().map(|tool| tool.name.as_ref()).collect::<Vec<_>>().join(", ")
}

fn is_opened(opened: &Value, name: &str) -> bool {
    opened["tools"].as_array().into_iter().flatten().any(|tool| tool["name"] == name)
}

fn tokens(tool: &Tool) -> usize {
    Tokenizer::O200kBase.count(&json!(tool).to_string())
}

fn saved(part: usize, whole: usize) -> f64 {
    let as_float = |number: usize| u32::try_from(number).map_or(f64::MAX, f64::from);
    100.0 * (1.0 - as_float(part) / as_float(whole.max(1)))
}
