//! The shape of `gatekey.toml` as its author writes it. The JSON Schema is made from here, and nothing but the schema
//! checks shapes.

use std::borrow::Cow;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::raw_trust::{RawScan, RawSkillFolder, RawTrust};
use crate::model::program::Network;

/// The configuration of gatekey.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RawConfig {
    /// Version of this format: 1.
    #[schemars(range(min = 1))]
    #[expect(dead_code, reason = "read before the rest, to refuse a newer file by name")]
    pub(super) version: u64,
    /// The servers, in order of precedence: on a name clash the first one keeps the name.
    #[serde(default)]
    pub(super) upstreams: IndexMap<String, RawUpstream>,
    /// Gating maps, relative to this file. Without one each upstream becomes a skill of its own.
    #[serde(default)]
    pub(super) maps: Vec<String>,
    /// Folders with skills, relative to this file: a path, or a table that also says how far they are trusted.
    #[serde(default)]
    #[schemars(with = "Vec<RawSkillFolder>")]
    pub(super) skills: Vec<RawSkillFolder>,
    /// How opened tools are reached.
    #[serde(default)]
    pub(super) exposure: Exposure,
    /// Whether calls carry a sentence that says what they are for.
    #[serde(default)]
    pub(super) intent: Intent,
    /// Tokens of the catalogue, estimated. Default 1500.
    #[schemars(range(min = 100, max = 100_000))]
    pub(super) catalog_budget_tokens: Option<usize>,
    /// Tokens by which the list of a legacy session may grow, estimated. Default 10000.
    #[schemars(range(max = 1_000_000))]
    pub(super) list_budget_tokens: Option<usize>,
    /// How long the first list waits for upstreams, in milliseconds. Default 2000.
    #[schemars(range(max = 60_000))]
    pub(super) start_wait_ms: Option<u64>,
    /// Longest message, in bytes. Default 67108864.
    #[schemars(range(min = 65_536))]
    pub(super) line_limit_bytes: Option<usize>,
    /// Secret of the keys that `skill_load` returns, for replicas that share them. Default: random per process.
    pub(super) key_secret: Option<String>,
    /// Whether a tool that a principal may not use is answered as if it did not exist. Default false.
    #[serde(default)]
    pub(super) conceal: bool,
    /// Opens and lists every tool, as a proxy without a gate does. Rules hold all the same. Default false.
    #[serde(default)]
    pub(super) pass_through: bool,
    /// Whether resources, prompts and whatever else is no tool can be used of an upstream none of whose tools is open.
    #[serde(default)]
    pub(super) beyond_tools: BeyondTools,
    /// How changes of this file, of maps and of skills are noticed while clients are served.
    #[serde(default)]
    pub(super) watch: Watch,
    /// How clients are served over HTTP (`--http`).
    #[serde(default)]
    pub(super) http: RawHttp,
    /// How skills and tools are found.
    #[serde(default)]
    pub(super) search: RawSearch,
    /// The list of skills as a file that clients load.
    #[serde(default)]
    pub(super) index: RawIndex,
    /// What skills may do by how far they are trusted.
    #[serde(default)]
    pub(super) trust: RawTrust,
    /// What skills and tools' definitions are looked through for.
    #[serde(default)]
    pub(super) scan: RawScan,
    /// What is written down of every decision and call.
    #[serde(default)]
    #[schemars(with = "RawAudit")]
    pub(super) audit: Option<RawAudit>,
    /// What becomes of tools that are not as `gatekey lock` recorded them. Default: `enforce` where there is a lock file.
    #[serde(default)]
    #[schemars(with = "PinMode")]
    pub(super) pins: Option<PinMode>,
    /// The lock file, relative to this file. Default: `gatekey.lock` beside it.
    pub(super) lock: Option<String>,
    /// Who there is: by the name of `--as` or of a token, or as `ISSUER:claim`.
    #[serde(default)]
    pub(super) principals: IndexMap<String, RawPrincipal>,
    /// Who may use what. Without a rule for a caller, everything is allowed.
    #[serde(default)]
    pub(super) rules: Vec<Rule>,
}

