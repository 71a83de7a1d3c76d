//! Parcels: carriers, their branches, and the shipments that orders travel in.
//!
//! `terms.rs` has what carriers take, `view.rs` what tools show of a shipment. The group knows orders only by
//! their tables; it changes no order.

mod branches;
mod cancel;
mod carriers;
mod codes;
mod create;
mod label;
mod pdf;
mod shipments;
mod table;
mod terms;
#[cfg(test)]
mod tests;
mod track;
mod view;

pub(crate) use table::tools;
