//! Floor 2, what is on offer at one moment: the registry of tools, the skills with what they open, and the store that
//! readers take the current [`Snapshot`] from. Must not know who is connected. Read `snapshot` first.

mod auto;
mod finding;
mod inspect;
mod lint;
mod lint_words;
mod pin;
mod registry;
mod scanned;
mod skeleton;
mod snapshot;
mod store;
mod twins;

pub use finding::semantic;
pub use inspect::{CLIENTS, ClientLimits};
pub use lint::{Lint, lint};
pub use pin::{Doubt, Unaccepted};
pub use registry::{Registered, Registry, UpstreamTools};
pub use scanned::{scan_files, scan_skills};
pub use skeleton::Skeleton;
pub use snapshot::{CatalogSkill, Inputs, OpenSkills, Origin, SkillFor, Snapshot, UpstreamFacts};
pub use store::SnapshotStore;
