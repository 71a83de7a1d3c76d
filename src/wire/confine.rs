//! What Linux offers to confine a process: Landlock for files, TCP ports and signals, seccomp for sockets and for system calls
//! that no server needs. Elsewhere there is no sandbox, and nothing is started in one.

#[cfg(target_os = "linux")]
mod imp {
    use std::{
        ffi::{OsStr, OsString},
        io,
        os::unix::process::CommandExt as _,
        path::Path,
        process::Command,
    };

    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, NetPort, PathBeneath, PathFd,
        Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
    };

    use crate::wire::{sandbox::Allowed, syscalls};

    /// Without what came with Linux 6.2, files outside could still be emptied.
    const LEAST: ABI = ABI::V3;
    /// What else there is is taken as far as the system has it.
    const BEST: ABI = ABI::V9;
    /// Written by many programs that write nothing else.
    const DEVICES: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];

    /// Whether this system can confine anything; says why not.
    ///
    /// # Errors
    /// The system is too old, or Landlock is switched off.
    pub fn probe() -> Result<(), String> {
        let tried = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let tried = tried.handle_access(AccessFs::from_all(LEAST)).and_then(Ruleset::create);
        tried
            .map(drop)
            .map_err(|_error| "it takes Landlock as of Linux 6.2, which this system does not have".to_owned())
    }

    /// Confines this process and all that it starts, for good.
    ///
    /// # Errors
    /// Something of it cannot be done; then nothing may be run.
    pub(in crate::wire) fn confine(allowed: &Allowed) -> Result<(), String> {
        let failed = |error: RulesetError| format!("Landlock: {error}");
        let mut ruleset = ruleset(allowed).map_err(failed)?;
        let read = AccessFs::from_read(BEST);
        // A process that may make devices could make one of any disk.
        let write = AccessFs::from_all(BEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
        let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
        for path in &allowed.usual {
            ruleset = add(ruleset, path, read, false)?;
        }
        for path in DEVICES {
            ruleset = add(ruleset, Path::new(path), device, false)?;
        }
        for path in &allowed.read {
            ruleset = add(ruleset, path, read, true)?;
        }
        for path in &allowed.write {
            ruleset = add(ruleset, path, write, true)?;
        }
        for port in allowed.ports.iter().flatten() {
            ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::ConnectTcp)).map_err(failed)?;
        }
        let status = ruleset.restrict_self().map_err(failed)?;
        if !status.no_new_privs {
            return Err("its rights could not be frozen".into());
        }
        syscalls::deny(allowed.ports.as_deref())
    }

    fn ruleset(allowed: &Allowed) -> Result<RulesetCreated, RulesetError> {
        let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        ruleset = ruleset.handle_access(AccessFs::from_all(LEAST))?;
        if allowed.ports.as_ref().is_some_and(|ports| !ports.is_empty()) {
            ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4))?;
        }
        ruleset = ruleset.set_compatibility(CompatLevel::BestEffort);
        ruleset = ruleset.handle_access(AccessFs::from_all(BEST))?.scope(Scope::from_all(BEST))?;
        if allowed.ports.is_some() {
            // Where no port is allowed there are no sockets either; this is the second lock.
            ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4))?;
        }
        ruleset.create()
    }

    fn add(
        ruleset: RulesetCreated,
        path: &Path,
        access: BitFlags<AccessFs>,
        is_required: bool,
    ) -> Result<RulesetCreated, String> {
        let failed = |error: &dyn std::fmt::Display| format!("`{}` cannot be allowed: {error}", path.display());
        let opened = match PathFd::new(path) {
            Ok(opened) => opened,
            Err(_error) if !is_required => return Ok(ruleset),
            Err(_error) => return Err(failed(&"it is not there, or may not be looked at")),
        };
        let is_folder = std::fs::metadata(path).is_ok_and(|found| found.is_dir());
        let access = if is_folder { access } else { access & AccessFs::from_file(BEST) };
        ruleset.add_rule(PathBeneath::new(opened, access)).map_err(|error| failed(&error))
    }

    /// Becomes another program; comes back only where that fails.
    pub(in crate::wire) fn become_program(
        program: &OsStr,
        name: &OsStr,
        arguments: impl Iterator<Item = OsString>,
    ) -> io::Error {
        Command::new(program).arg0(name).args(arguments).exec()
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::{
        ffi::{OsStr, OsString},
        io,
    };

    use crate::wire::sandbox::Allowed;

    /// Always says no here.
    ///
    /// # Errors
    /// Always.
    pub fn probe() -> Result<(), String> {
        Err("it takes Landlock, which only Linux has".into())
    }

    /// Never confines anything here.
    ///
    /// # Errors
    /// Always.
    pub(in crate::wire) fn confine(_allowed: &Allowed) -> Result<(), String> {
        probe()
    }

    /// Never becomes anything here.
    pub(in crate::wire) fn become_program(
        _program: &OsStr,
        _name: &OsStr,
        _arguments: impl Iterator<Item = OsString>,
    ) -> io::Error {
        io::ErrorKind::Unsupported.into()
    }
}

pub use imp::probe;
pub(super) use imp::{become_program, confine};
