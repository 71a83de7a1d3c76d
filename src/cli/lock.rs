//! `gatekey lock`: records what upstreams and skills are; and what other commands do with that.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::json;

use super::{
    args::{Lock as Args, Recorded},
    budget, diff,
    exit::{Exit, Failed},
    output::{Output, count},
    setup::{Looked, Seen, look, prepare},
};
use crate::{
    catalog::{UpstreamFacts, UpstreamTools},
    config::{Config, PinMode, Transport},
    files,
    gateway::META_TOOLS,
    lock::{Change, Lock, LockError, LockedUpstream, Subject, compare},
    model::{
        diagnostic::{Diagnostic, Place},
        name::{UpstreamName, did_you_mean},
    },
    reload::Files,
    upstream::salvaged,
};

/// What the file is called.
const FILE: &str = "gatekey.lock";

pub(super) fn run(args: &Args, output: &Output) -> Result<Exit, Failed> {
    let prepared = prepare(&args.setup)?;
    let file = file_of(&args.recorded, &prepared.config);
    let known = match Lock::read(&file) {
        Ok(lock) => Some(lock),
        Err(LockError::Io(error)) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(unreadable(&file, &error)),
    };
    let config = prepared.config.clone();
    let looked = look(prepared.config)?;
    let now = now(&config, &looked, known.as_ref())?;
    let changes = known.as_ref().map(|known| compare(known, &now)).unwrap_or_default();
    let is_accepted = accepted(args.accept.as_deref(), &changes)?;
    let (taken, left): (BTreeMap<_, _>, BTreeMap<_, _>) =
        changes.into_iter().partition(|(subject, _)| is_accepted(subject));
    let lock = match known {
        Some(known) => merged(known, &now, taken.keys()),
        None => now,
    };
    let text = lock.to_text().map_err(LockError::from).map_err(|error| unreadable(&file, &error))?;
    let is_written = std::fs::read_to_string(&file).ok().as_deref() != Some(&text);
    if is_written {
        files::write(&files::target(&file), text.as_bytes())
            .map_err(|error| Failed::new(Exit::Usage, format!("failed to write `{}`: {error}", file.display())))?;
    }
    let counts = counts(&lock);
    if output.is_json {
        let data = json!({"file": file, "written": is_written, "upstreams": counts[0], "tools": counts[1],
            "skills": counts[2], "recorded": diff::as_json(&taken), "unrecorded": diff::as_json(&left)});
        output.envelope("lock", &data, &looked.findings);
    } else {
        diff::print(&left, *output);
        let what = if is_written { "recorded" } else { "unchanged" };
        output.data(&format!(
            "{}: {what}: {}, {}, {}",
            file.display(),
            count(counts[0], "upstream"),
            count(counts[1], "tool"),
            count(counts[2], "skill")
        ));
        if !left.is_empty() {
            let what = if left.len() == 1 { "change is" } else { "changes are" };
            output.note(&format!("{} {what} not recorded: `gatekey lock --accept` records that", left.len()));
        }
        output.findings(&looked.down());
    }
    Ok(exit(looked.has_failed, &left))
}

/// What a command ends with that is left with these changes.
pub(super) fn exit(has_failed: bool, changes: &BTreeMap<Subject, Change>) -> Exit {
    match (has_failed, changes.is_empty()) {
        (true, _) => Exit::Upstream,
        (false, false) => Exit::Findings,
        (false, true) => Exit::Done,
    }
}

/// Where it is recorded: the file that was named, else the config's.
pub(super) fn file_of(recorded: &Recorded, config: &Config) -> PathBuf {
    recorded.lock.as_ref().or(config.pins.file.as_ref()).cloned().unwrap_or_else(|| FILE.into())
}

pub(super) fn unreadable(file: &Path, error: &LockError) -> Failed {
    let failed = Failed::new(Exit::Invalid, format!("failed to read `{}`: {error}", file.display()));
    match error {
        LockError::Io(error) if error.kind() == io::ErrorKind::NotFound => failed.hint("`gatekey lock` makes it"),
        LockError::Io(_) | LockError::Newer(_) => failed,
        LockError::Syntax(_) => failed.hint("take it from version control, or delete it and run `gatekey lock`"),
    }
}

