//! How to reach an upstream. Must not know how it is started or spoken to: that is `wire`.

use std::{collections::BTreeMap, fmt, path::PathBuf};

/// How to start a server as a child process.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    /// Looked up on PATH unless it has a separator.
    pub command: String,
    /// Passed as they are, without a shell.
    pub args: Vec<String>,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// Ours where there is none.
    pub cwd: Option<PathBuf>,
    /// What it may reach; everything that we may where there is none.
    pub sandbox: Option<Sandbox>,
}

/// What a program may reach besides what programs need to start, and its own folder for temporary files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// Files and folders to read.
    pub read: Vec<PathBuf>,
    /// Files and folders to read and write.
    pub write: Vec<PathBuf>,
    /// Whom it may speak to.
    pub network: Network,
}

/// Whom a program may speak to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Network {
    /// Nobody, not even by sockets of this machine.
    #[default]
    Closed,
    /// Anybody by TCP at these ports; with 53 among them, anybody by UDP.
    Ports(Vec<u16>),
    /// Anybody.
    Open,
}

/// A server over Streamable HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Absolute, `http` or `https`.
    pub url: String,
    /// Sent with every request.
    pub headers: BTreeMap<String, String>,
    /// Certificates (PEM) that are trusted besides the system's.
    pub ca_file: Option<PathBuf>,
}

// By hand, since arguments, environment and headers may hold secrets.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("command", &self.command).field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}
