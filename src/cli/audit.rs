//! `gatekey audit verify`: whether the audit is as it was written.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{
    args::{AuditAction, AuditCommand},
    exit::{Exit, Failed},
    output::Output,
    setup::{config_file, prepare_from},
};
use crate::{
    audit::{Broken, Verified, files_of, verify},
    model::hidden::visible,
};

pub(super) fn run(args: &AuditCommand, output: Output) -> Result<Exit, Failed> {
    let AuditAction::Verify { files, heads, setup } = &args.command;
    let files = if files.is_empty() {
        let config = prepare_from(setup, config_file(setup))?.config;
        let audit = config.audit.ok_or_else(|| {
            Failed::new(Exit::Usage, "the config has no audit")
                .hint("name a file, or add [audit] file = \"audit.jsonl\"")
        })?;
        with_those_of_others(&audit.file)
    } else {
        files.clone()
    };
    let mut data: Vec<Value> = Vec::new();
    let mut is_broken = false;
    let mut oldest: Option<u64> = None;
    let mut missing: Vec<&String> = heads.iter().collect();
    for file in files {
        let unreadable = |error| Failed::new(Exit::Usage, format!("failed to read `{}`: {error}", file.display()));
        let (shown, found) = match verify(&files_of(&file), heads).map_err(unreadable)? {
            Ok(Verified { n_records, first, head, passed }) => {
                missing.retain(|head| !passed.contains(*head));
                oldest = oldest.into_iter().chain([first]).min();
                let gone =
                    if first > 1 { format!(", older files are gone (it begins at {first})") } else { String::new() };
                (
                    format!("{}: whole: {n_records} records{gone}, head {head}", file.display()),
                    json!({"file": file, "state": "whole", "records": n_records, "first": first, "head": head}),
                )
            }
            Err(Broken { file: at, line, why }) => {
                is_broken = true;
                (
                    format!("{}:{line}: {why}", at.display()),
                    json!({"file": file, "state": "broken", "at": {"file": at, "line": line}, "why": why}),
                )
            }
        };
        data.push(found);
        if !output.is_json {
            output.data(&shown);
        }
    }
    for head in &missing {
        let number = head.split(':').next().and_then(|number| number.parse::<u64>().ok()).unwrap_or_default();
        let why = if oldest.is_some_and(|oldest| number < oldest) {
            "this head is older than the records that are left, which does not say whether they follow it"
        } else {
            "nothing goes through this head: records were cut off or made anew"
        };
        data.push(json!({"head": head, "state": "missing", "why": why}));
        if !output.is_json {
            output.data(&format!("{}: {why}", visible(head)));
        }
    }
    if output.is_json {
        output.envelope("audit.verify", &json!(data), &[]);
    }
    Ok(if is_broken || !missing.is_empty() { Exit::Findings } else { Exit::Done })
}

/// A head as `verify` prints it, in full.
pub(super) fn parse_head(text: &str) -> Result<String, String> {
    let (number, digest) = text.trim().split_once(':').unwrap_or_default();
    let is_digest = digest.len() == 64 && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_head = number.parse::<u64>().is_ok() && is_digest;
    is_head
        .then(|| text.trim().to_owned())
        .ok_or_else(|| "it is a number, a colon and 64 digits, as `verify` prints it".into())
}

/// The file, and those beside it that other processes wrote.
fn with_those_of_others(file: &Path) -> Vec<PathBuf> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let ending = file.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    let others = (2..).map(|number| file.with_file_name(format!("{stem}-{number}{ending}")));
    std::iter::once(file.to_owned()).chain(others.take_while(|file| file.is_file())).collect()
}
