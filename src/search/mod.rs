//! Floor 1, finding: by words, by meaning, and by both. An [`Index`] is immutable; what an encoder said of texts is kept by
//! [`Semantic`] for all of them. Must not know what the entries are.

mod analysis;
mod encoder;
mod fault;
mod fuse;
mod index;
mod lexical;
mod measure;
#[cfg_attr(not(feature = "fastembed"), path = "no_onnx.rs")]
mod onnx;
mod prior;
mod rerank;
mod semantic;
mod text;

pub use analysis::Analyzer;
pub use index::{Basis, Entry, Found, Hit, Index};
pub use measure::{MEASURES, mean, measures};
pub use prior::prior;
pub use semantic::{Choice, PassageId, Semantic};
