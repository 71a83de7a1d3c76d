//! `gatekey skills`: which there are, what they open, and why others are left out.

use serde_json::{Value, json};

use super::{
    args::{Skills, SkillsCommand},
    exit::{Exit, Failed},
    lint,
    output::Output,
    setup::{Looked, Prepared, look, prepare},
    skills_import, skills_trust,
};
use crate::{
    catalog::{CatalogSkill, Snapshot},
    model::{name::did_you_mean, principal::Principal, tool::first_sentence},
};

pub(super) fn run(args: &Skills, output: &Output) -> Result<Exit, Failed> {
    let (name, setup) = match &args.command {
        SkillsCommand::List { setup } => (None, setup),
        SkillsCommand::Show { name, setup } => (Some(name), setup),
        SkillsCommand::Import(args) => return skills_import::run(args, *output),
        SkillsCommand::Trust { names, all, yes, setup } => {
            return skills_trust::trust(names, *all, *yes, setup, *output);
        }
        SkillsCommand::Distrust { names, setup } => return skills_trust::distrust(names, setup, *output),
        SkillsCommand::Keygen { file } => return skills_trust::keygen(file, *output),
        SkillsCommand::Sign { folders, key } => return skills_trust::sign_all(folders, key, *output),
        SkillsCommand::Verify { folders, setup } => return skills_trust::verify(folders, setup, *output),
        SkillsCommand::Lint { folders, config } => return lint::run(folders, config.as_deref(), output),
    };
    let Prepared { config, mut findings, .. } = prepare(setup)?;
    let Looked { findings: of_running, snapshot, has_failed, .. } = look(config)?;
    findings.extend(of_running);
    let Some(name) = name else {
        if output.is_json {
            let data: Vec<Value> = snapshot.skills.values().map(|skill| summary(&snapshot, skill)).collect();
            output.envelope("skills.list", &json!(data), &findings);
        } else {
            let rows: Vec<Vec<String>> = snapshot.skills.values().map(|skill| row(&snapshot, skill)).collect();
            output.table(&["skill", "opens", "trust", "origin", "what"], &rows);
            output.findings(&findings);
        }
        return Ok(if has_failed { Exit::Upstream } else { Exit::Done });
    };
    let Some(skill) = snapshot.skills.get(name.as_str()) else {
        let close = did_you_mean(name, snapshot.skills.keys().map(|name| name.as_str()));
        let failed = Failed::new(Exit::Findings, format!("there is no skill `{name}`"));
        return Err(match close.as_slice() {
            [] => failed.hint("`gatekey skills list` shows them all, and why others are left out"),
            close => failed.hint(format!("did you mean `{}`?", close.join("`, `"))),
        });
    };
    let mut data = summary(&snapshot, skill);
    data["body"] = json!(skill.body);
    if output.is_json {
        output.envelope("skills.show", &data, &[]);
    } else {
        output.note(&format!("{}: {}\n", skill.name, skill.description));
        output.verbatim(&skill.body);
        for (member, title) in [("references", "References"), ("opens", "Opens"), ("tools", "Tools")] {
            let list: Vec<&str> = data[member].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            if !list.is_empty() {
                output.note(&format!("\n{title}: {}", list.join(", ")));
            }
        }
    }
    Ok(Exit::Done)
}

fn row(snapshot: &Snapshot, skill: &CatalogSkill) -> Vec<String> {
    let opens =
        if snapshot.core.as_ref() == Some(&skill.name) { "(core)".to_owned() } else { skill.tools.len().to_string() };
    vec![
        skill.name.to_string(),
        opens,
        skill.trust.to_string(),
        skill.origin.to_string(),
        first_sentence(&snapshot.describe(skill, &Principal::local()), 120),
    ]
}

fn summary(snapshot: &Snapshot, skill: &CatalogSkill) -> Value {
    let tools: Vec<&str> =
        skill.tools.iter().map(|position| snapshot.registry.tools()[*position].exposed.as_str()).collect();
    let opens: Vec<String> = skill.patterns.iter().map(ToString::to_string).collect();
    let disk = skill.on_disk.as_ref();
    json!({
        "name": skill.name.as_str(),
        "description": skill.description,
        "trust": skill.trust.as_str(),
        "origin": skill.origin.to_string(),
        "is_core": snapshot.core.as_ref() == Some(&skill.name),
        "is_hidden": skill.is_hidden,
        "opens": opens,
        "tools": tools,
        "allowed_tools": disk.and_then(|disk| disk.allowed_tools.clone()),
        "references": disk.map(|disk| disk.references.clone()).unwrap_or_default(),
        "tags": skill.tags,
        "digest": disk.map(|disk| disk.digest.clone()),
    })
}
