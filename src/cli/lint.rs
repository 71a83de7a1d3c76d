//! `gatekey skills lint`: why skills will be missed, for those who write them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{
    exit::{Exit, Failed},
    output::{Output, count},
    setup::usual_config,
};
use crate::{
    catalog::{Lint, lint},
    config::{Environment, load_file},
    model::diagnostic::Severity,
    skill::load_folders,
};

pub(super) fn run(folders: &[PathBuf], config: Option<&Path>, output: &Output) -> Result<Exit, Failed> {
    let folders = if folders.is_empty() { of_config(config)? } else { folders.to_vec() };
    if let Some(folder) = folders.iter().find(|folder| !folder.is_dir()) {
        return Err(Failed::new(Exit::Usage, format!("there is no folder `{}`", folder.display())));
    }
    let set = load_folders(&folders);
    let Lint { findings, twins } = lint(&set);
    let n_skills = set.skills.len();
    let n_of = |severity: Severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (n_errors, n_warnings, n_notes) = (n_of(Severity::Error), n_of(Severity::Warning), n_of(Severity::Note));
    if output.is_json {
        let twins: Vec<Value> = twins
            .iter()
            .map(|(first, second, share)| json!({"skills": [first, second], "share": (share * 100.0).round() / 100.0}))
            .collect();
        let data = json!({"skills": n_skills, "errors": n_errors, "warnings": n_warnings, "notes": n_notes,
            "near_duplicates": twins});
        output.envelope("skills.lint", &data, &findings);
    } else {
        output.findings_as_data(&findings);
        output.data(&format!(
            "looked at {}: {}, {}, {}",
            count(n_skills, "skill"),
            count(n_errors, "error"),
            count(n_warnings, "warning"),
            count(n_notes, "note")
        ));
    }
    Ok(if n_errors + n_warnings > 0 { Exit::Findings } else { Exit::Done })
}

/// The folders that the config names.
fn of_config(config: Option<&Path>) -> Result<Vec<PathBuf>, Failed> {
    let environment = Environment::of_process();
    let hint = "name a folder of skills: `gatekey skills lint DIR`";
    let Some(file) = config.map(Path::to_owned).or_else(|| usual_config(&environment)) else {
        return Err(Failed::new(Exit::Usage, "there is neither a folder nor a config").hint(hint));
    };
    let loaded = load_file(&file, &environment);
    let Some(config) = loaded.config else {
        return Err(Failed { findings: loaded.findings, ..Failed::new(Exit::Invalid, "failed to load the config") });
    };
    if config.skills.is_empty() {
        return Err(Failed::new(Exit::Usage, "the config names no folder of skills").hint(hint));
    }
    Ok(config.skills.into_iter().map(|folder| folder.path).collect())
}
