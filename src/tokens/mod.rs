//! Floor 1, token counts for reports, exact but for those that say otherwise. Loading a tokenizer's tables takes a while, so
//! the proxy itself goes by `model::tool::estimate_tokens`. Read `tokenizer` first.

mod counter;
mod tokenizer;

pub use counter::{Counter, Part};
pub use tokenizer::Tokenizer;
