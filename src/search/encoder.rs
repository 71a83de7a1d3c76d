//! The encoder, or that there is none in a build without the feature `semantic`.

#[cfg(feature = "semantic")]
pub(super) use gatekey_encoder::{Encoder, Role, Vectors};
#[cfg(not(feature = "semantic"))]
pub(super) use none::{Encoder, Role, Vectors};

/// What the search needs of an encoder, for none: nothing of this can be made.
#[cfg(not(feature = "semantic"))]
mod none {
    use std::borrow::Cow;

    #[derive(Debug)]
    pub(in crate::search) enum Encoder {}

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
