//! `gatekey skills trust`, `distrust`, `keygen`, `sign` and `verify`: who vouches for skills.

use std::{
    fs,
    io::{BufRead as _, IsTerminal as _},
    path::{Path, PathBuf},
};

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::{
    args::Setup,
    budget,
    exit::{Exit, Failed},
    output::{self, Output},
    setup::{config_file, prepare_from},
};
use crate::{
    catalog::scan_files,
    config::Config,
    files,
    model::{
        diagnostic::Severity,
        hidden::visible,
        name::{SkillName, did_you_mean},
        tool::cut,
        trust::Trust,
    },
    reload::Files,
    scan::Scanner,
    skill::{SIGNATURE_FILE, Skill, load_folders},
    trust::{Approval, Approvals, Signed, make_keys, sign, signer},
};

/// Findings that are shown before somebody approves.
const SHOWN: usize = 20;

/// Approves skills as they are.
pub(super) fn trust(
    names: &[String],
    is_all: bool,
    is_sure: bool,
    setup: &Setup,
    output: Output,
) -> Result<Exit, Failed> {
    let (file, config, files) = read(setup)?;
    let mut approvals = approvals(&file)?;
    let wanted: Vec<&Skill> = if is_all {
        let is_open = |skill: &&Skill| files.vetting.trust.get(&skill.name) == Some(&Trust::Untrusted);
        files.skills.skills.values().filter(is_open).collect()
    } else {
        names.iter().map(|name| named(&files, name)).collect::<Result<_, _>>()?
    };
    let mut done = Vec::new();
    for skill in wanted {
        let trust = files.vetting.trust.get(&skill.name).copied().unwrap_or(Trust::Untrusted);
        if trust != Trust::Untrusted {
            output.note(&format!("{} is {trust} already", skill.name));
            continue;
        }
        let digest = skill.set_digest().ok_or_else(|| {
            let message = format!("`{}` has files that cannot be read, or too many", skill.name);
            Failed::new(Exit::Invalid, message).hint("what is approved is every file of it")
        })?;
        show(skill, &files.vetting.scanner, output);
        let rule = config.trust.user;
        let gains = if rule.opens { "be loaded, and open what the gating map gives it" } else { "be loaded" };
        if !is_sure && !asked(&format!("Approve `{}` as it is? It may then {gains}.", skill.name))? {
            continue;
        }
        let folder = skill.folder.to_string_lossy().into_owned();
        approvals.add(digest, Approval { skill: skill.name.to_string(), folder, at: budget::now() });
        done.push(skill.name.to_string());
    }
    write(&file, &approvals)?;
    tell(&done, "approved", "skills.trust", output);
    Ok(Exit::Done)
}

/// Takes back what was approved.
pub(super) fn distrust(names: &[String], setup: &Setup, output: Output) -> Result<Exit, Failed> {
    let (file, _, files) = read(setup)?;
    let mut approvals = approvals(&file)?;
    let mut done = Vec::new();
    for name in names {
        let skill = named(&files, name)?;
        if approvals.remove(name, &skill.folder.to_string_lossy()) {
            done.push(name.clone());
        } else {
            output.note(&format!("{name} was not approved"));
        }
    }
    write(&file, &approvals)?;
    tell(&done, "no more approved", "skills.distrust", output);
    Ok(if done.is_empty() { Exit::Findings } else { Exit::Done })
}

/// Makes a pair of keys: `file`, which only its owner can read, and `file.pub`.
pub(super) fn keygen(file: &Path, output: Output) -> Result<Exit, Failed> {
    let public = PathBuf::from(format!("{}.pub", file.display()));
    for file in [file, &public] {
        if fs::symlink_metadata(file).is_ok() {
            return Err(Failed::new(Exit::Usage, format!("`{}` is there already", file.display())));
        }
    }
    let password = std::env::var(PASSWORD).unwrap_or_default();
    let (secret, key) = make_keys(&password).map_err(|error| Failed::new(Exit::Internal, error))?;
    files::write_private(file, secret.as_bytes())?;
    files::write(&public, key.as_bytes())?;
    let line = key.lines().last().unwrap_or_default();
    if output.is_json {
        output.envelope("skills.keygen", &json!({"secret": file, "public": public, "key": line}), &[]);
        return Ok(Exit::Done);
    }
    output.data(line);
    output.note(&format!("{}: keep it secret. In gatekey.toml: [trust.keys] name = \"{line}\"", file.display()));
    if password.is_empty() {
        output.note(&format!("it has no password: {PASSWORD} would give it one"));
    }
    Ok(Exit::Done)
}

/// The variable that holds the password of a secret key.
const PASSWORD: &str = "GATEKEY_KEY_PASSWORD";

/// Signs skills, each in its folder.
pub(super) fn sign_all(folders: &[PathBuf], key: &Path, output: Output) -> Result<Exit, Failed> {
    let unreadable = |error| Failed::new(Exit::Usage, format!("failed to read `{}`: {error}", key.display()));
    let secret = fs::read_to_string(key).map_err(unreadable)?;
    let mut done = Vec::new();
    for skill in in_folders(folders)?.into_values() {
        if skill.set_digest().is_none() {
            let message = format!("`{}` has files that cannot be read, or too many", skill.name);
            return Err(Failed::new(Exit::Invalid, message));
        }
        let signature = sign(&skill, &secret, std::env::var(PASSWORD).ok())
            .map_err(|error| Failed::new(Exit::Usage, format!("failed to sign with `{}`: {error}", key.display())))?;
        files::write(&skill.folder.join(SIGNATURE_FILE), signature.as_bytes())?;
        done.push(skill.name.to_string());
    }
    tell(&done, "signed", "skills.sign", output);
    Ok(Exit::Done)
}

