//! `gatekey tools`: what the upstreams offer, under which names, and trying one by hand.

use serde_json::{Map, Value, json};

use super::{
    args::{Setup, Tools, ToolsCommand},
    client::with_client,
    exit::{Exit, Failed},
    output::Output,
    setup::{Prepared, block_on, prepare, start},
};
use crate::{
    catalog::{Registered, Snapshot},
    config::Intent,
    model::{name::SkillName, principal::Principal},
};

pub(super) fn run(args: &Tools, output: &Output) -> Result<Exit, Failed> {
    match &args.command {
        ToolsCommand::List { setup } => list(setup, *output),
        ToolsCommand::Show { name, setup } => show(name, setup, *output),
        ToolsCommand::Call { name, arguments, setup } => call(name, arguments, setup, *output),
    }
}

fn list(setup: &Setup, output: Output) -> Result<Exit, Failed> {
    let prepared = prepare(setup)?;
    block_on(async {
        let app = start(prepared.config)?;
        app.all_answered().await;
        let snapshot = app.store.load();
        let tools: Vec<(usize, &Registered)> = snapshot.registry.tools().iter().enumerate().collect();
        if output.is_json {
            let data: Vec<Value> = tools
                .iter()
                .map(|(position, tool)| row_json(&snapshot, *position, tool, &prepared.principal))
                .collect();
            output.envelope("tools.list", &json!(data), &app.findings());
        } else {
            let rows: Vec<Vec<String>> =
                tools.iter().map(|(position, tool)| row(&snapshot, *position, tool, &prepared.principal)).collect();
            output.table(&["tool", "effect", "upstream", "opened by", "what"], &rows);
            output.findings(&app.findings());
        }
        let has_failed = app.has_failed_upstreams();
        app.stop().await;
        Ok(if has_failed { Exit::Upstream } else { Exit::Done })
    })?
}

fn openers<'a>(snapshot: &'a Snapshot, position: usize, principal: &Principal) -> Vec<&'a str> {
    if !snapshot.is_visible(position, principal) {
        return vec!["(forbidden)"];
    }
    if snapshot.is_always_open(position) {
        return vec!["(always)"];
    }
    let is_known = |name: &&SkillName| snapshot.policy.is_skill_visible(principal, name.as_str());
    snapshot.openers(position).iter().filter(is_known).map(SkillName::as_str).collect()
}

fn row(snapshot: &Snapshot, position: usize, tool: &Registered, principal: &Principal) -> Vec<String> {
    let opened_by = openers(snapshot, position, principal).join(",");
    let opened_by = if opened_by.is_empty() { "-".to_owned() } else { opened_by };
    let effect = tool.tool.effect.as_str().to_owned();
    vec![tool.exposed.to_string(), effect, tool.upstream.to_string(), opened_by, tool.tool.summary()]
}

fn row_json(snapshot: &Snapshot, position: usize, tool: &Registered, principal: &Principal) -> Value {
    json!({
        "name": tool.exposed.as_str(),
        "upstream": tool.upstream.as_str(),
        "original": tool.tool.name.as_str(),
        "effect": tool.tool.effect,
        "opened_by": openers(snapshot, position, principal),
        "digest": tool.tool.digest,
        "description": tool.tool.description,
    })
}

fn show(name: &str, setup: &Setup, output: Output) -> Result<Exit, Failed> {
    let prepared = prepare(setup)?;
    block_on(async {
        let app = start(prepared.config)?;
        app.all_answered().await;
        let snapshot = app.store.load();
        app.stop().await;
        let Some(position) = snapshot.registry.position(name) else { return Err(unknown(&snapshot, name)) };
        let tool = &snapshot.registry.tools()[position];
        let definition: Value = serde_json::from_str(&tool.tool.definition).unwrap_or_default();
        let mut data = row_json(&snapshot, position, tool, &prepared.principal);
        data["definition"] = definition.clone();
        if output.is_json {
            output.envelope("tools.show", &data, &[]);
        } else {
            output.note(&format!(
                "{} of {}, {}, opened by: {}",
                tool.tool.name,
                tool.upstream,
                tool.tool.effect.as_str(),
                openers(&snapshot, position, &prepared.principal).join(", ")
            ));
            output.json(&serde_json::to_string_pretty(&definition).unwrap_or_default());
        }
        Ok(Exit::Done)
    })?
}

fn unknown(snapshot: &Snapshot, name: &str) -> Failed {
    let failed = Failed::new(Exit::Findings, format!("there is no tool `{name}`"));
    match snapshot.registry.close_to(name, |_, _| true).as_slice() {
        [] => failed.hint("`gatekey tools list` shows them all"),
        close => failed.hint(format!("did you mean `{}`?", close.join("`, `"))),
    }
}

fn call(name: &str, arguments: &str, setup: &Setup, output: Output) -> Result<Exit, Failed> {
    let mut arguments: Map<String, Value> = serde_json::from_str(arguments)
        .map_err(|error| Failed::new(Exit::Usage, format!("`--args` is not a JSON object: {error}")))?;
    let Prepared { config, principal, .. } = prepare(setup)?;
    if config.intent != Intent::Off {
        arguments.entry("intent").or_insert_with(|| json!("Tried by hand."));
    }
    block_on(async {
        let app = start(config)?;
        app.all_answered().await;
        let snapshot = app.store.load();
        let opener = snapshot.registry.position(name).and_then(|position| snapshot.openers(position).first().cloned());
        let talk = async |mut client: super::client::Client| {
            if let Some(skill) = &opener {
                client.ask("tools/call", &json!({"name": "skill_load", "arguments": {"name": skill.as_str()}})).await?;
            }
            client.ask("tools/call", &json!({"name": name, "arguments": arguments})).await
        };
        let outcome = with_client(&app, principal, talk).await;
        let has_failed = app.has_failed_upstreams();
        app.stop().await;
        let result = outcome?;
        let is_error = result["isError"] == true;
        if output.is_json {
            output.envelope("tools.call", &result, &[]);
        } else {
            for text in result["content"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()) {
                if is_error { output.note(text) } else { output.verbatim(text) }
            }
        }
        Ok(match (is_error, result["structuredContent"]["code"].as_str()) {
            (false, _) => Exit::Done,
            (true, Some("unavailable")) => Exit::Upstream,
            // Perhaps it is a tool of an upstream that is down.
            (true, Some("not_found")) if has_failed => Exit::Upstream,
            (true, _) => Exit::Findings,
        })
    })?
}
