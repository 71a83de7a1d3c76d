//! Floor 3, who is calling over HTTP: tokens of our own, JWTs of others, and how much each caller may ask for. Must not
//! know what a caller may do, nor how a refusal looks on the wire. Read `auth` first.
//!
//! **Source:** RFC 6750 (bearer tokens), RFC 7519 and 8725 (JWT and its best practices), RFC 7517 (JWKS), RFC 8414 and
//! OpenID Connect Discovery (metadata), the specification's authorization page.

#[expect(clippy::module_inception, reason = "the folder is named after what it is about, the file after its type")]
mod auth;
mod claims;
mod jwt;
mod keys;
mod limiter;
mod ring;
mod token_file;
mod tokens;

pub use auth::{Auth, AuthError, Caller, Credential, Refusal};
pub use limiter::{Limiter, Permit, TooMany};
pub use token_file::{Token, TokenFile, TokenFileError, new_token};
