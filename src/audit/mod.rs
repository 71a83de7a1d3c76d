//! Floor 3, the audit: one line of JSON for every decision and call, each with the digest of the line before. Must not know
//! what is decided. Read `journal` first.

mod chain;
mod journal;
mod redact;
mod verify;

pub use journal::{Audit, AuditError};
pub use redact::Redaction;
pub use verify::{Broken, Verified, files_of, verify};
