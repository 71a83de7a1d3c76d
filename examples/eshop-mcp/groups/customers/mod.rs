//! Customers: who buys, where it goes, and how much the shop lends them.
//!
//! `view.rs` has what tools show of a customer, `edit.rs` how every write opens and closes one and the rules that
//! several writes share.

mod address;
mod create;
mod credit;
mod edit;
mod list;
mod merge;
mod read;
mod table;
#[cfg(test)]
mod tests;
mod update;
mod view;

pub(crate) use table::tools;
