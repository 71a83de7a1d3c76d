//! Floor 4, the control plane: reads files again when they change, and is the single writer that builds snapshots and
//! publishes them. Must not know who reads them. Read `reloader` first.

mod disk;
mod places;
mod reloader;
mod vetting;
mod watch;

pub use disk::{Again, Files};
pub use reloader::Reloader;
pub(crate) use reloader::start_deadline;
pub use vetting::Vetting;
