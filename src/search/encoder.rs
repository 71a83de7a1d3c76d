//! The encoder: the one of word pieces, one that ONNX Runtime runs, or that there is none in a build without the feature
//! `semantic`.

use std::{fs, path::Path};

use super::{fault::Fault, onnx::TextEncoder};
use crate::model::onnx::OnnxEncoder;

#[cfg(feature = "semantic")]
use gatekey_encoder::Encoder as PieceEncoder;
#[cfg(feature = "semantic")]
pub(super) use gatekey_encoder::{Role, Vectors};
#[cfg(not(feature = "semantic"))]
use none::Encoder as PieceEncoder;
#[cfg(not(feature = "semantic"))]
pub(super) use none::{Role, Vectors};

const FILE_HINT: &str = "name another file, or `embedded`";
/// What a vector of a whole text counts; any number above what common pieces have, as there is one only.
#[cfg(feature = "semantic")]
const WHOLE_RARITY: f32 = 8.0;

/// A loaded encoder.
#[derive(Debug)]
pub(super) enum Encoder {
    /// Makes a vector of each word piece.
    Pieces(PieceEncoder),
    /// Makes one of a text.
    Whole(TextEncoder),
}

impl Encoder {
    pub(super) fn embedded() -> Result<Self, Fault> {
        PieceEncoder::embedded().map(Self::Pieces).map_err(|error| Fault::new(error, FILE_HINT))
    }

    pub(super) fn file(file: &Path) -> Result<Self, Fault> {
        let bytes = fs::read(file).map_err(|error| Fault::new(format!("{}: {error}", file.display()), FILE_HINT))?;
        PieceEncoder::new(bytes.into()).map(Self::Pieces).map_err(|error| Fault::new(error, FILE_HINT))
    }

    pub(super) fn onnx(model: &OnnxEncoder, cache: Option<&Path>) -> Result<Self, Fault> {
        TextEncoder::load(model, cache).map(Self::Whole)
    }

    /// Vectors of different ones say nothing about each other.
    pub(super) fn digest(&self) -> &str {
        match self {
            Self::Pieces(encoder) => encoder.digest(),
            Self::Whole(encoder) => encoder.digest(),
        }
    }

    /// Whether a text has one vector, and never one for each word piece.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self, Self::Whole(_))
    }

    /// The vectors of each text, in their order; none of a text without words. `most_pieces` is for the encoder of pieces.
    pub(super) fn encode(&self, texts: &[&str], role: Role, most_pieces: usize) -> Result<Vec<Vectors>, Fault> {
        match self {
            Self::Pieces(encoder) => Ok(encoder.encode(texts, role, most_pieces)),
            Self::Whole(encoder) => texts.iter().map(|text| whole(encoder, text, role)).collect(),
        }
    }
}

#[cfg(feature = "semantic")]
fn whole(encoder: &TextEncoder, text: &str, role: Role) -> Result<Vectors, Fault> {
    if text.trim().is_empty() {
        return Ok(Vectors::default());
    }
    Ok(Vectors::new(vec![WHOLE_RARITY], &encoder.encode(text, role)?))
}

#[cfg(not(feature = "semantic"))]
fn whole(encoder: &TextEncoder, _text: &str, _role: Role) -> Result<Vectors, Fault> {
    match *encoder {}
}

/// What the search needs of an encoder, for none: nothing of this can be made.
#[cfg(not(feature = "semantic"))]
mod none {
    use std::borrow::Cow;

    #[derive(Debug)]
    pub(in crate::search) enum Encoder {}

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(in crate::search) enum Role {
        Query,
        Passage,
    }

    #[derive(Debug)]
    pub(in crate::search) enum Vectors {}

    impl Encoder {
        pub(in crate::search) fn embedded() -> Result<Self, &'static str> {
            Err("this gatekey was built without the feature `semantic`")
        }

        pub(in crate::search) fn new(_file: Cow<'static, [u8]>) -> Result<Self, &'static str> {
            Self::embedded()
        }

        pub(in crate::search) fn digest(&self) -> &str {
            match *self {}
        }

        pub(in crate::search) fn encode(&self, _texts: &[&str], _role: Role, _most_pieces: usize) -> Vec<Vectors> {
            match *self {}
        }
    }

    impl Vectors {
        pub(in crate::search) fn rarities(&self) -> &[f32] {
            match *self {}
        }

        pub(in crate::search) fn first(self, _n: usize) -> Self {
            match self {}
        }

        pub(in crate::search) fn mean(&self) -> Self {
            match *self {}
        }

        pub(in crate::search) fn sum(&self) -> Vec<f32> {
            match *self {}
        }

        pub(in crate::search) fn likeness(&self, _passage: &Self) -> Option<Vec<f32>> {
            match *self {}
        }

        pub(in crate::search) fn to_bytes(&self) -> Vec<u8> {
            match *self {}
        }

        pub(in crate::search) fn parse(_bytes: &[u8]) -> Option<Self> {
            None
        }
    }
}