/// One server.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RawUpstream {
    /// Program of a server over stdio; relative to this file if it has a separator.
    pub(super) command: Option<String>,
    /// Its arguments.
    #[serde(default)]
    pub(super) args: Vec<String>,
    /// Variables it gets besides the usual ones (PATH, HOME, LANG …).
    #[serde(default)]
    pub(super) env: IndexMap<String, String>,
    /// Names of variables that it inherits besides the usual ones.
    #[serde(default)]
    pub(super) inherit_env: Vec<String>,
    /// Folder it runs in, relative to this file. Default: where gatekey runs.
    pub(super) cwd: Option<String>,
    /// What it may reach, on Linux: nothing but what is named here and what programs need to start. Without this table it may
    /// reach what gatekey may.
    #[serde(default)]
    #[schemars(with = "RawSandbox")]
    pub(super) sandbox: Option<RawSandbox>,
    /// Address of a server over Streamable HTTP.
    pub(super) url: Option<String>,
    /// Headers sent to it.
    #[serde(default)]
    pub(super) headers: IndexMap<String, String>,
    /// Certificates (PEM) to trust besides the system's; relative to this file.
    pub(super) ca_file: Option<String>,
    /// Headers whose values each caller brings: the server's name of each, and that by which callers send it.
    #[serde(default)]
    pub(super) caller_headers: IndexMap<String, String>,
    /// How tokens for it are got.
    #[serde(default)]
    #[schemars(with = "RawOAuth")]
    pub(super) oauth: Option<RawOAuth>,
    /// Put before all of its tools' names.
    #[serde(default)]
    pub(super) prefix: String,
    /// Wait for its handshake, in milliseconds. Default 60000.
    #[schemars(range(min = 100))]
    pub(super) handshake_timeout_ms: Option<u64>,
    /// A call without answer or progress for this long is given up, in milliseconds. Default 300000.
    #[schemars(range(min = 100))]
    pub(super) call_idle_timeout_ms: Option<u64>,
    /// A call is given up after this long, in milliseconds. Default 3600000.
    #[schemars(range(min = 100))]
    pub(super) call_timeout_ms: Option<u64>,
    /// Leaves it out.
    #[serde(default)]
    pub(super) disabled: bool,
}

/// What is written down of every decision and call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RawAudit {
    /// The file, relative to this one. Another process with the same file writes into `NAME-2` beside it.
    pub(super) file: String,
    /// Whether arguments of calls are written too, without secrets. Default false.
    #[serde(default)]
    pub(super) arguments: bool,
    /// Names of arguments that are secrets, besides those that say so themselves (password, token, …).
    #[serde(default)]
    pub(super) secrets: Vec<String>,
    /// A file over this is put aside, in bytes. Default 67108864.
    #[schemars(range(min = 1024))]
    pub(super) max_bytes: Option<u64>,
    /// Files that are kept besides. Default 9.
    #[schemars(range(max = 10_000))]
    pub(super) keep: Option<usize>,
    /// What becomes of a call whose record cannot be written.
    #[serde(default)]
    pub(super) on_failure: OnFailure,
}

/// What becomes of a call whose record cannot be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OnFailure {
    /// It is made; the next record says how many are missing.
    #[default]
    Continue,
    /// It is not made.
    Refuse,
}

/// What a server over stdio may reach.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RawSandbox {
    /// Files and folders that it may read, relative to this file, besides its `cwd`.
    #[serde(default)]
    pub(super) read: Vec<String>,
    /// Files and folders that it may read and write, relative to this file.
    #[serde(default)]
    pub(super) write: Vec<String>,
    /// Whether it may use the network, or the TCP ports that it may connect to; 53 among them opens UDP, too. Default false.
    #[serde(default)]
    pub(super) network: RawNetwork,
}

/// Yes or no, or a list of ports.
#[derive(Debug, Default)]
pub(super) struct RawNetwork(pub(super) Network);

impl<'de> Deserialize<'de> for RawNetwork {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Value::deserialize(deserializer)? {
            Value::Bool(true) => Network::Open,
            Value::Bool(false) => Network::Closed,
            ports => match Vec::<u16>::deserialize(ports).map_err(serde::de::Error::custom)? {
                ports if ports.is_empty() => Network::Closed,
                ports => Network::Ports(ports),
            },
        }))
    }
}

impl JsonSchema for RawNetwork {
    fn schema_name() -> Cow<'static, str> {
        "RawNetwork".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "type": ["boolean", "array"],
            "items": {"type": "integer", "minimum": 1, "maximum": 65_535},
        })
    }
}

/// How an upstream's tokens are got (OAuth 2.1).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RawOAuth {
    /// `code`: a user logs in (`gatekey login`). `client`: by client-id and client-secret alone. Default: code.
    #[serde(default)]
    pub(super) grant: RawGrant,
    /// By which the authorization server knows gatekey. Without it gatekey registers there.
    pub(super) client_id: Option<String>,
    /// Of a client that can keep one.
    pub(super) client_secret: Option<String>,
    /// What is asked for. Default: what the server proposes.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
    /// Whether each caller logs in (`gatekey login NAME --as CALLER`). Default false: one login for all.
    #[serde(default)]
    pub(super) per_caller: bool,
    /// Whether the authorization server may be at a private address. Default false.
    #[serde(default)]
    pub(super) private_addresses: bool,
}

/// Who agrees to a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum RawGrant {
    /// A user, who logs in.
    #[default]
    Code,
    /// Whoever gave us id and secret.
    Client,
}

