//! The groups of tools. To add one: a module, and its line in [`GROUPS`].

mod core;
mod table;
#[cfg(test)]
mod tests;

use crate::tool::Entry;

pub(crate) use table::entries;

/// All groups, by the prefix of their tools' names.
pub(crate) const GROUPS: &[(&str, fn() -> Vec<Entry>)] = &[("core", core::tools)];
