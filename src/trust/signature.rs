//! Signatures over whole skills: minisign's, over the text of the manifest, in a file of the skill's folder. What minisign
//! made is taken here, and minisign checks what is made here.

use std::io::Cursor;

use indexmap::IndexMap;
use minisign::{KeyPair, PublicKey, PublicKeyBox, SecretKeyBox, SignatureBox};

use crate::skill::{SIGNATURE_FILE, Skill};

/// What a skill's signature is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signed {
    /// Signed by the key of this name, and as it was signed.
    By(String),
    /// There is a signature, and it is worth nothing: why.
    Invalid(&'static str),
}

/// Why a key or a signature cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(#[from] minisign::PError);

/// Whose signature a skill has; `None` where it has none.
pub fn signer(skill: &Skill, keys: &IndexMap<String, String>) -> Option<Signed> {
    if !skill.references.iter().any(|path| path == SIGNATURE_FILE) {
        return None;
    }
    // What is not covered by the manifest could be changed.
    if skill.set_digest().is_none() {
        return Some(Signed::Invalid("the skill has files that cannot be read, or too many"));
    }
    let text = skill.read_listed(SIGNATURE_FILE).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(signature) = text.and_then(|text| SignatureBox::from_string(&text).ok()) else {
        return Some(Signed::Invalid("the signature cannot be read"));
    };
    let known = keys.iter().find(|(_, text)| check_key(text).is_ok_and(|key| key.keynum() == signature.keynum()));
    let Some((name, key)) = known.and_then(|(name, text)| Some((name, check_key(text).ok()?))) else {
        return Some(Signed::Invalid("no key of the config made the signature"));
    };
    let manifest = skill.manifest_text();
    match minisign::verify(&key, &signature, Cursor::new(manifest.as_bytes()), true, false, false) {
        Ok(()) => Some(Signed::By(name.clone())),
        Err(_) => Some(Signed::Invalid("the skill is not as it was signed")),
    }
}

/// Reads a public key: its line, or minisign's file with the comment before it.
///
/// # Errors
/// It is none.
pub fn check_key(text: &str) -> Result<PublicKey, KeyError> {
    let text = text.trim();
    if text.lines().count() > 1 {
        return Ok(PublicKey::from_box(PublicKeyBox::from_string(text)?)?);
    }
    Ok(PublicKey::from_base64(text)?)
}

/// Signs a skill; returns the text of the signature. Without a password one that is needed is asked for at the terminal.
///
/// # Errors
/// The key cannot be used, or needs another password.
pub fn sign(skill: &Skill, secret_key: &str, password: Option<String>) -> Result<String, KeyError> {
    let key = SecretKeyBox::from_string(secret_key)?;
    // What has no password is not to be asked for one.
    let key = match SecretKeyBox::from_string(secret_key)?.into_unencrypted_secret_key() {
        Ok(plain) => plain,
        Err(_) => key.into_secret_key(password)?,
    };
    let manifest = skill.manifest_text();
    let comment = format!("gatekey skill {}", skill.name);
    let signature = minisign::sign(None, &key, Cursor::new(manifest.as_bytes()), Some(&comment), None)?;
    Ok(signature.into_string())
}

/// Makes a pair of keys, secret and public, as minisign's files. An empty password leaves the secret one open.
///
/// # Errors
/// There is no randomness.
pub fn make_keys(password: &str) -> Result<(String, String), KeyError> {
    let pair = if password.is_empty() {
        KeyPair::generate_unencrypted_keypair()?
    } else {
        KeyPair::generate_encrypted_keypair(Some(password.to_owned()))?
    };
    Ok((pair.sk.to_box(None)?.into_string(), pair.pk.to_box()?.into_string()))
}