/// What upstreams and skills are now. Of an upstream that is down, or not chosen, that is what was known.
pub(super) fn now(config: &Config, looked: &Looked, known: Option<&Lock>) -> Result<Lock, Failed> {
    let recorded = budget::now();
    let mut lock = Lock::default();
    for Seen { name, facts, tools } in &looked.upstreams {
        let said = (facts.title.clone(), facts.instructions.clone());
        let locked = LockedUpstream::of(recorded.clone(), reached_by(config, name), said, tools.iter());
        let locked = locked.map_err(|error| Failed::new(Exit::Internal, error))?;
        lock.upstreams.insert(name.clone(), locked);
    }
    let of_config = config.upstreams.iter().map(|upstream| &upstream.name).chain(&config.left_out);
    for name in of_config.filter(|name| !lock.upstreams.contains_key(*name)).cloned().collect::<Vec<_>>() {
        if let Some(known) = known.and_then(|known| known.upstreams.get(&name)) {
            lock.upstreams.insert(name, known.clone());
        }
    }
    let on_disk = looked.snapshot.skills.values().filter_map(|skill| skill.on_disk.as_ref());
    lock.skills = on_disk.map(|skill| (skill.name.clone(), Lock::files_of(skill))).collect();
    Ok(lock)
}

/// The command without its folder and arguments, or the URL without a query and a user: what else there is may be secret, or
/// another one on each machine.
fn reached_by(config: &Config, name: &UpstreamName) -> String {
    let upstream = config.upstreams.iter().find(|upstream| upstream.name == *name);
    match upstream.map(|upstream| &upstream.transport) {
        Some(Ok(Transport::Stdio(program))) => {
            Path::new(&program.command).file_name().unwrap_or_default().to_string_lossy().into_owned()
        }
        Some(Ok(Transport::Http(endpoint))) => {
            let url = endpoint.url.split(['?', '#']).next().unwrap_or_default();
            let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            format!("{scheme}://{host}{path}")
        }
        Some(Err(_)) | None => String::new(),
    }
}

/// Which changes are recorded: all where none is named, else those of the named ones.
fn accepted<'a>(
    names: Option<&'a [String]>,
    changes: &BTreeMap<Subject, Change>,
) -> Result<impl Fn(&Subject) -> bool + use<'a>, Failed> {
    let is_upstream = |name: &str| {
        changes.keys().any(|subject| matches!(subject, Subject::Upstream(upstream) | Subject::Tool(upstream, _) if upstream.as_str() == name))
    };
    let upstreams: Vec<String> = names.unwrap_or_default().iter().filter(|name| is_upstream(name)).cloned().collect();
    let is_of = move |name: &str, subject: &Subject| match subject {
        Subject::Tool(upstream, tool) => name == upstream.as_str() || name == tool || name == subject.name(),
        Subject::Upstream(_) => name == subject.name(),
        // Often a skill is called as its upstream is, which is meant then.
        Subject::Skill(skill) => {
            name == subject.name() || (name == skill.as_str() && !upstreams.iter().any(|upstream| upstream == name))
        }
    };
    if let Some(name) =
        names.unwrap_or_default().iter().find(|name| !changes.keys().any(|subject| is_of(name, subject)))
    {
        let known: Vec<String> = changes.keys().map(Subject::name).collect();
        let failed = Failed::new(Exit::Usage, format!("nothing of `{name}` has changed"));
        return Err(match did_you_mean(name, known.iter().map(String::as_str)).first() {
            Some(close) => failed.hint(format!("did you mean `{close}`?")),
            None => failed.hint("`gatekey diff` shows what has"),
        });
    }
    Ok(move |subject: &Subject| match names {
        None => false,
        Some([]) => true,
        Some(names) => names.iter().any(|name| is_of(name, subject)),
    })
}

