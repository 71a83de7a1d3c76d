//! The chain: what of a line is bound by the next one.

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

/// The members of a record that hold it in its place.
#[derive(Debug, Deserialize)]
pub(super) struct Bound {
    /// From 1, in the order of writing.
    pub(super) seq: u64,
    /// The digest of the line before; empty for the first one.
    pub(super) prev: String,
    /// Of a record about a line before it that was not written to its end: the digest of that.
    pub(super) torn_sha256: Option<String>,
}

/// Lowercase hex SHA-256 of a line without its end.
pub(super) fn digest(line: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(line))
}
