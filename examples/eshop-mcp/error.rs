//! What a tool may answer instead of its result.
//!
//! A [`Refusal`] is meant for the model: it becomes a tool result with `isError`. All other variants of
//! [`ShopError`] are our own faults and become JSON-RPC errors.

use std::fmt;

use serde::Serialize;

/// A failed call.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShopError {
    /// The shop understood and said no.
    #[error("the call was refused: {0}")]
    Refused(Box<Refusal>),
    /// The database failed.
    #[error("the database failed")]
    Db(#[from] rusqlite::Error),
    /// A result could not be written as JSON.
    #[error("the result could not be written")]
    Json(#[from] serde_json::Error),
    /// The database file belongs to another version of this program.
    #[error("the database file has layout {found}, expected {expected}")]
    Layout {
        /// Layout number in the file.
        found: i64,
        /// Layout number of this program.
        expected: i64,
    },
}

/// Why the shop refused, in the form that the model reads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Refusal {
    /// Kind of refusal; stable.
    pub(crate) code: Code,
    /// Path of the argument at fault, such as `items[0].quantity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    /// What is wrong, with the value found.
    pub(crate) message: String,
    /// What to do next.
    pub(crate) hint: String,
    /// For a conflict, the version that the record has now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) current_version: Option<i64>,
}

/// Kind of refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Code {
    /// No such record.
    NotFound,
    /// An argument is missing, unknown, malformed or out of range.
    Invalid,
    /// The record has changed since the caller read it.
    Conflict,
    /// The person's role does not suffice.
    Forbidden,
    /// The record's state, or the stock, does not allow it.
    State,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl ShopError {
    /// No record `id` of this kind; `find_with` names the tool that lists them.
    pub(crate) fn not_found(kind: &str, id: impl fmt::Display, find_with: &str) -> Self {
        Self::refused(Code::NotFound, format!("there is no {kind} {id}"), format!("look it up with `{find_with}`"))
    }

    /// The argument `field` holds `found`, which is not among what is `allowed`.
    pub(crate) fn invalid(field: &str, found: impl fmt::Display, allowed: &str) -> Self {
        Self::refused(Code::Invalid, format!("`{field}` is {found}"), format!("allowed: {allowed}")).at(field)
    }

    /// The record `what` is at version `current`, the caller expected `expected`.
    pub(crate) fn conflict(what: &str, expected: i64, current: i64) -> Self {
        let mut refusal = Self::refusal(
            Code::Conflict,
            format!("{what} is at version {current}, not {expected}: somebody changed it"),
            "read it again, then repeat the call with `expected_version` from that answer".into(),
        );
        refusal.field = Some("expected_version".into());
        refusal.current_version = Some(current);
        Self::Refused(Box::new(refusal))
    }

    /// The state of a record or of the stock does not allow the call.
    pub(crate) fn state(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::refused(Code::State, message.into(), hint.into())
    }

    /// Any refusal without a field.
    pub(crate) fn refused(code: Code, message: String, hint: String) -> Self {
        Self::Refused(Box::new(Self::refusal(code, message, hint)))
    }

    /// Names the argument at fault.
    pub(crate) fn at(mut self, field: &str) -> Self {
        if let Self::Refused(refusal) = &mut self {
            refusal.field = Some(field.to_owned());
        }
        self
    }

    fn refusal(code: Code, message: String, hint: String) -> Refusal {
        Refusal { code, field: None, message, hint, current_version: None }
    }
}
