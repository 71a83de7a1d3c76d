//! What a change of the gating map opens, compared with another revision of it: the question of whoever reviews it.

use std::{path::Path, process::Command};

use super::{
    exit::{Exit, Failed},
    output::count,
};
use crate::{
    catalog::Snapshot,
    gate::map::{Entry, GatingMap},
    model::{
        diagnostic::{Diagnostic, Place},
        tool::Effect,
    },
};

/// Tools that are named; the rest is counted. Whoever reviews must see what opens.
const NAMED: usize = 100;

/// What each skill, and everybody, may use that `revision` of the maps did not open.
pub(super) fn findings(snapshot: &Snapshot, revision: &str) -> Result<Vec<Diagnostic>, Failed> {
    let Some(map) = &snapshot.map else {
        return Err(Failed::new(Exit::Usage, "there is no gating map to compare with another revision"));
    };
    let mut found = Vec::new();
    let mut before = GatingMap::default();
    for file in &snapshot.config.maps {
        let Some(text) = at_revision(file, revision)? else { continue };
        if before.join(file, text).is_err() {
            // Whoever mends it must get past this.
            let message = format!("at {revision} this map cannot be read, so all that it opens now is new");
            found.push(Diagnostic::note("map-opens", message).at(Place { file: file.clone(), ..Place::default() }));
        }
    }
    let is_open = |entries: &[Entry], position: usize| {
        let tool = &snapshot.registry.tools()[position];
        entries.iter().any(|entry| entry.pattern.matches(&tool.upstream, tool.exposed.as_str()))
    };
    let n_tools = snapshot.registry.tools().len();
    let was_always = |position: usize| {
        let of_core = before.core_skill.as_ref().and_then(|(core, _)| before.skills.get(core));
        is_open(&before.always, position) || of_core.is_some_and(|(_, entries)| is_open(entries, position))
    };
    let always = (0..n_tools).filter(|position| snapshot.is_always_open(*position) && !was_always(*position));
    let place = snapshot.config.maps.first().map(|file| Place { file: file.clone(), ..Place::default() });
    found.extend(finding(snapshot, "everybody", always.collect(), place));
    for (name, (place, _)) in &map.skills {
        let known = before.skills.get(name).map(|(_, entries)| entries.as_slice()).unwrap_or_default();
        let opened = snapshot.skills.get(name).map(|skill| skill.tools.as_slice()).unwrap_or_default();
        let new =
            opened.iter().copied().filter(|position| !is_open(known, *position) && !was_always(*position)).collect();
        found.extend(finding(snapshot, &format!("skill `{name}`"), new, Some(place.clone())));
    }
    Ok(found)
}

fn finding(snapshot: &Snapshot, who: &str, new: Vec<usize>, place: Option<Place>) -> Option<Diagnostic> {
    if new.is_empty() {
        return None;
    }
    let tools = || new.iter().map(|position| &snapshot.registry.tools()[*position]);
    let n_writing = tools().filter(|tool| tool.tool.effect == Effect::Write).count();
    let named: Vec<&str> = tools().take(NAMED).map(|tool| tool.exposed.as_str()).collect();
    let more = if new.len() > NAMED { format!(" and {} more", new.len() - NAMED) } else { String::new() };
    let message = format!(
        "{who} newly opens {}, of which {n_writing} may change something: {}{more}",
        count(new.len(), "tool"),
        named.join(", ")
    );
    let finding = Diagnostic::note("map-opens", message);
    Some(match place {
        Some(place) => finding.at(place),
        None => finding,
    })
}

/// The text of a file as git has it; `None` where it was not there.
fn at_revision(file: &Path, revision: &str) -> Result<Option<String>, Failed> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(folder).args(arguments).output();
        output.map_err(|error| Failed::new(Exit::Usage, format!("failed to run git: {error}")))
    };
    let known = git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{revision}^{{commit}}")])?;
    if !known.status.success() {
        let failed = Failed::new(
            Exit::Usage,
            format!("git knows no revision `{revision}` of `{}`, or there is no repository", file.display()),
        );
        return Err(failed.hint("in CI, fetch it first: a shallow clone has only the newest"));
    }
    let shown = git(&["show", &format!("{revision}:./{name}")])?;
    Ok(shown.status.success().then(|| String::from_utf8_lossy(&shown.stdout).into_owned()))
}
