//! The Skills extension (SEP-2640): our skills as resources, upstreams' own among them. Reading opens nothing.

use super::dispatch::{Gateway, Request};
use crate::upstream::Offering;

/// The extension's name.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/skills";

impl Gateway {
    /// Answers a request about a skill of ours; says whether it was one.
    pub(super) fn answer_own_skill(&self, _request: &Request<'_>, _method: &str) -> bool {
        false
    }

    /// What of our own belongs into a list of upstreams' offers, as JSON.
    pub(super) fn own_entries(&self, _request: &Request<'_>, _offering: Offering) -> Vec<String> {
        Vec::new()
    }
}
