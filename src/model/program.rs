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
    /// Headers whose values each caller brings: the server's name of each, and that by which callers send it.
    pub caller_headers: BTreeMap<String, String>,
    /// How tokens for it are got, where it wants such.
    pub oauth: Option<OAuth>,
}

impl Endpoint {
    /// Whether calls go by the credential of whoever makes them.
    pub fn is_per_caller(&self) -> bool {
        !self.caller_headers.is_empty() || self.oauth.as_ref().is_some_and(|oauth| oauth.is_per_caller)
    }
}

/// How a server's tokens are got (OAuth 2.1).
#[derive(Clone, PartialEq, Eq)]
pub struct OAuth {
    /// Who agrees to it.
    pub grant: Grant,
    /// By which the authorization server knows us; without it we register there.
    pub client_id: Option<String>,
    /// Of a client that can keep one.
    pub client_secret: Option<String>,
    /// What is asked for; what the server proposes where there is none.
    pub scopes: Vec<String>,
    /// Whether each caller logs in.
    pub is_per_caller: bool,
    /// Whether its authorization server may be at a private address where the server itself is named.
    pub may_be_private: bool,
    /// Where logins are kept; absent where the user has no folder for such.
    pub logins: Option<PathBuf>,
}

/// Who agrees that we get a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// A user, who logs in.
    Code,
    /// Whoever gave us id and secret.
    Client,
}

// By hand, since arguments, environment, headers and client secrets are none of a log's business.
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

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("grant", &self.grant).finish_non_exhaustive()
    }
}
