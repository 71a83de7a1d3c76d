//! How a command ends: the documented exit codes, and the text of what went wrong.

use std::{fmt, process::ExitCode};

use crate::model::diagnostic::Diagnostic;

/// The exit codes of gatekey. They are part of its interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: done.
    Done,
    /// 1: ran, and the answer is no: findings, or nothing found.
    Findings,
    /// 2: wrong use.
    Usage,
    /// 3: a config, skill or gating map is invalid.
    Invalid,
    /// 4: an upstream failed.
    Upstream,
    /// 70: our fault.
    Internal,
    /// 130: interrupted.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Findings => 1,
            Exit::Usage => 2,
            Exit::Invalid => 3,
            Exit::Upstream => 4,
            Exit::Internal => 70,
            Exit::Interrupted => 130,
        })
    }
}

/// A command that could not do its work.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) exit: Exit,
    /// Completes "error: ".
    pub(super) message: String,
    /// What to do next.
    pub(super) hint: Option<String>,
    /// What it comes from.
    pub(super) findings: Vec<Diagnostic>,
}

impl Failed {
    pub(super) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, message: message.to_string(), hint: None, findings: Vec::new() }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Self::new(Exit::Internal, error)
    }
}
