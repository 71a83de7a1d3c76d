//! gatekey: one binary between an agent and its MCP servers. The agent sees a small catalogue of skills; loading a skill
//! returns its playbook *and* opens that module's tools; all else stays closed, in the list and at the call.
//!
//! # Bird's eye view
//!
//! A client's message comes in by [`wire`] or [`front`], is answered by [`gateway`] from the current [`catalog::Snapshot`],
//! and goes, if [`gate::policy::Policy::decide`] allows, to one server of [`upstream`], with a few bytes changed and all
//! others as they came. [`reload`] is the single writer of snapshots; [`app`] puts everything together; [`cli`] is what is
//! typed.
//!
//! ```text
//!       client (stdio)   clients (HTTP)
//!                 │       │ front
//!                 │ raw lines
//!   wire ── gateway ── session        data plane: a request takes one snapshot and carries it
//!                 │  ╲
//!                 │   catalog::Snapshot ◄── reload   control plane: the only writer
//!                 │        ▲    ▲    ▲
//!                 │    config skill gate::map
//!              upstream (one link a server, started together, restarted with a pause; a process or HTTP)
//! ```
//!
//! # Floors
//!
//! A file uses its own folder and lower floors; folders on one floor do not see each other. `tests/it/architecture.rs`
//! reads the imports and holds this.
//!
//! | floor | folder | what it owns |
//! |---|---|---|
//! | 0 | [`model`] | the vocabulary: names, tools, callers, findings, limits, files with places |
//! | 1 | [`wire`] | passing over JSON, JSON-RPC envelopes, framing, id tables, HTTP, child processes, our own stdio, timers |
//! | 1 | [`config`] | `gatekey.toml` and clients' files → a checked config |
//! | 1 | [`files`] | files of ours, replaced as a whole by one writer at a time |
//! | 1 | [`skill`] | SKILL.md, read leniently; references |
//! | 1 | [`gate`] | gating maps, keys, the one decision |
//! | 1 | [`scan`] | looking through skills and tools' definitions for what is hardly meant well |
//! | 1 | [`search`] | an index of texts, found by words and by meaning, and how good rankings are; texts to vectors is the crate `encoder`, or a model that ONNX Runtime runs |
//! | 1 | [`tokens`] | exact token counts for reports |
//! | 2 | [`import`] | skills from folders, archives and repositories, within limits |
//! | 2 | [`oauth`] | tokens for servers that want OAuth: logging in, keeping, renewing |
//! | 2 | [`trust`] | how far each skill is trusted: approvals, signatures |
//! | 2 | [`catalog`] | exposed names, skills with what they open, the snapshot |
//! | 3 | [`upstream`] | one server's life: era, lists, restarts; the pool |
//! | 3 | [`session`] | who is connected, what is unlocked |
//! | 3 | [`audit`] | what was decided and called, a record a line, each bound to the one before |
//! | 3 | [`auth`] | who is calling over HTTP: tokens, JWTs, how much each may ask for |
//! | 3 | [`lock`] | what was recorded of upstreams and skills, and how it differs from what they are |
//! | 4 | [`gateway`] | every answer to a client; the meta-tools |
//! | 4 | [`reload`] | reading files when they change, building and publishing snapshots |
//! | 5 | [`front`] | Streamable HTTP towards clients |
//! | 5 | [`report`] | what sets of skills cost in tokens, from the very bytes that the gateway sends |
//! | 6 | [`app`] | wiring, start and stop order |
//! | 7 | [`cli`] | commands, output, exit codes |
//!
//! # Invariants
//!
//! 1. Floors 0 and 1 know no clock and, `wire` apart, no processes or network.
//! 2. Only `reload` publishes. Only `gateway` answers clients. Only `upstream` talks to servers; `auth` and `oauth`
//!    fetch keys and tokens.
//! 3. A request loads the snapshot once and carries it.
//! 4. The same snapshot and scope give the same bytes of `tools/list`.
//! 5. A broken file changes nothing that a client can see, and is visible in `check`.
//! 6. `Policy::decide` is the only code that answers "may this be called"; a property test walks the paths to it.
//! 7. A relayed body is never decoded and encoded again; where a name, id or token must change, the bytes around it stay.
//! 8. Nothing but `cli/output.rs` writes to stdout; on the stdio transport not even that.
//! 9. No task without an owner, no channel without a bound, no secret in a log.
//! 10. What a caller has of their own (session, key, task, credential, the connection by it) serves no other caller.
//!
//! # Reading order
//!
//! `model/name.rs`, `gate/policy.rs`, `catalog/snapshot.rs`, `gateway/dispatch.rs`, `gateway/call.rs`, `wire/peer.rs`,
//! `upstream/link.rs`. Then one call in your head: `skill_load`, then `tool_call_read`. Then what is no tool:
//! `gateway/relay.rs` (what clients ask), `gateway/upward.rs` (what servers ask and tell), `front/endpoint.rs` (HTTP).
//! What all of it costs: `report/said.rs`, `report/budget.rs`.
//!
//! # How we write
//!
//! Simple first; a newcomer understands the code in the order in which data flows. Fields and errors say what is needed to
//! act; every text for clients is made in `gateway/error.rs`, every text for people in `cli`. Numbers live in
//! `model/limits.rs` with their reason. Comments say why. One word, one meaning: upstream, downstream, session, catalog,
//! registry, skill, gate, gating map, prefix, key, policy, snapshot, generation, link, envelope, era, exposure, principal.

pub mod app;
pub mod audit;
pub mod auth;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod files;
pub mod front;
pub mod gate;
pub mod gateway;
pub mod import;
pub mod lock;
pub mod model;
pub mod oauth;
pub mod reload;
pub mod report;
pub mod scan;
pub mod search;
pub mod session;
pub mod skill;
pub mod tokens;
pub mod trust;
pub mod upstream;
pub mod wire;
