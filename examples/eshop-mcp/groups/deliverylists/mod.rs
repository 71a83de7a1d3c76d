//! Delivery lists: what a person takes from the shelves for an order, from draft to confirmed.
//!
//! `view.rs` has what tools show of a list, `edit.rs` how every write opens and closes one. Confirming is where
//! goods leave the stock; see `confirm.rs` and `cancel.rs`.

mod cancel;
mod confirm;
mod create;
mod edit;
mod item;
mod list;
mod pick;
mod print;
mod table;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use table::tools;
