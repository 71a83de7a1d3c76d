//! Floor 1, finding by words: what a text's terms are, and an index over entries made of several texts. Must not know what
//! the entries are.

mod analysis;
mod index;
mod measure;

pub use analysis::Analyzer;
pub use index::{Entry, Hit, Index};
pub use measure::{MEASURES, mean, measures};
