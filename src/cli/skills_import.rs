//! `gatekey skills import`: skills from elsewhere, into a folder whose skills nobody vouches for.

use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use super::{
    args::Import,
    exit::{Exit, Failed},
    output::Output,
    setup::{Prepared, config_file, prepare_from},
    skills_trust::{asked, show},
};
use crate::{
    config::Config,
    import::{Bundle, Imported, read},
    model::trust::Trust,
    reload::Files,
    skill::load_folders,
};

/// Files that were left out and are told.
const LEFT_OUT: usize = 10;

pub(super) fn run(args: &Import, output: Output) -> Result<Exit, Failed> {
    let Prepared { config, .. } = prepare_from(&args.setup, config_file(&args.setup))?;
    let folder = target(args, &config)?;
    let scanner = Files::read(config).vetting.scanner;
    let bundle = read(&args.source, args.revision.as_deref())
        .map_err(|error| Failed::new(Exit::Invalid, format!("failed to import `{}`: {error}", args.source)))?;
    for (path, why) in bundle.left_out.iter().take(LEFT_OUT) {
        output.note(&format!("left out: {path}: {why}"));
    }
    let mut done = Vec::new();
    for skill in wanted(&bundle, args)? {
        let target = folder.join(&skill.name);
        if target.symlink_metadata().is_ok() {
            let failed = Failed::new(Exit::Usage, format!("`{}` is there already", target.display()));
            return Err(failed.hint("delete it first: what is there may be approved, and is not replaced unseen"));
        }
        // What it is shows once it is on disk as it would be.
        let scratch = tempfile::tempdir()?;
        let trial = scratch.path().join(&skill.name);
        bundle.write(&skill, &trial)?;
        let set = load_folders(&[scratch.path().to_owned()]);
        output.findings(&set.findings);
        let Some(read) = set.skills.values().next() else {
            output.note(&format!("{} cannot be read as a skill and is left out", skill.name));
            continue;
        };
        show(read, &scanner, output);
        if args.dry_run {
            continue;
        }
        if !args.yes
            && !asked(&format!("Write it to `{}`? It stays UNTRUSTED until you approve it.", target.display()))?
        {
            continue;
        }
        bundle.write(&skill, &target)?;
        done.push((skill.name, target));
    }
    if output.is_json {
        let data: Vec<Value> = done.iter().map(|(name, target)| json!({"skill": name, "folder": target})).collect();
        output.envelope("skills.import", &json!(data), &[]);
    } else {
        for (name, target) in &done {
            output.data(&format!("{name}: imported to {}", target.display()));
            output.note(&format!("`gatekey skills trust {name}` approves it"));
        }
    }
    Ok(if done.is_empty() && !args.dry_run { Exit::Findings } else { Exit::Done })
}

/// Where imported skills go: never where they would be trusted at once.
fn target(args: &Import, config: &Config) -> Result<PathBuf, Failed> {
    let hint = "add it to the config: skills = [{ path = \"imported\", trust = \"untrusted\" }]";
    let untrusted = || config.skills.iter().find(|folder| folder.trust == Trust::Untrusted);
    let Some(into) = args.into.clone().or_else(|| untrusted().map(|folder| folder.path.clone())) else {
        return Err(Failed::new(Exit::Usage, "the config has no folder for untrusted skills").hint(hint));
    };
    let Some(target) = real(&into) else {
        return Err(Failed::new(Exit::Usage, format!("`{}` leads through a folder that is not there", into.display())));
    };
    // Of folders within each other the innermost counts; of names of one folder, links among them, the most trusted.
    let holders = config.skills.iter().filter_map(|folder| Some((real(&folder.path)?, folder)));
    let holder = holders
        .filter(|(path, _)| target.starts_with(path))
        .max_by_key(|(path, folder)| (path.components().count(), folder.trust != Trust::Untrusted));
    match holder {
        Some((_, folder)) if folder.trust != Trust::Untrusted => {
            let message = format!("skills in `{}` are {} at once", into.display(), folder.trust);
            Err(Failed::new(Exit::Usage, message).hint(hint))
        }
        _ => Ok(into),
    }
}

/// A path without links, also where the last folders of it are not there yet; `None` where it is not known where it leads.
fn real(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let (known, rest) = path
        .ancestors()
        .find_map(|known| Some((std::fs::canonicalize(known).ok()?, path.strip_prefix(known).ok()?)))?;
    rest.components().all(|part| matches!(part, Component::Normal(_))).then(|| known.join(rest))
}

fn wanted(bundle: &Bundle, args: &Import) -> Result<Vec<Imported>, Failed> {
    let found = bundle.skills();
    let names: Vec<String> = found.iter().map(|skill| skill.name.clone()).collect();
    if found.is_empty() {
        return Err(Failed::new(Exit::Invalid, "there is no SKILL.md in it"));
    }
    if let Some(unknown) = args.skills.iter().find(|name| !names.contains(name)) {
        let failed = Failed::new(Exit::Usage, format!("there is no skill `{unknown}` in it"));
        return Err(failed.hint(format!("it has: {}", names.join(", "))));
    }
    let chosen: Vec<Imported> =
        found.into_iter().filter(|skill| args.skills.is_empty() || args.skills.contains(&skill.name)).collect();
    // A bundle that is a skill and has no name is called as its source is.
    let of_source = Path::new(args.source.trim_end_matches('/')).file_stem().and_then(|name| name.to_str());
    let named = |skill: Imported| match (skill.name.is_empty(), of_source) {
        (true, Some(name)) => Imported { name: name.to_owned(), ..skill },
        _ => skill,
    };
    Ok(chosen.into_iter().map(named).collect())
}
