//! A checked [`Config`], what it has where a file says nothing, and what of it cannot change while clients are served. Must not
//! know how files are read.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use indexmap::IndexMap;

use super::{
    auth::{self, Auth},
    models,
    raw::{BeyondTools, Exposure, Intent, OnFailure, PinMode, RawConfig, RawPrincipal, Rule, Watch},
};
use crate::model::{
    limits,
    name::UpstreamName,
    onnx::{OnnxEncoder, OnnxReranker},
    program::{Endpoint, Program},
    trust::{SkillFolder, TrustRules},
};

/// A checked configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// In order of precedence.
    pub upstreams: Vec<Upstream>,
    /// Names of the file's upstreams that are disabled or not chosen.
    pub left_out: Vec<UpstreamName>,
    /// Gating maps.
    pub maps: Vec<PathBuf>,
    /// Folders with skills.
    pub skills: Vec<SkillFolder>,
    /// How opened tools are reached.
    pub exposure: Exposure,
    /// Whether calls carry an `intent`.
    pub intent: Intent,
    /// Of the catalogue, estimated.
    pub catalog_budget_tokens: usize,
    /// By which a legacy session's list may grow, estimated.
    pub list_budget_tokens: usize,
    /// How long the first list waits for upstreams.
    pub start_wait: Duration,
    /// Longest message.
    pub line_limit_bytes: usize,
    /// Of the keys; random where there is none.
    pub key_secret: Option<String>,
    /// Whether forbidden tools are answered as unknown ones.
    pub is_concealing: bool,
    /// Whether every tool is open and listed.
    pub is_pass_through: bool,
    /// Whether resources, prompts and the like of upstreams can be used of which no tool is open.
    pub beyond_tools: BeyondTools,
    /// How changes of files are noticed.
    pub watch: Watch,
    /// How clients are served over HTTP.
    pub http: Http,
    /// How skills and tools are found.
    pub search: Search,
    /// The list of skills as a file.
    pub index: Index,
    /// What skills may do by how far they are trusted.
    pub trust: TrustRules,
    /// Public keys whose signatures on skills count, by names.
    pub keys: IndexMap<String, String>,
    /// What the user approved is kept there; absent where there is no place for such.
    pub approvals: Option<PathBuf>,
    /// What skills and tools' definitions are looked through for.
    pub scan: Scan,
    /// What is written down of every decision and call, if anything is.
    pub audit: Option<AuditConfig>,
    /// What was accepted of upstreams.
    pub pins: Pins,
    /// Callers that it knows.
    pub principals: Principals,
    /// Who may use what.
    pub rules: Vec<Rule>,
}

/// How skills and tools are found.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// What compares meanings.
    pub encoder: Encoder,
    /// What puts the best hits in order, where there is such a model.
    pub reranker: Option<OnnxReranker>,
    /// Folder of the encoder's vectors, and of models of the hub.
    pub cache: Option<PathBuf>,
    /// What words count beside meaning.
    pub words_weight: f32,
}

/// What skills and tools' definitions are looked through for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// Files of the user's patterns.
    pub patterns: Vec<PathBuf>,
    /// Ids of patterns that are left out.
    pub ignored: Vec<String>,
}

/// What is written down of every decision and call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditConfig {
    /// JSON, a record a line.
    pub file: PathBuf,
    /// Whether arguments are written too.
    pub has_arguments: bool,
    /// Names of arguments that are secrets.
    pub secrets: Vec<String>,
    /// A file over this is put aside.
    pub max_bytes: u64,
    /// Files that are kept besides.
    pub keep: usize,
    /// Whether a call whose record cannot be written is not made.
    pub is_strict: bool,
}

/// What was accepted of upstreams.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pins {
    /// Absent where the config says nothing: then it is enforced if there is a lock file.
    pub mode: Option<PinMode>,
    /// The lock file; absent where there is no config file beside which it could be.
    pub file: Option<PathBuf>,
}

/// The list of skills as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Kept fresh while clients are served, where there is one.
    pub file: Option<PathBuf>,
    /// Estimated.
    pub budget_tokens: usize,
}

/// What compares meanings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Encoder {
    /// The one within the program.
    Embedded,
    /// Nothing: search goes by words.
    Off,
    /// A GGUF file.
    File(PathBuf),
    /// A model for ONNX Runtime.
    Onnx(OnnxEncoder),
}

/// What the front over HTTP lets pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// Hosts besides this machine's own names; `*` is any.
    pub hosts: Vec<String>,
    /// Origins besides pages of this machine.
    pub origins: Vec<String>,
    /// Sessions of the older era at once.
    pub sessions: usize,
    /// A session that is not used for this long ends.
    pub session_idle: Duration,
    /// Who may come; everybody where it is absent.
    pub auth: Option<Auth>,
    /// How much each caller may ask for.
    pub limits: CallLimits,
}

/// How much a caller may ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// Requests within a minute.
    pub per_minute: Option<u32>,
    /// Requests that wait for their answer at once.
    pub at_once: Option<u32>,
}

/// Callers by name.
pub type Principals = IndexMap<String, KnownPrincipal>;

/// What the config says of a caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownPrincipal {
    /// Besides those that it comes with.
    pub roles: Vec<String>,
    /// In place of those for all.
    pub limits: CallLimits,
}

