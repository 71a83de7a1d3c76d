//! Floor 2, what is on offer at one moment: the registry of tools, the skills with what they open, and the store that
//! readers take the current [`Snapshot`] from. Must not know who is connected. Read `snapshot` first.

mod auto;
mod finding;
mod inspect;
mod lint;
mod lint_words;
mod registry;
mod skeleton;
mod snapshot;
mod store;
mod twins;

pub use finding::semantic;
pub use inspect::{CLIENTS, ClientLimits, hidden_in_skills};
pub use lint::{Lint, lint};
pub use registry::{Registered, Registry, UpstreamTools};
pub use skeleton::Skeleton;
pub use snapshot::{CatalogSkill, Inputs, OpenSkills, Origin, SkillFor, Snapshot, UpstreamFacts};
pub use store::SnapshotStore;
