//! A server of the newer era that wants input, before a client of the older era, which must be asked.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    cases::{Case, called},
    proxy::{Proxy, text_of},
};

const PATIENCE: Duration = Duration::from_secs(10);

fn session(case: &Case, capabilities: Value) -> Proxy {
    let mut proxy = Proxy::with_config(&case.clients_config());
    let client = json!({"name": "raw lines", "version": "1"});
    proxy.result(
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client}),
    );
    proxy.send(json!({"method": "notifications/initialized"}));
    proxy.load("asker");
    proxy
}

fn question(proxy: &mut Proxy) -> Value {
    proxy.wait_for("the question", PATIENCE, |message| message["method"] == "elicitation/create")
}

#[test]
fn a_client_of_the_older_era_is_asked_for_the_input_and_the_call_goes_on() {
    let case = Case::new("asker");
    let mut proxy = session(&case, json!({"elicitation": {}}));
    let call = proxy.ask("tools/call", json!({"name": "ask", "arguments": {}}));
    let asked = question(&mut proxy);
    assert_eq!(asked["params"]["requestedSchema"]["properties"]["name"]["x-own"], 1);
    proxy.send(json!({"id": asked["id"], "result": {"action": "accept", "content": {"name": "Ann"}}}));
    assert_eq!(text_of(&proxy.answer_to(call)["result"]), "hello Ann");
    let calls = case.journal("journal.jsonl");
    assert_eq!(called(&calls), ["ask", "ask"]);
    let capabilities = &calls.last().unwrap()["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(*capabilities, json!({"elicitation": {}}), "the server is told what this client can do");
}

#[test]
fn a_client_that_cannot_be_asked_gets_an_error_that_says_so() {
    let case = Case::new("asker");
    let mut proxy = session(&case, json!({}));
    let call = proxy.ask("tools/call", json!({"name": "ask", "arguments": {}}));
    let message = proxy.answer_to(call)["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("elicitation/create") && message.contains("cannot"), "{message}");
}

#[test]
fn a_call_that_is_cancelled_while_its_client_is_asked_is_not_made_again() {
    let case = Case::new("asker");
    let mut proxy = session(&case, json!({"elicitation": {}}));
    let call = proxy.ask("tools/call", json!({"name": "ask", "arguments": {}}));
    let asked = question(&mut proxy);
    proxy.send(json!({"method": "notifications/cancelled", "params": {"requestId": call}}));
    proxy.send(json!({"id": asked["id"], "result": {"action": "accept", "content": {"name": "Ann"}}}));
    assert_eq!(proxy.count(|message| message["id"] == call), 0, "nobody waits for an answer");
    assert_eq!(called(&case.journal("journal.jsonl")), ["ask"]);
}
