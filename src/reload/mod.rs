//! Floor 4, the control plane: the single writer that builds snapshots and publishes them. Must not know who reads them.

mod reloader;

pub(crate) use reloader::start_deadline;
pub use reloader::{Files, Reloader};
