//! Floor 3, who is connected: one [`Session`] a connection, with what a legacy client unlocked and how it behaves about
//! lists; and the file of what sessions were sent. Must not know what goes over the wire.

mod record;
#[expect(clippy::module_inception, reason = "the folder is named after what it is about, the file after its type")]
mod session;

pub use record::{SentRecord, read_sent, servers_digest, write_sent};
pub use session::{Listener, LogLevel, Session, State};
