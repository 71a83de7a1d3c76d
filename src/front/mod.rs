//! Floor 5, Streamable HTTP towards clients, both eras on one endpoint: who may connect, which session a request is of, and
//! how answers become bodies. Must not know what a message is about, beyond the headers that repeat it. Read `server`
//! first, then `endpoint`.
//!
//! **Source:** the specification's transport pages, 2025-03-26 to 2026-07-28.

mod access;
mod body;
mod checks;
mod door;
mod endpoint;
mod grants;
mod server;
mod sessions;
mod stream;

pub use door::Clients;
pub use server::Front;
