//! In a build without the feature `fastembed`: nothing of this can be made.

use std::path::Path;

#[cfg(feature = "semantic")]
use super::encoder::Role;
use super::fault::Fault;
use crate::model::onnx::{OnnxEncoder, OnnxReranker};

const REASON: &str = "this gatekey was built without the feature `fastembed`";
const HINT: &str = "build it with default features";

#[derive(Debug)]
pub(super) enum TextEncoder {}

impl TextEncoder {
    pub(super) fn load(_model: &OnnxEncoder, _cache: Option<&Path>) -> Result<Self, Fault> {
        Err(Fault::new(REASON, HINT))
    }

    pub(super) fn digest(&self) -> &str {
        match *self {}
    }

    #[cfg(feature = "semantic")]
    pub(super) fn encode(&self, _text: &str, _role: Role) -> Result<Vec<f32>, Fault> {
        match *self {}
    }
}

#[derive(Debug)]
pub(super) enum PairScorer {}

impl PairScorer {
    pub(super) fn load(_model: &OnnxReranker, _cache: Option<&Path>) -> Result<Self, Fault> {
        Err(Fault::new(REASON, HINT))
    }

    pub(super) fn scores(&self, _query: &str, _texts: &[String]) -> Result<Vec<f32>, Fault> {
        match *self {}
    }
}
