//! The shop's data: believable, the same in every run, made by code from a fixed number sequence.

mod fill;
mod lcg;
mod office;

pub(crate) use fill::fill;
