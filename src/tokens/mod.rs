//! Floor 1, exact token counts, for reports. Loading a tokenizer's tables takes a while, so the proxy itself goes by
//! `model::tool::estimate_tokens`.

mod tokenizer;

pub use tokenizer::Tokenizer;
