//! Floor 1, the configuration: from a raw file to a checked [`Config`], with all findings at once. Must not know what the
//! gate makes of it. Read `load` first.

mod load;
mod raw;
mod resolve;
mod variables;

pub use load::{
    Config, Encoder, Http, Index, Loaded, PrincipalRoles, Search, Transport, Upstream, load_file, load_text, schema,
};
pub use raw::{BeyondTools, Exposure, Intent, Rule, Watch};
pub use resolve::{ad_hoc, choose};
pub use variables::Environment;