/// What was known, with these subjects as they are now.
fn merged<'a>(mut known: Lock, now: &Lock, subjects: impl Iterator<Item = &'a Subject>) -> Lock {
    fn take<K: Ord + Clone, V: Clone>(known: &mut BTreeMap<K, V>, now: &BTreeMap<K, V>, key: &K) {
        match now.get(key) {
            Some(value) => drop(known.insert(key.clone(), value.clone())),
            None => drop(known.remove(key)),
        }
    }
    for subject in subjects {
        match subject {
            Subject::Skill(skill) => take(&mut known.skills, &now.skills, skill),
            Subject::Upstream(name) => match (known.upstreams.get_mut(name), now.upstreams.get(name)) {
                // Its tools are subjects of their own.
                (Some(known), Some(now)) => {
                    *known = LockedUpstream { tools: std::mem::take(&mut known.tools), ..now.clone() };
                }
                _ => take(&mut known.upstreams, &now.upstreams, name),
            },
            Subject::Tool(name, tool) => {
                if let (Some(known), Some(now)) = (known.upstreams.get_mut(name), now.upstreams.get(name)) {
                    known.recorded.clone_from(&now.recorded);
                    take(&mut known.tools, &now.tools, tool);
                }
            }
        }
    }
    known
}

/// How many upstreams, tools and skills.
fn counts(lock: &Lock) -> [usize; 3] {
    let n_tools = lock.upstreams.values().map(|upstream| upstream.tools.len()).sum();
    [lock.upstreams.len(), n_tools, lock.skills.len()]
}

/// What upstreams offered when they were recorded, as if they had answered now.
pub(super) fn look_offline(mut config: Config, lock: &Lock, file: &Path) -> Looked {
    // What stands in this lock is what is asked about, whatever another one accepts.
    config.pins.mode = Some(PinMode::Off);
    let mut missing = Vec::new();
    let offers = config.upstreams.iter().enumerate().map(|(index, upstream)| {
        let (name, prefix) = (upstream.name.clone(), upstream.prefix.clone());
        let locked = lock.upstreams.get(&name);
        if locked.is_none() {
            let message = format!("upstream `{name}` is not recorded");
            let place = Place { file: file.into(), ..Place::default() };
            missing.push(Diagnostic::error("lock-missing", message).at(place).hint("run `gatekey lock`"));
        }
        let definitions = locked.into_iter().flat_map(|locked| locked.tools.values());
        let tools: Arc<[_]> = definitions.filter_map(|tool| salvaged(tool.definition())).map(Arc::new).collect();
        let facts = locked
            .map(|locked| UpstreamFacts { title: locked.server.clone(), instructions: locked.instructions.clone() });
        (UpstreamTools { index, name, prefix, tools }, facts.unwrap_or_default())
    });
    let offers: Vec<(UpstreamTools, UpstreamFacts)> = offers.collect();
    let seen = offers.iter().filter(|(tools, _)| lock.upstreams.contains_key(&tools.name));
    let upstreams = seen
        .map(|(tools, facts)| Seen { name: tools.name.clone(), facts: facts.clone(), tools: Arc::clone(&tools.tools) })
        .collect();
    let files = Files::read(config);
    // Not the first one, which is of upstreams that are still starting.
    let snapshot = Arc::new(files.snapshot(1, offers, META_TOOLS));
    let skills = files.skills;
    let mut findings = files.findings;
    findings.extend(snapshot.findings());
    findings.extend(missing);
    Looked { findings, snapshot, has_failed: false, upstreams, skills }
}

/// What differs from what is recorded, as findings.
pub(super) fn findings(known: &Lock, now: &Lock, file: &Path) -> Vec<Diagnostic> {
    let place = || Place { file: file.into(), ..Place::default() };
    let finding = |(subject, change): (Subject, Change)| {
        let accept = format!("`gatekey lock --accept {}` records it", subject.name());
        match change {
            Change::New => Diagnostic::warning("lock-new", format!("{subject} is not recorded")).hint(accept),
            Change::Gone => {
                Diagnostic::warning("lock-gone", format!("{subject} is recorded and no more there")).hint(accept)
            }
            Change::Other(differences) => {
                let parts: Vec<&str> = differences.iter().map(|difference| difference.part.as_str()).collect();
                let message = format!("{subject} has changed since it was recorded: {}", parts.join(", "));
                Diagnostic::warning("lock-changed", message).hint(format!("`gatekey diff` shows how; {accept}"))
            }
        }
        .at(place())
    };
    compare(known, now).into_iter().map(finding).collect()
}
