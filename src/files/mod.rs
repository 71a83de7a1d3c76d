//! Floor 1, files of ours: replaced as a whole, by one writer at a time.

mod put;

pub use put::{lock, target, write, write_private};