/// The front over HTTP.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RawHttp {
    /// Names in the `Host` header that are served besides this machine's own (localhost, 127.0.0.1, ::1); `*` is any.
    #[serde(default)]
    pub(super) allowed_hosts: Vec<String>,
    /// Origins of web pages that are served besides those of this machine, such as `https://ui.example.com`.
    #[serde(default)]
    pub(super) allowed_origins: Vec<String>,
    /// Sessions at once, of clients up to revision 2025-11-25. Default 10000.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(super) sessions: Option<usize>,
    /// A session that is not used for this long ends, in seconds. Default 1800.
    #[schemars(range(min = 1))]
    pub(super) session_idle_s: Option<u64>,
    /// Who may come. Without it everybody who reaches the address is the caller of `--as`.
    #[serde(default)]
    #[schemars(with = "RawAuth")]
    pub(super) auth: Option<RawAuth>,
    /// How much each caller may ask for. Default: no limit.
    #[serde(default)]
    pub(super) limits: RawLimits,
}

/// Who may come over HTTP: holders of tokens, of JWTs, or of either.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RawAuth {
    /// The file of tokens that `gatekey token` keeps, relative to this file.
    pub(super) tokens: Option<String>,
    /// What clients know this server by, such as `https://gw.example.com/mcp` (RFC 9728, RFC 8707). Default: the address it
    /// listens at.
    pub(super) resource: Option<String>,
    /// Who gives out JWTs; a caller is `NAME:` and what `principal-claim` says.
    #[serde(default)]
    pub(super) issuers: IndexMap<String, RawIssuer>,
}

/// One that gives out JWTs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RawIssuer {
    /// Its identifier, as `iss` has it: an `https` URL, or an `http` one of this machine.
    pub(super) issuer: String,
    /// What `aud` must name. Default: the resource.
    pub(super) audience: Option<String>,
    /// Where its keys are. Default: where its metadata says (RFC 8414, OpenID Connect Discovery).
    pub(super) jwks_url: Option<String>,
    /// Certificates (PEM) to trust besides the system's; relative to this file.
    pub(super) ca_file: Option<String>,
    /// The claim that tells callers apart. Default `sub`.
    pub(super) principal_claim: Option<String>,
    /// The claim with the roles, a list or words; dots lead into objects, as in `realm_access.roles`. Default `roles`.
    pub(super) roles_claim: Option<String>,
    /// Roles that come with a scope.
    #[serde(default)]
    pub(super) scopes: IndexMap<String, Vec<String>>,
    /// Scopes without which nothing is served.
    #[serde(default)]
    pub(super) required_scopes: Vec<String>,
}

/// How much a caller may ask for over HTTP.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RawLimits {
    /// Requests within a minute, all of which may come at once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(super) calls_per_minute: Option<u32>,
    /// Requests that wait for their answer at once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(super) calls_at_once: Option<u32>,
}

/// Search over skills and tools.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RawSearch {
    /// What compares meanings: `embedded` (the encoder within the program), `off` (words only), a GGUF file of the same
    /// kind, relative to this file, or a table that names a model for ONNX Runtime. Default: `embedded`.
    #[serde(default)]
    #[schemars(with = "RawEncoder")]
    pub(super) encoder: Option<RawEncoder>,
    /// A model that puts the best hits in order. Default: none.
    #[serde(default)]
    #[schemars(with = "RawReranker")]
    pub(super) reranker: Option<RawReranker>,
    /// Folder in which the encoder's vectors are kept, relative to this file. Default: `gatekey` in the user's cache folder.
    pub(super) cache: Option<String>,
    /// What words count beside meaning. Default 1.
    #[schemars(range(min = 0, max = 100))]
    pub(super) words_weight: Option<f32>,
}

/// What compares meanings: a word or a file, or a table.
#[derive(Debug)]
pub(super) enum RawEncoder {
    Named(String),
    Onnx(RawOnnxEncoder),
}

impl<'de> Deserialize<'de> for RawEncoder {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(name) => Ok(Self::Named(name)),
            table => RawOnnxEncoder::deserialize(table).map(Self::Onnx).map_err(serde::de::Error::custom),
        }
    }
}

// One schema for both, as "none of these fits" would not say what is wrong with a table.
impl JsonSchema for RawEncoder {
    fn schema_name() -> Cow<'static, str> {
        "RawEncoder".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = RawOnnxEncoder::json_schema(generator);
        schema.insert("type".into(), json!(["string", "object"]));
        schema
    }
}

