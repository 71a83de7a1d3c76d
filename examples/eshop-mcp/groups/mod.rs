//! The groups of tools. To add one: a module, and its line in [`GROUPS`].

mod analytics;
mod balikobot;
mod core;
mod customers;
mod deliverylists;
mod invoices;
mod orders;
mod store;
mod table;
#[cfg(test)]
mod tests;

use crate::tool::Entry;

pub(crate) use table::entries;

/// A prefix of tool names, and what makes the tools.
type Group = (&'static str, fn() -> Vec<Entry>);

/// All groups, by the prefix of their tools' names.
pub(crate) const GROUPS: &[Group] = &[
    ("analytics", analytics::tools),
    ("balikobot", balikobot::tools),
    ("core", core::tools),
    ("customers", customers::tools),
    ("deliverylists", deliverylists::tools),
    ("invoices", invoices::tools),
    ("orders", orders::tools),
    ("store", store::tools),
];
