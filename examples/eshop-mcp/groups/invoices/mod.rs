//! Invoices: papers about what customers owe, from the draft to the last reminder, and the payments for them.
//!
//! `view.rs` has what tools show of an invoice, `edit.rs` how every write opens and closes one, `lines.rs` the
//! arithmetic of VAT.

mod create;
mod credit;
mod edit;
mod issue;
mod lines;
mod list;
mod overdue;
mod pay;
mod payments;
mod read;
mod remind;
mod table;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use table::tools;
