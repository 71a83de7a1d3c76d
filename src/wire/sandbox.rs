//! A child's sandbox: what it may reach besides what its config names, and how it is started within. Our own program is
//! started in the child's place; it confines itself ([`run`]) and then becomes the server: the same process, group and pipes.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::process::Command;

use super::confine;
use crate::model::program::{Network, Program, Sandbox};

/// Name of the hidden command that [`run`] is behind.
pub const COMMAND: &str = "__sandbox";
/// Exit code of a server that could not be confined or started: what shells use where a program cannot be run.
const CANNOT_RUN: u8 = 126;
/// Bytes of a script's first line that the system reads.
const SHEBANG_BYTES: u64 = 256;

/// What programs and interpreters need to start; what is not there is left out. Of `/proc` no other process's folder.
const USUAL: &[&str] = &[
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/sbin",
    "/usr",
    "/etc/ca-certificates",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/pki/tls/certs",
    "/etc/resolv.conf",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/dev/random",
    "/dev/urandom",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/meminfo",
    "/proc/self",
    "/proc/stat",
    "/proc/sys/vm/overcommit_memory",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
];

/// What a confined process may reach; goes from us to [`run`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Allowed {
    /// Files and folders to be read and run, where they are there.
    pub(super) usual: Vec<PathBuf>,
    /// The same; each must be there.
    pub(super) read: Vec<PathBuf>,
    /// Files and folders to be written, too; each must be there.
    pub(super) write: Vec<PathBuf>,
    /// TCP ports; all of the network where there is no list, nothing of it where the list is empty.
    pub(super) ports: Option<Vec<u16>>,
}

/// The command that starts `program` within `sandbox`, and the folder of its temporary files, which goes with what is returned.
///
/// # Errors
/// The system has no such sandbox, or there is no such program ([`io::ErrorKind::NotFound`]).
pub(super) fn command(program: &Program, sandbox: &Sandbox) -> io::Result<(Command, TempDir)> {
    confine::probe().map_err(|reason| io::Error::other(format!("no sandbox can be made: {reason}")))?;
    let search = program.env.get("PATH").map_or("", String::as_str);
    let found = locate(&program.command, program.cwd.as_deref(), search)?;
    let private = tempfile::Builder::new().prefix("gatekey-").tempdir()?;
    let mut usual: Vec<PathBuf> = USUAL.iter().map(PathBuf::from).collect();
    usual.extend(of_program(&found, search));
    // The process that opens them is in the program's own folder already.
    let here = std::env::current_dir()?;
    let absolute = |path: &PathBuf| here.join(path);
    // That folder counts only where the config names it: ours may be somebody's home.
    let read = sandbox.read.iter().chain(&program.cwd).map(absolute).collect();
    let write = sandbox.write.iter().map(absolute).chain([here.join(private.path())]).collect();
    let ports = match &sandbox.network {
        Network::Closed => Some(Vec::new()),
        Network::Ports(ports) => Some(ports.clone()),
        Network::Open => None,
    };
    let allowed = serde_json::to_string(&Allowed { usual, read, write, ports })?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(COMMAND).arg(allowed).arg(&found).arg(&program.command).args(&program.args);
    command.env_clear().envs(&program.env);
    for name in ["TMPDIR", "TMP", "TEMP"] {
        command.env(name, private.path());
    }
    Ok((command, private))
}

/// Confines this process to what its first argument says and becomes the program that the others name. Comes back only where
/// that fails.
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(allowed), Some(program), Some(name)) = (arguments.next(), arguments.next(), arguments.next()) else {
        return cannot("it was started without arguments");
    };
    let parsed = allowed.to_str().and_then(|allowed| serde_json::from_str::<Allowed>(allowed).ok());
    let Some(allowed) = parsed else { return cannot("it was started with arguments that it does not know") };
    if let Err(reason) = confine::confine(&allowed) {
        return cannot(&reason);
    }
    let error = confine::become_program(&program, &name, arguments);
    cannot(&format!("`{}` cannot be started within it: {error}", name.display()))
}

