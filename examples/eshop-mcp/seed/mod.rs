//! The shop's data: believable, the same in every run, made by code from a fixed number sequence.
//!
//! 60 products, 80 customers, about 400 orders from October 2025 to November 2026 with all their papers and
//! parcels. `fill.rs` has the order; `orders.rs` makes the orders up that most other tables follow from.

mod carriers;
mod catalog;
mod fill;
mod goods;
mod lcg;
mod notebook;
mod office;
mod order_rows;
mod orders;
mod papers;
mod parcels;
mod people;
mod stock;
mod visits;

pub(crate) use fill::fill;
