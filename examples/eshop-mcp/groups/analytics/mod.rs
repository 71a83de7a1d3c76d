//! Analytics: reports over orders, customers, goods, visits, papers and parcels. They only read.
//!
//! `facts.rs` says what counts as a sale and in which currency, `period.rs` which days are looked at and compared,
//! `figures.rs` how numbers are shown. Each other file is one report, or two that share their data.

mod accounts;
mod anomalies;
mod basket;
mod carriers;
mod categories;
mod churn;
mod cohorts;
mod conversion;
mod customers;
mod dead;
mod facts;
mod figures;
mod forecast;
mod funnel;
mod ltv;
mod margin;
mod payments;
mod period;
mod products;
mod returns;
mod revenue;
mod series;
mod table;
#[cfg(test)]
mod tests;
mod turnover;

pub(crate) use table::tools;
