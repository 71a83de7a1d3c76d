//! Floor 3, the servers we call: each one's life from start to restart, and the pool of them. Only this folder talks to
//! servers. Read `link` first.

mod handshake;
mod link;
mod lists;
mod pool;
mod reader;
mod salvage;

pub use link::{Failure, Link, OnFailure, Phase, View};
pub use pool::Pool;