/// Says why on stderr, whose last line the upstream's findings show.
fn cannot(reason: &str) -> ExitCode {
    // Nobody is left to tell if this fails.
    writeln!(io::stderr(), "the sandbox failed: {reason}").ok();
    ExitCode::from(CANNOT_RUN)
}

/// Where a program is, as the system would look for it.
fn locate(command: &str, cwd: Option<&Path>, search: &str) -> io::Result<PathBuf> {
    let here = std::env::current_dir()?;
    let base = here.join(cwd.unwrap_or(Path::new("")));
    let candidates: Vec<PathBuf> = if command.contains('/') {
        vec![base.join(command)]
    } else {
        std::env::split_paths(search).map(|folder| base.join(folder).join(command)).collect()
    };
    candidates.into_iter().find(|path| path.is_file()).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// What a program needs of where it is installed: itself, what runs it if it is a script, and the libraries of Node and
/// Python installations and of virtual environments.
fn of_program(program: &Path, search: &str) -> Vec<PathBuf> {
    let mut needed = Vec::new();
    for path in interpreters(program, search).into_iter().chain([program.to_owned()]) {
        let real = path.canonicalize().unwrap_or_else(|_gone| path.clone());
        for path in [path, real] {
            needed.extend(of_installation(&path));
            needed.push(path);
        }
    }
    needed
}

/// The programs in the first line of a script.
fn interpreters(program: &Path, search: &str) -> Vec<PathBuf> {
    let mut first = Vec::new();
    let read =
        File::open(program).and_then(|file| BufReader::new(file.take(SHEBANG_BYTES)).read_until(b'\n', &mut first));
    let line = read.ok().and_then(|_size| std::str::from_utf8(first.strip_prefix(b"#!")?).ok()).unwrap_or_default();
    line.split_whitespace().filter_map(|word| locate(word, None, search).ok()).collect()
}

/// Not the whole folder, which may be somebody's `~/.local`.
fn of_installation(program: &Path) -> Vec<PathBuf> {
    // A package of Node's finds the others in the folder of packages that it is in, the outermost one first installed.
    if let Some(packages) = program.ancestors().filter(|folder| folder.ends_with("node_modules")).last() {
        return vec![packages.to_owned()];
    }
    let Some(folder) = program.parent().filter(|folder| folder.ends_with("bin")).and_then(Path::parent) else {
        return Vec::new();
    };
    let of_python = |name: OsString| name.to_string_lossy().starts_with("python3");
    let has_python = || {
        let found = std::fs::read_dir(folder.join("lib")).into_iter().flatten().flatten();
        found.map(|entry| entry.file_name()).any(of_python)
    };
    if folder.join("pyvenv.cfg").is_file() || folder.join("lib/node_modules").is_dir() || has_python() {
        ["bin", "lib", "lib64", "pyvenv.cfg"].iter().map(|name| folder.join(name)).collect()
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_is_readable_and_what_stands_beside_it_is_not() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        for folder in ["bin", "lib/python3.11", "share/keyrings", "other/bin"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(at("bin/python"), "").unwrap();
        std::fs::write(at("bin/tool"), "#!/usr/bin/env python\n").unwrap();
        std::fs::write(at("other/bin/server"), "").unwrap();
        let search = at("bin").to_string_lossy().into_owned();
        let found = of_program(&locate("tool", None, &search).unwrap(), &search);
        for name in ["bin/tool", "bin/python", "lib"] {
            assert!(found.contains(&at(name)), "{name}: {found:?}");
        }
        assert!(!found.contains(&at("share")) && !found.contains(&scratch.path().to_owned()), "{found:?}");
        std::fs::create_dir_all(at("app/node_modules/server/dist")).unwrap();
        assert_eq!(of_installation(&at("app/node_modules/server/dist/index.js")), [at("app/node_modules")]);
        assert_eq!(of_installation(&at("other/bin/server")), Vec::<PathBuf>::new());
        assert_eq!(locate("none", None, &search).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
