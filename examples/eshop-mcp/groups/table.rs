//! The one table of all tools.

use crate::{groups::GROUPS, tool::Entry};

/// Makes all tools, sorted by name.
pub(crate) fn entries() -> Vec<Entry> {
    let mut entries: Vec<Entry> = GROUPS.iter().flat_map(|(_, tools)| tools()).collect();
    entries.sort_by_key(|entry| entry.spec.name);
    entries
}
