//! Why a model cannot be used.

/// What is wrong with a model, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(super) struct Fault {
    pub(super) reason: String,
    pub(super) hint: &'static str,
}

impl Fault {
    pub(super) fn new(reason: impl ToString, hint: &'static str) -> Self {
        Self { reason: reason.to_string(), hint }
    }
}
