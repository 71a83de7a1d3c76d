//! Floor 1, files of ours: replaced as a whole, by one writer at a time, and known to be replaced.

mod put;
mod stamp;

pub use put::{lock, target, write, write_private};
pub use stamp::Stamp;
