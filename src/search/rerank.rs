//! The reranker: reads a query and the best hits together, which is better than comparing their vectors and takes longer. It is
//! loaded beside the searches; until then, and where it fails, hits keep their order.

use std::{
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use super::onnx::PairScorer;
use crate::model::onnx::OnnxReranker;

/// A reranker, or that there is none.
#[derive(Debug, Default)]
pub(super) struct Reranker {
    choice: Option<OnnxReranker>,
    scorer: OnceLock<Option<PairScorer>>,
    /// Whether it was said that it failed at a query.
    has_warned: AtomicBool,
}

impl Reranker {
    /// Reads nothing yet.
    pub(super) fn new(choice: Option<OnnxReranker>) -> Self {
        Self { choice, ..Self::default() }
    }

    /// Loads it, once. Where that fails, it is said.
    pub(super) fn load(&self, cache: Option<&Path>) {
        let Some(choice) = &self.choice else { return };
        self.scorer.get_or_init(|| {
            let loaded = PairScorer::load(choice, cache);
            let said = loaded.inspect_err(
                |error| tracing::warn!(%error, hint = error.hint, "hits keep their order: there is no reranker"),
            );
            said.ok()
        });
    }

    /// Whether it is yet to be loaded.
    pub(super) fn is_awaited(&self) -> bool {
        self.choice.is_some() && self.scorer.get().is_none()
    }

    /// Best hits that it looks at.
    pub(super) fn n_hits(&self) -> usize {
        if self.ready().is_some() { self.choice.as_ref().map_or(0, |choice| choice.n_hits) } else { 0 }
    }

    /// As reports name it, once it is loaded.
    pub(super) fn name(&self) -> Option<String> {
        self.ready()?;
        self.choice.as_ref().map(|choice| choice.model.source.name())
    }

    /// How well each text answers the query, in their order; higher is better. `None` where it cannot say.
    pub(super) fn scores(&self, query: &str, texts: &[String]) -> Option<Vec<f32>> {
        let scores = self.ready()?.scores(query, texts);
        let said = scores.inspect_err(|error| {
            if !self.has_warned.swap(true, Ordering::Relaxed) {
                tracing::warn!(%error, hint = error.hint, "the reranker failed at a query, whose hits keep their order");
            }
        });
        said.ok()
    }

    fn ready(&self) -> Option<&PairScorer> {
        self.scorer.get()?.as_ref()
    }
}
