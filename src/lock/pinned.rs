//! What was accepted, held against what upstreams offer while clients are served.

use std::{io, path::Path};

use super::file::{Lock, LockError, LockedTool};
use crate::{
    catalog::{Doubt, Unaccepted, UpstreamFacts, UpstreamTools},
    config::{PinMode, Pins},
    model::diagnostic::{Diagnostic, Place},
};

/// What was accepted, and what becomes of the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    lock: Lock,
    is_enforced: bool,
}

impl Pinned {
    /// Reads what the config says is accepted; `None` where nothing is pinned. A file that cannot be used, or is asked for and
    /// not there, is a finding, and nothing counts as accepted then.
    pub fn read(pins: &Pins) -> (Option<Self>, Option<Diagnostic>) {
        let Some(file) = pins.file.as_deref().filter(|_| pins.mode != Some(PinMode::Off)) else { return (None, None) };
        let is_enforced = pins.mode != Some(PinMode::Warn);
        match Lock::read(file) {
            Ok(lock) => (Some(Self { lock, is_enforced }), None),
            // Nobody has to record anything, unless the config says that it counts.
            Err(LockError::Io(error)) if error.kind() == io::ErrorKind::NotFound && pins.mode.is_none() => (None, None),
            Err(error) => {
                let nothing = Self { lock: Lock::default(), is_enforced };
                (Some(nothing), Some(unreadable(file, &error, is_enforced)))
            }
        }
    }

    /// What of the upstreams' offers is not as it was accepted.
    pub fn unaccepted(&self, upstreams: &[(UpstreamTools, UpstreamFacts)]) -> Unaccepted {
        let mut unaccepted = Unaccepted { is_enforced: self.is_enforced, ..Unaccepted::default() };
        for (offered, facts) in upstreams {
            let locked = self.lock.upstreams.get(&offered.name);
            if facts.instructions.is_some()
                && facts.instructions != locked.and_then(|locked| locked.instructions.clone())
            {
                unaccepted.instructions.insert(offered.name.clone());
            }
            for tool in offered.tools.iter() {
                let accepted = locked.and_then(|locked| locked.tools.get(tool.name.as_str()));
                let doubt = match accepted {
                    None => Doubt::New,
                    Some(accepted) if LockedTool::digest_of(&tool.definition) != accepted.digest => Doubt::Changed,
                    Some(_) => continue,
                };
                unaccepted.tools.insert((offered.name.clone(), tool.name.clone()), doubt);
            }
        }
        unaccepted
    }
}

fn unreadable(file: &Path, error: &LockError, is_enforced: bool) -> Diagnostic {
    let then = if is_enforced { ", so no tool counts as accepted" } else { "" };
    let place = Place { file: file.into(), ..Place::default() };
    let finding = Diagnostic::error("lock-unreadable", format!("cannot be used: {error}{then}")).at(place);
    finding.hint("take it from version control, or delete it and run `gatekey lock`")
}
