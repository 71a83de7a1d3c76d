//! Floor 3, the servers we call: each one's life from start to restart, and the pool of them. Only this folder talks to
//! servers. Read `link` first.

mod clients;
mod credential;
mod handshake;
mod link;
mod lists;
mod offers;
mod pool;
mod process;
mod reader;
mod remote;
mod salvage;
mod subscribe;

pub use clients::{Clients, Message};
pub use link::{CallerId, Failure, Link, Owner, Phase, View};
pub use offers::{Capabilities, Offer, Offering};
pub use pool::Pool;
pub use salvage::salvaged;
