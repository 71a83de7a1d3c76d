//! Floor 1, the configuration: from a raw file to a checked [`Config`], with all findings at once. Must not know what the
//! gate makes of it. Read `config` first, then `load`.

mod auth;
#[expect(clippy::module_inception, reason = "the folder is named after what it is about, the file after its type")]
mod config;
mod entry;
mod load;
mod models;
mod raw;
mod raw_trust;
mod resolve;
mod variables;

pub use auth::{Auth, Issuer, is_loopback};
pub use config::{
    AuditConfig, CallLimits, Config, Encoder, Http, Index, KnownPrincipal, Pins, Principals, Scan, Search, Transport,
    Upstream,
};
pub use load::{Loaded, load_file, load_text, raw_upstreams, schema};
pub use raw::{BeyondTools, Exposure, Intent, PinMode, Rule, Watch};
pub use resolve::{ad_hoc, choose};
pub use variables::Environment;