/// One server of a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// As the config calls it.
    pub name: UpstreamName,
    /// How it is reached, or why it cannot be.
    pub transport: Result<Transport, String>,
    /// Put before its tools' names.
    pub prefix: String,
    /// Wait for its handshake.
    pub handshake: Duration,
    /// A call without answer or progress.
    pub call_idle: Duration,
    /// A call as a whole.
    pub call_total: Duration,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// As a child process.
    Stdio(Program),
    /// Over Streamable HTTP.
    Http(Endpoint),
}

fn call_limits(per_minute: Option<u32>, at_once: Option<u32>) -> CallLimits {
    CallLimits { per_minute, at_once }
}

fn known(raw: RawPrincipal) -> KnownPrincipal {
    KnownPrincipal { limits: call_limits(raw.calls_per_minute, raw.calls_at_once), roles: raw.roles }
}

impl Default for Config {
    fn default() -> Self {
        Self::checked(RawConfig::default(), Vec::new(), Path::new(""))
    }
}

impl Config {
    /// Names of headers that upstreams want of callers.
    pub fn caller_headers(&self) -> impl Iterator<Item = &str> {
        let remote = self.upstreams.iter().filter_map(|upstream| match &upstream.transport {
            Ok(Transport::Http(endpoint)) => Some(endpoint),
            _ => None,
        });
        remote.flat_map(|endpoint| endpoint.caller_headers.values()).map(String::as_str)
    }

    /// Fills in what the file leaves out; paths start at `folder`.
    pub(super) fn checked(raw: RawConfig, upstreams: Vec<Upstream>, folder: &Path) -> Self {
        let in_folder = |paths: Vec<String>| paths.into_iter().map(|path| folder.join(path)).collect();
        Self {
            upstreams,
            left_out: Vec::new(),
            maps: in_folder(raw.maps),
            skills: raw.skills.into_iter().map(|raw| raw.checked(folder)).collect(),
            trust: raw.trust.rules(),
            keys: raw.trust.keys,
            exposure: raw.exposure,
            intent: raw.intent,
            catalog_budget_tokens: raw.catalog_budget_tokens.unwrap_or(limits::CATALOG_TOKENS),
            list_budget_tokens: raw.list_budget_tokens.unwrap_or(limits::LIST_TOKENS),
            start_wait: raw.start_wait_ms.map_or(limits::START_WAIT, Duration::from_millis),
            line_limit_bytes: raw.line_limit_bytes.unwrap_or(limits::LINE_BYTES),
            key_secret: raw.key_secret,
            is_concealing: raw.conceal,
            is_pass_through: raw.pass_through,
            beyond_tools: raw.beyond_tools,
            watch: raw.watch,
            http: Http {
                hosts: raw.http.allowed_hosts,
                origins: raw.http.allowed_origins,
                sessions: raw.http.sessions.unwrap_or(limits::SESSIONS),
                session_idle: raw.http.session_idle_s.map_or(limits::SESSION_IDLE, Duration::from_secs),
                auth: raw.http.auth.map(|raw| auth::checked(raw, folder)),
                limits: call_limits(raw.http.limits.calls_per_minute, raw.http.limits.calls_at_once),
            },
            search: Search {
                encoder: models::encoder(raw.search.encoder, folder),
                reranker: raw.search.reranker.map(|raw| models::reranker(raw, folder)),
                cache: raw.search.cache.map(|path| folder.join(path)),
                words_weight: raw.search.words_weight.unwrap_or(limits::WORDS_WEIGHT),
            },
            index: Index {
                file: raw.index.file.map(|path| folder.join(path)),
                budget_tokens: raw.index.budget_tokens.unwrap_or(limits::INDEX_TOKENS),
            },
            scan: Scan { patterns: in_folder(raw.scan.patterns), ignored: raw.scan.ignore },
            audit: raw.audit.map(|raw| AuditConfig {
                file: folder.join(raw.file),
                has_arguments: raw.arguments,
                secrets: raw.secrets,
                max_bytes: raw.max_bytes.unwrap_or(limits::AUDIT_BYTES),
                keep: raw.keep.unwrap_or(limits::AUDIT_KEPT),
                is_strict: raw.on_failure == OnFailure::Refuse,
            }),
            approvals: None,
            pins: Pins { mode: raw.pins, file: raw.lock.map(|path| folder.join(path)) },
            principals: raw.principals.into_iter().map(|(name, raw)| (name, known(raw))).collect(),
            rules: raw.rules,
        }
    }

    /// Takes over from the config `running` what cannot be changed while clients are served; returns the names of those
    /// members that differ.
    pub fn keep_fixed(&mut self, running: &Self) -> Vec<&'static str> {
        fn keep<T: PartialEq + Clone>(new: &mut T, old: &T) -> bool {
            let is_other = new != old;
            new.clone_from(old);
            is_other
        }
        let fixed = [
            ("key-secret", keep(&mut self.key_secret, &running.key_secret)),
            ("line-limit-bytes", keep(&mut self.line_limit_bytes, &running.line_limit_bytes)),
            ("start-wait-ms", keep(&mut self.start_wait, &running.start_wait)),
            ("audit", keep(&mut self.audit, &running.audit)),
            ("watch", keep(&mut self.watch, &running.watch)),
            ("http", keep(&mut self.http, &running.http)),
            ("search.encoder", keep(&mut self.search.encoder, &running.search.encoder)),
            ("search.reranker", keep(&mut self.search.reranker, &running.search.reranker)),
            ("search.cache", keep(&mut self.search.cache, &running.search.cache)),
        ];
        fixed.into_iter().filter(|(_, is_other)| *is_other).map(|(name, _)| name).collect()
    }
}
