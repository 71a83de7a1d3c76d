//! Texts to vectors: multilingual-e5-small with 4-bit weights, of which the vocabulary is cut to what 16 languages use; a
//! file of 29 MB that is part of the program. Similar texts have vectors with a large product, in whatever languages they
//! are. Needs no network and no other files. Where the weights come from: `model/README.md`.
//!
//! In the order of the data: `gguf` finds things in the file, `tokens` makes a text to numbers of word pieces, `bert` passes
//! them through the layers, of which `q4` does the products with weights and `math` the rest, and `vectors` is what comes of
//! it, compared by `products`.

mod bert;
mod gguf;
mod math;
mod products;
mod q4;
mod tokens;
mod vectors;

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

use bert::Bert;
use gguf::Gguf;
use tokens::Words;
pub use vectors::Vectors;

/// The file that is part of the program.
static EMBEDDED: &[u8] = include_bytes!("../model/e5-small.gguf");

/// Tokens that are computed together at most: what bounds memory (some 20 KB each).
const BATCH_TOKENS: usize = 256;

/// What a text is; the model was trained with these words before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// What somebody looks for.
    Query,
    /// What can be found.
    Passage,
}

impl Role {
    fn prefix(self) -> &'static str {
        match self {
            Self::Query => "query:",
            Self::Passage => "passage:",
        }
    }
}

/// Why a file is no encoder.
#[derive(Debug, thiserror::Error)]
#[error("read the encoder's file: {0}")]
pub struct Error(String);

impl Error {
    fn new(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

/// A loaded encoder: some 100 MB of memory, of which the file's pages are a third and the vocabulary is half.
pub struct Encoder {
    file: Cow<'static, [u8]>,
    bert: Bert,
    words: Words,
    digest: String,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Encoder({})", self.digest)
    }
}

impl Encoder {
    /// The encoder that is part of the program. Takes a quarter of a second.
    ///
    /// # Errors
    /// None that is known: the file is always the same.
    pub fn embedded() -> Result<Self, Error> {
        Self::new(Cow::Borrowed(EMBEDDED))
    }

    /// Reads a GGUF file of a BERT with Q4_0 weights and a unigram vocabulary.
    ///
    /// # Errors
    /// It is something else.
    pub fn new(file: Cow<'static, [u8]>) -> Result<Self, Error> {
        let digest = Sha256::digest(&file)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let gguf = Gguf::read(&file)?;
        let (words, bert) = (Words::read(&gguf)?, Bert::read(&gguf)?);
        Ok(Self { file, bert, words, digest })
    }

    /// Of the weights, 16 hexadecimal digits; vectors of different weights say nothing about each other.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The vectors of each text, in their order. Of a text the first `most_pieces` word pieces count, at most what the model
    /// was made for (some 500).
    pub fn encode(&self, texts: &[&str], role: Role, most_pieces: usize) -> Vec<Vectors> {
        let n_prefix = self.words.tokens(role.prefix(), "", usize::MAX).len() - 1;
        let most = most_pieces.saturating_add(n_prefix + 1).min(self.bert.most_tokens());
        let texts: Vec<Vec<u32>> = texts.iter().map(|text| self.words.tokens(role.prefix(), text, most)).collect();
        let mut vectors = Vec::with_capacity(texts.len());
        let mut rest = texts.as_slice();
        while !rest.is_empty() {
            let mut n_tokens = 0;
            let fits = |text: &&Vec<u32>| {
                n_tokens += text.len();
                n_tokens <= BATCH_TOKENS
            };
            let (batch, others) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            let states = self.bert.encode(&self.file, batch);
            let mut start = 0;
            for text in batch {
                // What stands around a text is no part of it.
                let own = n_prefix..text.len() - 1;
                let rarities = text[own.clone()].iter().map(|piece| self.words.rarity(*piece)).collect();
                let n = self.bert.n_dimensions();
                vectors.push(Vectors::new(rarities, &states[(start + own.start) * n..(start + own.end) * n]));
                start += text.len();
            }
            rest = others;
        }
        vectors
    }
}

#[cfg(test)]
mod tests;
