//! Counting the tokens of texts by a named tokenizer.

use std::fmt;

use tiktoken_rs::{cl100k_base_singleton, o200k_base_singleton};

/// Which tokenizer counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tokenizer {
    /// Of GPT-4o and later.
    O200kBase,
    /// Of GPT-4.
    Cl100kBase,
    /// A quarter of the bytes, for models whose tokenizer is not published: an estimate.
    Bytes,
}

/// Bytes of a token of the estimate.
const BYTES: usize = 4;

impl Tokenizer {
    /// Tokens of `text`, special ones counted as plain text. The first count loads the tables.
    pub fn count(self, text: &str) -> usize {
        let table = match self {
            Self::O200kBase => o200k_base_singleton(),
            Self::Cl100kBase => cl100k_base_singleton(),
            Self::Bytes => return self.count_bytes(text.len()),
        };
        table.encode_ordinary(text).len()
    }

    /// The estimate of a text of so many bytes.
    pub(super) fn count_bytes(self, n_bytes: usize) -> usize {
        n_bytes.div_ceil(BYTES)
    }

    /// Whether its counts are no real tokenizer's.
    pub fn is_estimate(self) -> bool {
        self == Self::Bytes
    }
}

impl fmt::Display for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::O200kBase => "o200k_base",
            Self::Cl100kBase => "cl100k_base",
            Self::Bytes => "bytes",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_published_tokenizers() {
        // **Source:** tiktoken's own documentation: "tiktoken is great!" has six tokens in both.
        for tokenizer in [Tokenizer::O200kBase, Tokenizer::Cl100kBase] {
            assert_eq!(tokenizer.count("tiktoken is great!"), 6, "{tokenizer}");
        }
        assert_eq!(Tokenizer::Bytes.count("tiktoken is great!"), 5);
    }
}