/// An encoder for ONNX Runtime: exactly one of `folder` and `model` is given.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RawOnnxEncoder {
    /// Folder with `model.onnx` (or `onnx/model.onnx`), `tokenizer.json`, `config.json`, `special_tokens_map.json` and
    /// `tokenizer_config.json`, relative to this file.
    pub(super) folder: Option<String>,
    /// Name of a model on the hub, one of fastembed's list, such as `intfloat/multilingual-e5-base`. It is fetched once.
    pub(super) model: Option<String>,
    /// The library of ONNX Runtime, 1.24 or newer, relative to this file. Default: what ORT_DYLIB_PATH names, else the
    /// system's.
    pub(super) runtime: Option<String>,
    /// Put before a query. Default: `query: ` for models with e5 in their name, else nothing.
    pub(super) query_prefix: Option<String>,
    /// Put before what can be found. Default: `passage: ` for models with e5 in their name, else nothing.
    pub(super) passage_prefix: Option<String>,
    /// How a folder's model makes one vector of those of all tokens. Default: `mean`.
    #[serde(default)]
    #[schemars(with = "RawPooling")]
    pub(super) pooling: Option<RawPooling>,
}

/// How one vector is made of those of all tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum RawPooling {
    /// Their mean.
    Mean,
    /// The first one.
    Cls,
}

/// A reranker for ONNX Runtime, a cross-encoder: exactly one of `folder` and `model` is given.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RawReranker {
    /// Folder with the files that an encoder's folder has, relative to this file.
    pub(super) folder: Option<String>,
    /// Name of a reranker on the hub, one of fastembed's list, such as `BAAI/bge-reranker-base`. It is fetched once.
    pub(super) model: Option<String>,
    /// The library of ONNX Runtime, as for the encoder.
    pub(super) runtime: Option<String>,
    /// Best hits that are put in order. Default 20.
    #[schemars(range(min = 2, max = 200))]
    pub(super) hits: Option<usize>,
}

/// The list of skills as a file.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RawIndex {
    /// The file, relative to this one. `gatekey index` writes it, and `gatekey proxy` keeps it fresh. Where it has other
    /// text, the list goes between the lines `<!-- gatekey:index start -->` and `<!-- gatekey:index end -->`. Default: none.
    pub(super) file: Option<String>,
    /// Its tokens, estimated. Default 1000.
    #[schemars(range(min = 200, max = 100_000))]
    pub(super) budget_tokens: Option<usize>,
}

/// One caller.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RawPrincipal {
    /// Names that rules refer to.
    #[serde(default)]
    pub(super) roles: Vec<String>,
    /// In place of that of `http.limits`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(super) calls_per_minute: Option<u32>,
    /// In place of that of `http.limits`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(super) calls_at_once: Option<u32>,
}

/// Allows or denies by name pattern (`*` any text, `?` one character; of tools also `upstream:pattern` for one upstream
/// only). A denial always holds; where a caller has any allowance of a kind, only what one of them names is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rule {
    /// Callers it holds for. With neither `principals` nor `roles` it holds for everybody.
    #[serde(default)]
    pub principals: Vec<String>,
    /// Roles it holds for.
    #[serde(default)]
    pub roles: Vec<String>,
    /// Tools allowed.
    #[serde(default)]
    pub allow: Vec<String>,
    /// Tools denied.
    #[serde(default)]
    pub deny: Vec<String>,
    /// Skills allowed, by name.
    #[serde(default)]
    pub allow_skills: Vec<String>,
    /// Skills denied.
    #[serde(default)]
    pub deny_skills: Vec<String>,
    /// Resources and templates allowed, by URI, and prompts, by name; besides those that `allow` names.
    #[serde(default)]
    pub allow_resources: Vec<String>,
    /// Such denied, besides those that `deny` names.
    #[serde(default)]
    pub deny_resources: Vec<String>,
}

/// How opened tools are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Exposure {
    /// As `list` in legacy sessions whose client lists again after a change, else as `dispatch`.
    #[default]
    Auto,
    /// They join a legacy session's list.
    List,
    /// Through `tool_call_read` and `tool_call_write` only.
    Dispatch,
}

/// Whether calls carry a sentence that says what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Intent {
    /// No such argument.
    #[default]
    Off,
    /// An argument that may be left out.
    Optional,
    /// An argument that must be given.
    Required,
}

/// Whether what is no tool can be used of an upstream none of whose tools is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BeyondTools {
    /// Resources, prompts, completions and the like can be used at all times.
    #[default]
    Readable,
    /// They are closed as long as every tool of their upstream is.
    Closed,
}

/// What becomes of tools that are not as they were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PinMode {
    /// Those that are new or changed are withheld: neither listed, nor described, nor called.
    Enforce,
    /// They are used; `skill_load` says it.
    Warn,
    /// Nothing.
    Off,
}

/// How changes of files are noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Watch {
    /// The system tells; where it cannot, as on network file systems, as `poll`.
    #[default]
    Auto,
    /// They are looked at every 2 s.
    Poll,
    /// Not at all: files are read at the start only.
    Off,
}
