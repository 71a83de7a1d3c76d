//! The whole-task estimate of `gatekey budget` against a task that was run: a small model that plays a script sends its
//! requests as hosts do – every definition and all that came before, each time – and what it sent is counted.

use std::{fs, process::Command};

use gatekey::tokens::Tokenizer;
use serde_json::{Value, json};

use crate::support::{
    example,
    proxy::{PATIENCE, Proxy, gatekey, text_of},
    root, wait_until,
};

/// "Where is what Eva Nováková ordered last, and has she paid?": six calls, all of them reads.
const TASK: [(&str, &str); 6] = [
    ("core_search", r#"{"query":"Nováková"}"#),
    ("orders_search", r#"{"text":"Nováková","limit":5}"#),
    ("orders_get", r#"{"id":"ORD-000376"}"#),
    ("customers_get", r#"{"id":"CUS-0053"}"#),
    ("invoices_list", r#"{"limit":3}"#),
    ("balikobot_shipments_list", r#"{"limit":3}"#),
];
/// What a cached token costs.
const CACHE_READ: f64 = 0.1;

/// A model that plays a script, and its host.
#[derive(Default)]
struct FakeModel {
    /// The server's instructions, which the host passes on.
    instructions: String,
    messages: Vec<Value>,
    /// The request before, as it was sent.
    before: String,
    n_requests: usize,
    sent: usize,
    with_cache: f64,
}

impl FakeModel {
    /// Of a host that was greeted so.
    fn of(greeted: &Value) -> Self {
        let instructions = greeted["instructions"].as_str().unwrap_or_default().to_owned();
        Self { instructions, ..Self::default() }
    }

    /// Sends what there is; the host would now wait for what the model says.
    fn request(&mut self, tools: &[Value]) {
        let messages: Vec<String> = self.messages.iter().map(Value::to_string).collect();
        let tools: Vec<String> = tools.iter().map(Value::to_string).collect();
        let body = format!("{}{}{}", tools.join(","), self.instructions, messages.join(","));
        let count = |text: &str| Tokenizer::O200kBase.count(text);
        // A cache knows a conversation that goes on, not one that only begins the same.
        let cached = if body.starts_with(&self.before) { count(&self.before) } else { 0 };
        let all = count(&body);
        self.n_requests += 1;
        self.sent += all;
        self.with_cache += (all - cached) as f64 + cached as f64 * CACHE_READ;
        self.before = body;
    }

    /// What the model said, and what came of it.
    fn call(&mut self, proxy: &mut Proxy, tool: &str, arguments: &Value) -> Value {
        let result = proxy.call(tool, arguments.clone());
        assert_ne!(result["isError"], true, "{tool}: {result}");
        self.messages.push(json!({"role": "assistant", "tool_calls": [{"name": tool, "arguments": arguments}]}));
        self.messages.push(json!({"role": "tool", "content": text_of(&result)}));
        result
    }
}

/// The bundled shop behind the gate, with this at the top of its config.
fn shop(top: &str) -> (Proxy, FakeModel, tempfile::TempDir) {
    let text = fs::read_to_string(root().join("examples/eshop/gatekey.toml")).unwrap();
    let text = text
        .replace("../../", &format!("{}/", root().display()))
        .replace("version = 1", &format!("version = 1\n{top}"));
    let scratch = tempfile::tempdir().unwrap();
    let config = scratch.path().join("gatekey.toml");
    fs::write(&config, text).unwrap();
    let mut command = gatekey();
    command.arg("proxy").arg("--config").arg(&config).env("ESHOP_MCP", example("eshop-mcp"));
    let mut proxy = Proxy::spawn(command);
    let greeted = proxy.initialize();
    // A busy machine starts the shop only after the first list.
    wait_until("the core tools are listed", PATIENCE, || proxy.list().len() > 11);
    (proxy, FakeModel::of(&greeted), scratch)
}

/// Every tool listed, as without gatekey.
fn direct() -> FakeModel {
    let mut proxy = Proxy::spawn(Command::new(example("eshop-mcp")));
    let mut model = FakeModel::of(&proxy.initialize());
    let tools = proxy.list();
    for (tool, arguments) in TASK {
        model.request(&tools);
        model.call(&mut proxy, tool, &serde_json::from_str(arguments).unwrap());
    }
    model.request(&tools);
    model
}

/// The list stays as it is, and tools are called by key.
fn dispatch() -> FakeModel {
    let (mut proxy, mut model, _scratch) = shop("exposure = \"dispatch\"");
    // A modern client's, which has no `skill_unload`.
    let tools: Vec<Value> = proxy.list().into_iter().filter(|tool| tool["name"] != "skill_unload").collect();
    model.request(&tools);
    let loaded = model.call(&mut proxy, "skill_load", &json!({"name": "eshop-orders"}));
    let key = loaded["structuredContent"]["key"].clone();
    for (tool, arguments) in TASK {
        model.request(&tools);
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        if tool.starts_with("core_") {
            model.call(&mut proxy, tool, &arguments);
        } else {
            let by_key = json!({"key": key, "name": tool, "arguments": arguments});
            model.call(&mut proxy, "tool_call_read", &by_key);
        }
    }
    model.request(&tools);
    model
}

/// What is opened joins the list, all of it.
fn growing_list() -> FakeModel {
    let (mut proxy, mut model, _scratch) = shop("exposure = \"list\"\nlist-budget-tokens = 1000000");
    model.request(&proxy.list());
    model.call(&mut proxy, "skill_load", &json!({"name": "eshop-orders"}));
    let tools = proxy.list();
    assert!(tools.len() > 76, "{} tools", tools.len());
    for (tool, arguments) in TASK {
        model.request(&tools);
        model.call(&mut proxy, tool, &serde_json::from_str(arguments).unwrap());
    }
    model.request(&tools);
    model
}

/// Results and calls of the task, in tokens on average, as `budget` is told them.
fn means(model: &FakeModel) -> (usize, usize) {
    let count = |role: &str| {
        let messages = model.messages.iter().filter(|message| message["role"] == role);
        messages.map(|message| Tokenizer::O200kBase.count(&message.to_string())).sum::<usize>() / TASK.len()
    };
    (count("tool"), count("assistant"))
}

#[test]
fn the_estimate_of_a_task_is_what_a_run_of_it_sends() {
    let runs = [("direct", direct()), ("dispatch", dispatch()), ("list", growing_list())];
    let (result, call) = means(&runs[0].1);
    let estimate = |arguments: &[String]| {
        let mut command = gatekey();
        command.args(["budget", "--json", "--steps", "6"]).args(arguments);
        command.arg("--config").arg(root().join("examples/eshop/gatekey.toml")).env("ESHOP_MCP", example("eshop-mcp"));
        let envelope: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        let tasks = envelope["data"]["tasks"].as_array().cloned().unwrap();
        tasks.into_iter().find(|task| task["set"] == "eshop-orders").unwrap()
    };
    let by_default = estimate(&[]);
    let told = estimate(&["--result", &result.to_string(), "--call", &call.to_string()].map(str::to_owned));
    let mut said = format!("result {result}, call {call}\n");
    let off = |measured: f64, estimated: &Value| 100.0 * (estimated.as_f64().unwrap() / measured - 1.0);
    let mut worst: f64 = 0.0;
    for (way, model) in &runs {
        assert_eq!(told[way]["requests"], model.n_requests, "{way}");
        for (what, measured) in [("sent", model.sent as f64), ("with_cache", model.with_cache)] {
            let (default, told) = (&by_default[way][what], &told[way][what]);
            let (first, second) = (off(measured, default), off(measured, told));
            said += &format!(
                "{way} {what}: measured {measured:.0}, estimated {default} ({first:+.1} %), with its means {told} ({second:+.1} %)\n"
            );
            worst = worst.max(second.abs());
        }
    }
    println!("{said}");
    assert!(worst < 12.0, "{said}");
}
