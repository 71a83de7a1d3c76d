//! Floor 2, tokens for servers that want OAuth: how a user logs in, where logins are kept, and what goes with each request.
//! The flows themselves are rmcp's. Read `login` first.
//!
//! **Source:** the specification's authorization pages; RFC 6749, 7636, 8414, 8707, 9207, 9728.

mod bearer;
mod failure;
mod login;
mod manager;
mod store;

pub use bearer::Bearer;
pub use login::Login;
pub use store::Slot;
