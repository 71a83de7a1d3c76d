//! From the text of a JWT to its claims: who says so, with which key, for whom and until when. Every way in which a token
//! can be wrong is the same refusal; why goes to the log.
//!
//! **Source:** RFC 8725, JSON Web Token Best Current Practices.

use jsonwebtoken::{
    Algorithm, Validation, dangerous::insecure_decode_claims, decode, decode_header, errors::ErrorKind,
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    auth::Refusal,
    keys::{Keys, KeysError},
};
use crate::{config::Issuer, model::limits::JWT_LEEWAY};

/// What can be verified with a key that everybody may know. With a shared secret, anybody who knows the public key of
/// another algorithm could sign.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// An issuer with its keys.
#[derive(Debug)]
pub(super) struct Trusted {
    pub(super) issuer: Issuer,
    pub(super) keys: Keys,
}

/// The one claim that is read before anything is verified, to know by whose keys.
#[derive(Deserialize)]
struct Claimed {
    iss: String,
}

/// Verifies a token for any of these audiences; returns its claims and who issued it.
///
/// # Errors
/// It is wrong in any way, or the issuer's keys cannot be had.
pub(super) async fn verify<'a>(
    token: &str,
    trusted: &'a [Trusted],
    audiences: &[&str],
) -> Result<(Value, &'a Issuer), Refusal> {
    let refused = |error: jsonwebtoken::errors::Error| {
        // The error says which claim or part is wrong, and nothing of what stands in it.
        tracing::debug!(%error, "a JWT is refused");
        Refusal::Invalid
    };
    let header = decode_header(token).map_err(refused)?;
    if !ALGORITHMS.contains(&header.alg) {
        tracing::debug!(algorithm = ?header.alg, "a JWT is refused for its algorithm");
        return Err(Refusal::Invalid);
    }
    let claimed: Claimed = insecure_decode_claims(token).map_err(refused)?;
    let Some(Trusted { issuer, keys }) = trusted.iter().find(|trusted| trusted.issuer.issuer == claimed.iss) else {
        tracing::debug!("a JWT is refused for its issuer");
        return Err(Refusal::Invalid);
    };
    let found = keys.find(header.kid.as_deref(), header.alg).await;
    let key = found.map_err(|error| match error {
        KeysError::Unknown => {
            tracing::debug!(issuer = %issuer.name, "a JWT is refused for its key");
            Refusal::Invalid
        }
        KeysError::Unavailable => Refusal::Unavailable,
    })?;
    let mut validation = Validation::new(header.alg);
    validation.leeway = JWT_LEEWAY.as_secs();
    validation.validate_nbf = true;
    validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    validation.set_issuer(&[&issuer.issuer]);
    match &issuer.audience {
        Some(audience) => validation.set_audience(&[audience]),
        None => validation.set_audience(audiences),
    }
    let mut verified = decode::<Value>(token, &key, &validation);
    // Some issuers give their keys no ids, or the next one that of the one before.
    if verified.as_ref().is_err_and(|error| *error.kind() == ErrorKind::InvalidSignature)
        && let Some(key) = keys.renewed(header.kid.as_deref(), header.alg, &key).await
    {
        verified = decode(token, &key, &validation);
    }
    Ok((verified.map_err(refused)?.claims, issuer))
}
