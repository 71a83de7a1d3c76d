//! Floor 3, who is connected: one [`Session`] a connection, with what a legacy client unlocked and how it behaves about
//! lists. Must not know what goes over the wire.

#[expect(clippy::module_inception, reason = "the folder is named after what it is about, the file after its type")]
mod session;

pub use session::{Listener, LogLevel, Session, State};
