//! The file of tokens: their digests, never the tokens. Must not know who reads it when.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD, HEXLOWER};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::model::{limits::TOKENS_BYTES, principal::name_fault};

/// What a token of ours begins with, by which scanners of secrets can know it.
pub(super) const PREFIX: &str = "gk_";
/// The newest `version` that is read.
const VERSION: u64 = 1;
/// Bytes of an id: enough that two tokens do not meet.
const ID_BYTES: usize = 5;

/// The file's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenFile {
    version: u64,
    /// In the order in which they were made.
    pub tokens: Vec<Token>,
}

/// A token, as far as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// By which it is revoked; no secret.
    pub id: String,
    /// Whose it is.
    pub name: String,
    /// SHA-256 of the token in hexadecimal digits.
    sha256: String,
    /// What its holder may be besides what the config says.
    pub roles: Vec<String>,
    /// Seconds since 1970.
    pub created: u64,
    /// Seconds since 1970; it never expires where it is absent.
    pub expires: Option<u64>,
}

/// Why a file of tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// It cannot be read.
    #[error("it cannot be read")]
    Unreadable(#[source] io::Error),
    /// It is over its limit.
    #[error("it has over {TOKENS_BYTES} bytes")]
    TooLong,
    /// It is no such file.
    #[error("it is no file of tokens: {0}")]
    Invalid(String),
    /// A newer program wrote it.
    #[error("its `version` is {0}, this program reads up to {VERSION}")]
    Newer(u64),
}

impl Default for TokenFile {
    fn default() -> Self {
        Self { version: VERSION, tokens: Vec::new() }
    }
}

impl TokenFile {
    /// Reads a file; one that is not there has no tokens.
    ///
    /// # Errors
    /// See [`TokenFileError`].
    pub fn read(file: &Path) -> Result<Self, TokenFileError> {
        let mut bytes = Vec::new();
        match File::open(file) {
            Ok(opened) => opened.take(TOKENS_BYTES + 1).read_to_end(&mut bytes).map_err(TokenFileError::Unreadable)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(TokenFileError::Unreadable(error)),
        };
        if bytes.len() as u64 > TOKENS_BYTES {
            return Err(TokenFileError::TooLong);
        }
        Self::parse(&bytes)
    }

    fn parse(bytes: &[u8]) -> Result<Self, TokenFileError> {
        let invalid = |error: &dyn std::fmt::Display| TokenFileError::Invalid(error.to_string());
        let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| invalid(&error))?;
        if let Some(version) = value["version"].as_u64().filter(|version| *version > VERSION) {
            return Err(TokenFileError::Newer(version));
        }
        let parsed: Self = serde_json::from_value(value).map_err(|error| invalid(&error))?;
        for token in &parsed.tokens {
            if let Some(fault) = name_fault(&token.name) {
                return Err(TokenFileError::Invalid(format!("token `{}`: {fault}", token.id.escape_debug())));
            }
        }
        Ok(parsed)
    }

    /// As it is written.
    pub fn to_text(&self) -> String {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        format!("{text}\n")
    }
}

impl Token {
    /// What stands for the token here.
    pub(super) fn digest(&self) -> &str {
        &self.sha256
    }

    /// Whether it is of use at this moment, in seconds since 1970.
    pub fn is_valid(&self, now: u64) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }

    /// The first digits of its digest, by which two can be told apart.
    pub fn digest_start(&self) -> &str {
        self.sha256.get(..8).unwrap_or_default()
    }
}

/// What stands for a token: as it has 256 random bits, a plain digest tells nothing of it.
pub(super) fn digest(token: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(token.as_bytes()))
}

/// Makes a token; returns its text, which is kept nowhere, and what is kept.
///
/// # Errors
/// There is no randomness.
pub fn new_token(name: &str, roles: Vec<String>, now: u64, expires: Option<u64>) -> io::Result<(String, Token)> {
    let (mut secret, mut id) = ([0; 32], [0; ID_BYTES]);
    for bytes in [&mut secret[..], &mut id[..]] {
        getrandom::fill(bytes).map_err(|error| io::Error::other(error.to_string()))?;
    }
    let text = format!("{PREFIX}{}", BASE64URL_NOPAD.encode(&secret));
    let id = BASE32_NOPAD.encode(&id).to_ascii_lowercase();
    let token = Token { id, name: name.to_owned(), sha256: digest(&text), roles, created: now, expires };
    Ok((text, token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_holds_no_token() {
        let (text, token) = new_token("ann", vec!["viewer".into()], 7, Some(9)).unwrap();
        let file = TokenFile { tokens: vec![token.clone()], ..TokenFile::default() };
        let written = file.to_text();
        assert_eq!(TokenFile::parse(written.as_bytes()).unwrap(), file);
        assert!(text.starts_with(PREFIX) && text.len() == 46 && !written.contains(&text));
        assert_eq!(token.digest(), digest(&text));
        assert_eq!((token.is_valid(8), token.is_valid(9)), (true, false));
    }

    #[test]
    fn what_is_no_file_of_tokens_is_refused() {
        let of_name = |name: &str| {
            let (_, token) = new_token(name, Vec::new(), 0, None).unwrap();
            TokenFile { tokens: vec![token], ..TokenFile::default() }.to_text()
        };
        for text in ["", "[]", "{", r#"{"version":1}"#, &of_name("corp:ann"), &of_name("a\nb"), &of_name("")] {
            assert!(matches!(TokenFile::parse(text.as_bytes()), Err(TokenFileError::Invalid(_))), "{text}");
        }
        let newer = TokenFile::parse(br#"{"version":2,"tokens":[]}"#);
        assert!(matches!(newer, Err(TokenFileError::Newer(2))));
    }
}
