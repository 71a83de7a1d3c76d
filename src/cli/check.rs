//! `gatekey check`: everything that `proxy` does before serving, what was recorded, what authors and reviewers want to know,
//! and every finding.

use std::io::ErrorKind::NotFound;

use serde_json::json;

use super::{
    args::{Check, Format, Level},
    budget, check_against, check_formats,
    exit::{Exit, Failed},
    lock,
    output::{Output, count},
    setup::{Looked, look, prepare},
};
use crate::{
    auth::{Auth, AuthError, TokenFile},
    catalog::{CLIENTS, lint, scan_skills},
    config,
    gateway::META_TOOLS,
    lock::{Lock, LockError},
    model::diagnostic::{Diagnostic, Place, Severity},
};

pub(super) fn run(args: &Check, output: &Output) -> Result<Exit, Failed> {
    let prepared = prepare(&args.setup)?;
    let file = lock::file_of(&args.recorded, &prepared.config);
    let known = match Lock::read(&file) {
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
    let mut findings = prepared.findings;
    if let Some(known) = &known {
        findings.extend(lock::findings(known, &lock::now(&config, &looked, Some(known))?, &file));
    }
    let Looked { findings: of_running, snapshot, has_failed, skills, .. } = looked;
    findings.extend(of_running);
    findings.extend(config.http.auth.as_ref().and_then(nobody_comes));
    // Lint says them again, with advice.
    findings.retain(|finding| !skills.findings.contains(finding));
    findings.extend(lint(&skills).findings);
    findings.extend(scan_skills(&skills, &snapshot.scanner));
    findings.extend(snapshot.scan_tools(META_TOOLS));
    findings.extend(snapshot.scan_wishes());
    if let Some(client) = CLIENTS.iter().find(|client| args.client.as_deref() == Some(client.name)) {
        findings.extend(snapshot.beyond_client(client, META_TOOLS.len()));
    }
    if let Some(most) = args.max_tokens {
        findings.extend(budget::over(&snapshot, &prepared.principal, most)?);
    }
    if let Some(revision) = &args.against {
        findings.extend(check_against::findings(&snapshot, revision)?);
    }
    if args.level == Level::Spec {
        findings.iter_mut().filter(|finding| finding.code.starts_with("skill-")).for_each(|finding| {
            finding.severity = finding.severity.min(Severity::Warning);
        });
    }
    // A map that cannot be read leaves everything uncovered; that is said once, by its own error.
    let is_of_map = |finding: &Diagnostic| {
        finding.is_error()
            && finding.code.starts_with("config-")
            && finding.at.as_ref().is_some_and(|at| config.maps.contains(&at.file))
    };
    if findings.iter().any(is_of_map) {
        findings.retain(|finding| finding.code != "gate-uncovered-tool");
    }
    findings.sort();
    findings.dedup();

    let n_of = |severity: Severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (n_errors, n_warnings, n_notes) = (n_of(Severity::Error), n_of(Severity::Warning), n_of(Severity::Note));
    let (n_upstreams, n_tools) = (config.upstreams.len(), snapshot.registry.tools().len());
    let n_skills = snapshot.skills.len();
    let source = if args.offline { file.display().to_string() } else { "live".to_owned() };
    match args.format.unwrap_or(if output.is_json { Format::Json } else { Format::Human }) {
        Format::Human => {
            output.findings_as_data(&findings);
            output.data(&format!(
                "checked {} ({source}), {}, {}: {}, {}, {}",
                count(n_upstreams, "upstream"),
                count(n_tools, "tool"),
                count(n_skills, "skill"),
                count(n_errors, "error"),
                count(n_warnings, "warning"),
                count(n_notes, "note")
            ));
        }
        Format::Json => {
            let data = json!({"source": source, "upstreams": n_upstreams, "tools": n_tools, "skills": n_skills,
                "errors": n_errors, "warnings": n_warnings, "notes": n_notes});
            output.envelope("check", &data, &findings);
        }
        Format::Sarif => output.json(&check_formats::sarif(&findings).to_string()),
        // Not even an empty line where there is none.
        Format::Github if findings.is_empty() => {}
        Format::Github => output.data(&check_formats::github(&findings)),
        Format::Junit => output.data(&check_formats::junit(&findings)),
    }
    Ok(if findings.iter().any(is_invalid) {
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
/// What keeps clients over HTTP out whom the config means to let in.
fn nobody_comes(auth: &config::Auth) -> Option<Diagnostic> {
    let file = auth.tokens.clone().unwrap_or_default();
    let place = Place { file: file.clone(), ..Place::default() };
    match Auth::new(auth).map(|_| TokenFile::read(&file)) {
        Err(AuthError::Tokens(error)) => Some(Diagnostic::error("auth-unusable", error.to_string()).at(place)),
        Err(error) => Some(Diagnostic::error("auth-unusable", error.to_string())),
        Ok(Ok(tokens)) if tokens.tokens.is_empty() && auth.issuers.is_empty() => {
            let found = Diagnostic::warning("auth-nobody", "there is no token, so nobody can come over HTTP");
            Some(found.at(place).hint("`gatekey token add NAME` makes one"))
        }
        Ok(_) => None,
    }
}

fn is_invalid(finding: &Diagnostic) -> bool {
    finding.is_error() && (finding.code.starts_with("config-") || finding.code.starts_with("skill"))
}
