//! Floor 3, what upstreams and skills were when somebody looked at them last: `gatekey.lock`, and how that differs from what
//! they are now. Must not know how they are looked at. Read `file` first.

mod compare;
mod file;
mod pinned;
mod text;

pub use compare::{Change, Difference, Subject, compare};
pub use file::{Lock, LockError, LockedTool, LockedUpstream};
pub use pinned::Pinned;
