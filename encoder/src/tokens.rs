//! Texts to numbers of word pieces.

use tokenizers::{
    Tokenizer,
    models::unigram::Unigram,
    normalizers::NFKC,
    pre_tokenizers::metaspace::{Metaspace, PrependScheme},
};

use crate::{Error, gguf::Gguf};

/// A blank within pieces.
const BLANK: char = '▁';

/// The pieces, and what stands around a text.
pub(crate) struct Words {
    tokenizer: Tokenizer,
    first: u32,
    last: u32,
    /// The logarithm of each piece's share.
    scores: Vec<f32>,
}

impl Words {
    /// Takes the vocabulary out of a file.
    pub(crate) fn read(gguf: &Gguf<'_>) -> Result<Self, Error> {
        let key = |name: &str| format!("tokenizer.ggml.{name}");
        let number = |name: &str| {
            gguf.whole(&key(name))?.try_into().map_err(|_too_large| Error(format!("`{name}` is no token's number")))
        };
        let (pieces, scores) = (gguf.texts(&key("tokens"))?, gguf.numbers(&key("scores"))?);
        let vocabulary = pieces.iter().cloned().zip(scores.iter().map(|score| f64::from(*score))).collect();
        let unknown = gguf.whole(&key("unknown_token_id"))?;
        let model = Unigram::from(vocabulary, Some(unknown), false).map_err(|error| Error(error.to_string()))?;
        let mut tokenizer = Tokenizer::new(model);
        tokenizer.with_normalizer(Some(NFKC)).map_err(|error| Error(error.to_string()))?;
        tokenizer.with_pre_tokenizer(Some(Metaspace::new(BLANK, PrependScheme::Always, true)));
        Ok(Self { tokenizer, first: number("bos_token_id")?, last: number("eos_token_id")?, scores: scores.to_vec() })
    }

    /// The pieces of `prefix` and `text`, at most `most` with those around them.
    pub(crate) fn tokens(&self, prefix: &str, text: &str, most: usize) -> Vec<u32> {
        // Pieces are short: what comes later cannot be among the first, and long texts are not to be cut for nothing.
        let head: String = clean(text).take(most.saturating_mul(12)).collect();
        // There is no text that cannot be cut: what is in no piece is the unknown one.
        let encoding = self.tokenizer.encode(format!("{prefix} {head}").trim_end(), false).ok();
        let pieces = encoding.iter().flat_map(|encoding| encoding.get_ids()).copied().take(most.saturating_sub(2));
        [self.first].into_iter().chain(pieces).chain([self.last]).collect()
    }

    /// How rare a piece is: the negative logarithm of its share.
    pub(crate) fn rarity(&self, piece: u32) -> f32 {
        self.scores.get(piece as usize).map_or(0.0, |score| -score)
    }
}

/// The model was made with texts without control characters and with single blanks.
fn clean(text: &str) -> impl Iterator<Item = char> {
    let is_blank =
        |c: char| c.is_whitespace() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{fffd}' | BLANK);
    let mut was_blank = true;
    text.chars().filter_map(move |c| {
        let is_blank = is_blank(c);
        let doubled = is_blank && was_blank;
        let dropped = c.is_control() && !is_blank;
        was_blank = is_blank || (was_blank && dropped);
        (!doubled && !dropped).then_some(if is_blank { ' ' } else { c })
    })
}
