//! `gatekey init`: looks at the upstreams and writes a config, a gating map and drafts of skills, none over another file.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{
    args::{Check, Init, Level, Recorded, Setup},
    check,
    exit::{Exit, Failed},
    output::{Output, count},
    setup::{config_file, look, prepare},
};
use crate::{
    catalog::{CatalogSkill, Skeleton, Snapshot},
    config::{Config, Transport, Upstream, raw_upstreams},
    files,
};

/// What the config is called.
const CONFIG: &str = "gatekey.toml";
/// The gating map.
const MAP: &str = "gating-maps/tools.toml";
/// The folder of skills.
const SKILLS: &str = "skills";

/// A file that may be written.
struct Draft {
    path: PathBuf,
    text: String,
    /// Whether there is one already, which stays.
    is_there: bool,
}

pub(super) fn run(args: &Init, output: &Output) -> Result<Exit, Failed> {
    let file = config_file(&args.setup);
    let beside = file.as_ref().and_then(|file| file.parent()).map(Path::to_owned).unwrap_or_default();
    // Servers that are named by hand belong here, and not into the user's config, which may know none of them.
    let is_of_config = args.setup.config.is_some() || args.setup.upstreams.is_empty();
    let folder = args.output.clone().unwrap_or(if is_of_config { beside.clone() } else { PathBuf::new() });
    let mut config = prepare(&args.setup)?.config;
    let upstreams = drafted_upstreams(&config, file.as_deref(), &beside, &folder)?;
    // What there is of maps and skills says nothing about what these servers have.
    config.maps.clear();
    config.skills.clear();
    let looked = look(config)?;
    output.findings(&looked.down());
    if looked.has_failed {
        let failed = Failed::new(Exit::Upstream, "nothing is written: a server that is down cannot be looked at");
        return Err(failed.hint("mend it, or name the others with `--upstream`"));
    }
    let drafts = drafts(&folder, &upstreams, &looked.snapshot);
    for draft in drafts.iter().filter(|draft| !draft.is_there && !args.dry_run) {
        write(draft)?;
    }
    report(&drafts, args.dry_run, *output);
    let own = folder.join(CONFIG);
    let kept = drafts.iter().find(|draft| draft.is_there && draft.path == own);
    let text = kept.and_then(|draft| fs::read_to_string(&draft.path).ok()).unwrap_or_default();
    let is_missing = |draft: &Draft| {
        [MAP, SKILLS].iter().any(|path| !text.contains(path))
            || !draft.text.lines().filter(|line| line.starts_with("[upstreams.")).all(|line| text.contains(line))
    };
    if let Some(draft) = kept.filter(|draft| is_missing(draft)) {
        output.note(&format!("`{}` is as it was; of this it may lack something:\n\n{}", own.display(), draft.text));
    }
    if args.dry_run || output.is_json {
        return Ok(Exit::Done);
    }
    let setup = Setup { upstreams: Vec::new(), config: Some(own), principal: None };
    let recorded = Recorded { lock: None };
    let args = Check {
        offline: false,
        format: None,
        level: Level::Lenient,
        client: None,
        max_tokens: None,
        against: None,
        recorded,
        setup,
    };
    check::run(&args, output)
}

fn write(draft: &Draft) -> Result<(), Failed> {
    let write = || {
        if let Some(folder) = draft.path.parent() {
            fs::create_dir_all(folder)?;
        }
        files::write(&draft.path, draft.text.as_bytes())
    };
    write().map_err(|error| Failed::new(Exit::Usage, format!("failed to write `{}`: {error}", draft.path.display())))
}

fn report(drafts: &[Draft], is_dry: bool, output: Output) {
    let become_of = |draft: &Draft| match (draft.is_there, is_dry) {
        (true, _) => "kept",
        (false, true) => "would be written",
        (false, false) => "written",
    };
    if output.is_json {
        let files: Vec<Value> = drafts
            .iter()
            .map(|draft| json!({"file": draft.path, "became": become_of(draft), "text": draft.text}))
            .collect();
        output.envelope("init", &json!({"files": files}), &[]);
        return;
    }
    for draft in drafts {
        output.data(&format!("{}: {}", draft.path.display(), become_of(draft)));
        if is_dry && !draft.is_there {
            output.data(&draft.text.lines().map(|line| format!("    {line}\n")).collect::<String>());
        }
    }
}

