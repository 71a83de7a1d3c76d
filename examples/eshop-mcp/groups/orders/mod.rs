//! Orders: reading them, and everything that happens to one until it is delivered, cancelled or refunded.
//!
//! `view.rs` has what tools show of an order, `edit.rs` how every write opens and closes one, `stock.rs` what
//! writes do to the stock.

mod cancel;
mod create;
mod edit;
mod items;
mod list;
mod price;
mod read;
mod refund;
mod search;
mod split;
mod status;
mod stock;
mod table;
#[cfg(test)]
mod tests;
mod timeline;
mod update;
mod view;

pub(crate) use edit::{event, open, paid_cents, settle};
pub(crate) use stock::{contents, expire, release, reserve, take, untake, warehouse_id};
pub(crate) use table::tools;
