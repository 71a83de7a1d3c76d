//! `gatekey diff`: what changed since it was recorded, for people and as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use super::{
    args::Diff,
    exit::{Exit, Failed},
    lock::{exit, file_of, now, unreadable},
    output::Output,
    setup::{config_file, look, prepare, prepare_from},
};
use crate::{
    lock::{Change, Difference, Lock, Subject, compare},
    model::hidden::visible,
};

/// Lines around a change that are shown too.
const AROUND: usize = 1;

pub(super) fn run(args: &Diff, output: &Output) -> Result<Exit, Failed> {
    let prepared = match &args.against {
        // Nobody is asked then.
        Some(_) => prepare_from(&args.setup, config_file(&args.setup))?,
        None => prepare(&args.setup)?,
    };
    let file = file_of(&args.recorded, &prepared.config);
    let known = Lock::read(&file).map_err(|error| unreadable(&file, &error))?;
    let (after, against, has_failed) = match &args.against {
        Some(other) => {
            (Lock::read(other).map_err(|error| unreadable(other, &error))?, other.display().to_string(), false)
        }
        None => {
            let config = prepared.config.clone();
            let looked = look(prepared.config)?;
            output.findings(&looked.down());
            (now(&config, &looked, Some(&known))?, "now".to_owned(), looked.has_failed)
        }
    };
    let changes = compare(&known, &after);
    if output.is_json {
        output.envelope("diff", &json!({"lock": file, "against": against, "changes": as_json(&changes)}), &[]);
    } else {
        print(&changes, *output);
        let noun = if changes.len() == 1 { "change" } else { "changes" };
        output.note(&format!("{} {noun} from {} to {against}", changes.len(), file.display()));
    }
    Ok(exit(has_failed, &changes))
}

/// Prints changes for people.
pub(super) fn print(changes: &BTreeMap<Subject, Change>, output: Output) {
    for (subject, change) in changes {
        let subject = visible(&subject.to_string());
        match change {
            Change::New => output.data(&format!("{subject} is new")),
            Change::Gone => output.data(&format!("{subject} is gone")),
            Change::Other(differences) => {
                output.data(&format!("{subject} has changed"));
                differences.iter().for_each(|difference| print_one(difference, output));
            }
        }
    }
}

fn print_one(Difference { part, before, after }: &Difference, output: Output) {
    output.data(&format!("  {}", visible(part)));
    let (before, after) = (before.as_deref().unwrap_or_default(), after.as_deref().unwrap_or_default());
    let diff = TextDiff::from_lines(before, after);
    for group in diff.grouped_ops(AROUND) {
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            output.data(&format!("    {sign} {}", visible(change.value().trim_end_matches('\n'))));
        }
    }
}

/// Changes as reports have them.
pub(super) fn as_json(changes: &BTreeMap<Subject, Change>) -> Vec<Value> {
    let one = |(subject, change): (&Subject, &Change)| {
        let mut value = match subject {
            Subject::Upstream(upstream) => json!({"what": "upstream", "name": upstream.as_str()}),
            Subject::Tool(upstream, tool) => json!({"what": "tool", "upstream": upstream.as_str(), "name": tool}),
            Subject::Skill(skill) => json!({"what": "skill", "name": skill.as_str()}),
        };
        value["change"] = match change {
            Change::New => json!("new"),
            Change::Gone => json!("gone"),
            Change::Other(differences) => {
                value["differences"] = json!(differences);
                json!("changed")
            }
        };
        value
    };
    changes.iter().map(one).collect()
}