/// The files, in the order in which one reads them.
fn drafts(folder: &Path, upstreams: &str, snapshot: &Snapshot) -> Vec<Draft> {
    let draft = |path: PathBuf, text: String| Draft { is_there: path.exists(), path, text };
    let mut skeletons: Vec<(&CatalogSkill, Skeleton)> = Vec::new();
    let mut taken: Vec<String> = Vec::new();
    for skill in snapshot.skills.values().filter(|skill| !skill.tools.is_empty()) {
        let skeleton = snapshot.skeleton(skill, &taken);
        taken.push(skeleton.name.clone());
        skeletons.push((skill, skeleton));
    }
    let config = format!(
        "# Written by `gatekey init`. `gatekey schema config` says what else there is.\nversion = 1\nmaps = [\"{MAP}\"]\nskills = [\"{SKILLS}\"]\n\n{upstreams}"
    );
    let mut map = String::from(
        "# Which skill opens which tools; written by `gatekey init`, yours to go on with.\n# An entry is the beginning of an exposed name, `=name` one tool, `*` every tool, each also with `upstream:` before it.\nversion = 1\n# Tools that every task needs, open at all times.\nalways = []\n\n[skills]\n",
    );
    for (skill, skeleton) in &skeletons {
        let entries: Vec<String> =
            skill.patterns.iter().map(|pattern| Value::from(pattern.to_string()).to_string()).collect();
        map.push_str(&format!(
            "# {}\n{} = [{}]\n",
            count(skill.tools.len(), "tool"),
            skeleton.name,
            entries.join(", ")
        ));
    }
    let of_skill = |(_, skeleton): (&CatalogSkill, Skeleton)| {
        draft(folder.join(SKILLS).join(&skeleton.name).join("SKILL.md"), skeleton.text)
    };
    [draft(folder.join(CONFIG), config), draft(folder.join(MAP), map)]
        .into_iter()
        .chain(skeletons.into_iter().map(of_skill))
        .collect()
}

/// The tables of the upstreams, as they stand in the file that they come from: with their variables, not with what is in
/// them.
fn drafted_upstreams(config: &Config, file: Option<&Path>, beside: &Path, folder: &Path) -> Result<String, Failed> {
    let mut raw = match file {
        Some(file) => raw_upstreams(file)
            .map_err(|findings| Failed { findings, ..Failed::new(Exit::Invalid, "failed to load the config") })?,
        None => serde_json::Map::new(),
    };
    let mut text = String::new();
    for upstream in &config.upstreams {
        let name = upstream.name.as_str();
        let table = raw.remove(name).unwrap_or_else(|| typed(upstream));
        let table = if beside == folder { table } else { moved(table, beside) };
        let table = json!({"upstreams": {name: table}});
        let table = toml::to_string(&table).map_err(|error| Failed::new(Exit::Internal, error))?;
        text.push_str(&table);
        text.push('\n');
    }
    Ok(text)
}

/// An upstream that was named on the command line.
fn typed(upstream: &Upstream) -> Value {
    // What a `$` in it means is said once more in a file.
    let plain = |text: &str| text.replace("${", "$${");
    match &upstream.transport {
        Ok(Transport::Stdio(program)) => {
            let args: Vec<String> = program.args.iter().map(|arg| plain(arg)).collect();
            json!({"command": plain(&program.command), "args": args})
        }
        Ok(Transport::Http(endpoint)) => json!({"url": plain(&endpoint.url)}),
        Err(_) => json!({}),
    }
}

/// Paths that start at the folder of the old file, for another one.
fn moved(mut table: Value, beside: &Path) -> Value {
    let absolute = |text: &str| {
        let is_relative = text.contains(['/', '\\']) && !text.starts_with("${") && Path::new(text).is_relative();
        is_relative.then(|| std::path::absolute(beside.join(text)).ok()).flatten()
    };
    for member in ["command", "cwd", "ca-file"] {
        if let Some(path) = table[member].as_str().and_then(absolute) {
            table[member] = json!(path);
        }
    }
    if let Some(members) = table.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    table
}
