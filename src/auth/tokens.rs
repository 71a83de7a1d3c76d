//! The tokens of a running gatekey: the file is looked at with each request, so that a token which is revoked is of no use
//! at once.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::token_file::{Token, TokenFile, TokenFileError, digest};
use crate::files::Stamp;

/// Tokens of one file.
#[derive(Debug)]
pub(super) struct Tokens {
    file: PathBuf,
    read: Mutex<Read>,
}

/// What was read last.
#[derive(Debug, Default)]
struct Read {
    stamp: Option<Stamp>,
    by_digest: HashMap<String, Token>,
}

/// One that cannot be looked at is as good as none; reading it says why.
fn stamp_of(file: &Path) -> Option<Stamp> {
    Stamp::of(file).unwrap_or_default()
}

impl Read {
    fn new(stamp: Option<Stamp>, file: TokenFile) -> Self {
        let by_digest = file.tokens.into_iter().map(|token| (token.digest().to_owned(), token)).collect();
        Self { stamp, by_digest }
    }
}

impl Tokens {
    /// Reads the file, which need not be there yet.
    ///
    /// # Errors
    /// It is there and cannot be used.
    pub(super) fn new(file: PathBuf) -> Result<Self, TokenFileError> {
        let stamp = stamp_of(&file);
        let read = Read::new(stamp, TokenFile::read(&file)?);
        Ok(Self { file, read: Mutex::new(read) })
    }

    /// The token of this text, if it is one that may be used at this moment, in seconds since 1970.
    pub(super) fn find(&self, text: &str, now: u64) -> Option<Token> {
        let digest = digest(text);
        self.current().by_digest.get(&digest).filter(|token| token.is_valid(now)).cloned()
    }

    /// The token with this id, if it may be used at this moment.
    pub(super) fn with_id(&self, id: &str, now: u64) -> Option<Token> {
        self.current().by_digest.values().find(|token| token.id == id && token.is_valid(now)).cloned()
    }

    /// As the file is now. Where it cannot be read any more it is as it was, so that a slip of an editor locks nobody out;
    /// one that is gone has no tokens.
    fn current(&self) -> MutexGuard<'_, Read> {
        // Nothing in here can panic half-way through a change.
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp_of(&self.file);
        if stamp != read.stamp {
            match TokenFile::read(&self.file) {
                Ok(file) => *read = Read::new(stamp, file),
                Err(error) => {
                    tracing::error!(%error, "the changed file of tokens cannot be used; those from before hold");
                    read.stamp = stamp;
                }
            }
        }
        read
    }
}
