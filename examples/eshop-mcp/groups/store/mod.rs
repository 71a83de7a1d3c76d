//! The store: catalog, prices, shelves, suppliers.
//!
//! `view.rs` has what tools show of products and variants, `shelf.rs` how every write on the stock finds its
//! row and books the movement. What is free is what no open order and no reservation holds; reservations whose
//! day has passed count no more, see `expire` of the orders.

mod categories;
mod codes;
mod edit;
mod movements;
mod new_variant;
mod places;
mod price_set;
mod price_sql;
mod prices;
mod product_archive;
mod product_create;
mod product_update;
mod products;
mod reorder;
mod shelf;
mod stock_adjust;
mod stock_list;
mod stock_reserve;
mod stock_transfer;
mod table;
mod table_stock;
#[cfg(test)]
mod tests;
mod variants;
mod view;

pub(crate) use table::tools;
