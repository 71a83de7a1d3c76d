//! `gatekey check`: everything that `proxy` does before serving, and every finding.

use std::io::ErrorKind::NotFound;

use serde_json::json;

use super::{
    args::Check,
    exit::{Exit, Failed},
    lock,
    output::Output,
    setup::{Looked, look, prepare},
};
use crate::{
    lock::LockError,
    model::diagnostic::{Diagnostic, Severity},
};

pub(super) fn run(args: &Check, output: &Output) -> Result<Exit, Failed> {
    let prepared = prepare(&args.setup)?;
    let n_upstreams = prepared.config.upstreams.len();
    let file = lock::file_of(&args.recorded, &args.setup);
    let known = match lock::read(&file) {
        Ok(known) => Some(known),
        // Nobody has to record anything, unless it is to be used.
        Err(LockError::Io(error)) if error.kind() == NotFound && args.recorded.lock.is_none() && !args.offline => None,
        Err(error) => return Err(lock::unreadable(&file, &error)),
    };
    let config = prepared.config.clone();
    let looked = match &known {
        Some(known) if args.offline => lock::look_offline(prepared.config, known, &file),
        _ => look(prepared.config)?,
    };
    let of_lock = known
        .as_ref()
        .map(|known| Ok::<_, Failed>(lock::findings(known, &lock::now(&config, &looked, Some(known))?, &file)));
    let Looked { mut findings, snapshot, has_failed, .. } = looked;
    findings.extend(of_lock.transpose()?.unwrap_or_default());
    let has_invalid = prepared.findings.iter().chain(&findings).any(is_invalid);
    findings.extend(prepared.findings);
    findings.sort();
    findings.dedup();
    let count = |severity: Severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (n_errors, n_warnings, n_notes) = (count(Severity::Error), count(Severity::Warning), count(Severity::Note));
    let n_tools = snapshot.registry.tools().len();
    let n_skills = snapshot.skills.len();
    let source = if args.offline { file.display().to_string() } else { "live".to_owned() };
    if output.is_json {
        let data = json!({"source": source, "upstreams": n_upstreams, "tools": n_tools, "skills": n_skills,
            "errors": n_errors, "warnings": n_warnings, "notes": n_notes});
        output.envelope("check", &data, &findings);
    } else {
        output.findings_as_data(&findings);
        output.data(&format!(
            "checked {n_upstreams} upstreams ({source}), {n_tools} tools, {n_skills} skills: {n_errors} errors, {n_warnings} warnings, {n_notes} notes"
        ));
    }
    Ok(if has_invalid {
        Exit::Invalid
    } else if has_failed {
        Exit::Upstream
    } else if n_errors + n_warnings > 0 {
        Exit::Findings
    } else {
        Exit::Done
    })
}

/// Whether a file is broken, rather than complete and worth a finding.
fn is_invalid(finding: &Diagnostic) -> bool {
    finding.is_error() && (finding.code.starts_with("config-") || finding.code.starts_with("skill"))
}