/// Says whose signatures skills have; exit 1 where one is worth nothing.
pub(super) fn verify(folders: &[PathBuf], setup: &Setup, output: Output) -> Result<Exit, Failed> {
    let (_, config, files) = read(setup)?;
    let skills =
        if folders.is_empty() { files.skills.skills.clone().into_iter().collect() } else { in_folders(folders)? };
    let mut is_wrong = false;
    let mut rows = Vec::new();
    for skill in skills.values() {
        let (state, what) = match signer(skill, &config.keys) {
            None => ("unsigned", String::new()),
            Some(Signed::By(key)) => ("signed", key),
            Some(Signed::Invalid(why)) => {
                is_wrong = true;
                ("invalid", why.to_owned())
            }
        };
        rows.push(vec![skill.name.to_string(), state.to_owned(), what]);
    }
    if output.is_json {
        let data: Vec<Value> = rows.iter().map(|row| json!({"skill": row[0], "state": row[1], "by": row[2]})).collect();
        output.envelope("skills.verify", &json!(data), &[]);
    } else {
        output.table(&["skill", "signature", "by"], &rows);
    }
    Ok(if is_wrong { Exit::Findings } else { Exit::Done })
}

/// What somebody should know before approving a skill.
pub(super) fn show(skill: &Skill, scanner: &Scanner, output: Output) {
    let n_bytes: u64 = skill.manifest().iter().map(|file| file.size_bytes).sum();
    let files = skill.manifest().len();
    output.note(&format!(
        "{} ({}): {files} file{}, {n_bytes} bytes\n  {}",
        visible(skill.name.as_str()),
        skill.folder.display(),
        if files == 1 { "" } else { "s" },
        visible(&cut(&skill.description, 300)),
    ));
    let found = scan_files(skill, scanner);
    for (file, line, found) in found.iter().take(SHOWN) {
        let severity = match found.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        output.note(&format!("  {}:{line}: {severity}: {} (`{}`)", visible(file), found.reason, found.excerpt));
    }
    match found.len() {
        0 => output.note("  the scan found nothing; that proves nothing"),
        n_found if n_found > SHOWN => output.note(&format!("  … and {} more", n_found - SHOWN)),
        _ => {}
    }
}

/// Asks a question at the terminal.
pub(super) fn asked(question: &str) -> Result<bool, Failed> {
    if !std::io::stdin().is_terminal() {
        let hint = "look at it, then say `--yes`";
        return Err(Failed::new(Exit::Usage, "there is no terminal to ask at").hint(hint));
    }
    output::note(&format!("{question} [y/N]"));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

fn read(setup: &Setup) -> Result<(PathBuf, Config, Files), Failed> {
    let config = prepare_from(setup, config_file(setup))?.config;
    let Some(file) = config.approvals.clone() else {
        return Err(Failed::new(Exit::Usage, "there is no home folder to keep approvals in").hint("set XDG_DATA_HOME"));
    };
    let files = Files::read(config.clone());
    Ok((file, config, files))
}

fn approvals(file: &Path) -> Result<Approvals, Failed> {
    Approvals::read(file)
        .map_err(|error| Failed::new(Exit::Invalid, format!("failed to read `{}`: {error}", file.display())))
}

fn write(file: &Path, approvals: &Approvals) -> Result<(), Failed> {
    let text = approvals.to_text().map_err(|error| Failed::new(Exit::Internal, error))?;
    if fs::read_to_string(file).is_ok_and(|known| known == text) {
        return Ok(());
    }
    fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
    files::write_private(file, text.as_bytes())?;
    Ok(())
}

fn named<'a>(files: &'a Files, name: &str) -> Result<&'a Skill, Failed> {
    files.skills.skills.get(name).ok_or_else(|| {
        let failed = Failed::new(Exit::Usage, format!("there is no skill `{name}` in the folders of the config"));
        match did_you_mean(name, files.skills.skills.keys().map(|name| name.as_str())).first() {
            Some(close) => failed.hint(format!("did you mean `{close}`?")),
            None => failed.hint("`gatekey skills list` shows them"),
        }
    })
}

/// The skills of these folders, or of the skill that a folder is.
fn in_folders(folders: &[PathBuf]) -> Result<IndexMap<SkillName, Skill>, Failed> {
    let set = load_folders(folders);
    if set.skills.is_empty() {
        return Err(Failed { findings: set.findings, ..Failed::new(Exit::Usage, "there is no skill") });
    }
    Ok(set.skills.into_iter().collect())
}

fn tell(done: &[String], what: &str, kind: &str, output: Output) {
    if output.is_json {
        output.envelope(kind, &json!({"skills": done}), &[]);
    } else {
        done.iter().for_each(|name| output.data(&format!("{name}: {what}")));
    }
}
