//! The keys of one issuer: fetched when they are first needed, anew when a token names one that is not known, and kept for
//! a while where the issuer cannot be reached.
//!
//! **Source:** RFC 7517; RFC 8414 and OpenID Connect Discovery for where keys are.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse},
};
use reqwest::Url;
use serde_json::Value;

use crate::{
    config::{Issuer, is_loopback},
    model::limits::{JWKS_BYTES, JWKS_FRESH, JWKS_KEPT, JWKS_KEYS, JWKS_PAUSE, JWKS_WAIT},
    wire::{http_client::plain_client, timer},
};

/// Why there is no key for a token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeysError {
    /// The issuer has no such key.
    Unknown,
    /// What the issuer has is not known.
    Unavailable,
}

/// One issuer's keys.
#[derive(Debug)]
pub(super) struct Keys {
    name: String,
    issuer: String,
    jwks_url: Option<String>,
    http: reqwest::Client,
    state: Mutex<State>,
    /// Held during a fetch, so that many tokens with a key that is not known make one; nothing else waits for it.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    known: Option<Known>,
    /// When the last fetch began, whatever came of it.
    tried: Option<Instant>,
}

#[derive(Debug)]
struct Known {
    keys: Vec<Key>,
    fetched: Instant,
}

/// A key, and what it is for.
#[derive(Debug)]
struct Key {
    id: Option<String>,
    /// The only algorithm that it may be used with, where its owner says so.
    algorithm: Option<KeyAlgorithm>,
    family: AlgorithmFamily,
    curve: Option<EllipticCurve>,
    key: Arc<DecodingKey>,
}

impl Keys {
    /// Nothing is fetched yet.
    ///
    /// # Errors
    /// Its certificates cannot be used, with the reason.
    pub(super) fn new(issuer: &Issuer) -> Result<Self, String> {
        let mut urls = [Some(&issuer.issuer), issuer.jwks_url.as_ref()].into_iter().flatten();
        let may_need_tls = urls.any(|url| url.starts_with("https://"));
        Ok(Self {
            name: issuer.name.clone(),
            issuer: issuer.issuer.clone(),
            jwks_url: issuer.jwks_url.clone(),
            // It follows no redirects: whoever could redirect us could name keys of their own.
            http: plain_client(issuer.ca_file.as_deref(), may_need_tls)?,
            state: Mutex::default(),
            fetching: tokio::sync::Mutex::new(()),
        })
    }

    /// The key with this id for this algorithm. A token that names none can mean the only one that fits.
    ///
    /// # Errors
    /// See [`KeysError`].
    pub(super) async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<Arc<DecodingKey>, KeysError> {
        let now = Instant::now();
        if let Ok(key) = self.known(id, algorithm, now, JWKS_FRESH) {
            return Ok(key);
        }
        let kept = self.known(id, algorithm, now, JWKS_KEPT);
        match kept {
            // One of those who come fetches anew; the others need not wait for that.
            Ok(key) => match self.fetching.try_lock() {
                Ok(_turn) => self.fetch().await,
                Err(_busy) => return Ok(key),
            },
            Err(_) => {
                let _turn = self.fetching.lock().await;
                if self.known(id, algorithm, now, JWKS_FRESH).is_err() {
                    self.fetch().await;
                }
            }
        }
        self.known(id, algorithm, Instant::now(), JWKS_KEPT)
    }

    /// The key that the issuer has now in place of `old`, by which a token could not be verified.
    pub(super) async fn renewed(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        old: &Arc<DecodingKey>,
    ) -> Option<Arc<DecodingKey>> {
        let other = || {
            let known = self.known(id, algorithm, Instant::now(), JWKS_KEPT).ok();
            known.filter(|known| !Arc::ptr_eq(known, old))
        };
        let _turn = self.fetching.lock().await;
        if other().is_none() {
            self.fetch().await;
        }
        other()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A key of the set that is known, if that is not older than `most`.
    fn known(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        now: Instant,
        most: Duration,
    ) -> Result<Arc<DecodingKey>, KeysError> {
        let state = self.state();
        let known = state.known.as_ref().filter(|known| now.saturating_duration_since(known.fetched) < most);
        let known = known.ok_or(KeysError::Unavailable)?;
        let mut fitting = known.keys.iter().filter(|key| key.fits(algorithm));
        let found = match id {
            Some(id) => fitting.find(|key| key.id.as_deref() == Some(id)),
            None => fitting.next().filter(|_| fitting.next().is_none()),
        };
        found.map(|key| Arc::clone(&key.key)).ok_or(KeysError::Unknown)
    }

    /// Fetches the set, unless that was tried just now. What is known stays where it fails.
    async fn fetch(&self) {
        let now = Instant::now();
        {
            let mut state = self.state();
            if state.tried.is_some_and(|tried| now.duration_since(tried) < JWKS_PAUSE) {
                return;
            }
            state.tried = Some(now);
        }
        match self.fetched().await {
            Ok(keys) => {
                tracing::debug!(issuer = %self.name, n_keys = keys.len(), "keys are fetched");
                self.state().known = Some(Known { keys, fetched: now });
            }
            Err(reason) => tracing::warn!(issuer = %self.name, reason, "the keys of an issuer cannot be fetched"),
        }
    }

    async fn fetched(&self) -> Result<Vec<Key>, String> {
        let url = match &self.jwks_url {
            Some(url) => Url::parse(url).map_err(|error| error.to_string())?,
            None => self.discovered().await?,
        };
        let set = self.json(url).await?;
        let all = set["keys"].as_array().ok_or("there is no list of keys")?;
        // What one key is must not cost the others.
        let keys: Vec<Key> = all.iter().filter_map(Key::read).take(JWKS_KEYS).collect();
        if keys.is_empty() { Err("there is no key that could sign tokens".into()) } else { Ok(keys) }
    }

    /// Where the issuer's metadata says that its keys are.
    async fn discovered(&self) -> Result<Url, String> {
        let mut reasons = Vec::new();
        for url in metadata_urls(&self.issuer)? {
            match self.json(url.clone()).await {
                Ok(metadata) if metadata["issuer"] != self.issuer.as_str() => {
                    reasons.push(format!("{url} is of another issuer"));
                }
                Ok(metadata) => {
                    let said = metadata["jwks_uri"].as_str().unwrap_or_default();
                    let url = Url::parse(said).map_err(|error| format!("`jwks_uri`: {error}"))?;
                    let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url));
                    return is_safe.then_some(url).ok_or_else(|| "`jwks_uri` is not `https`".to_owned());
                }
                Err(reason) => reasons.push(format!("{url}: {reason}")),
            }
        }
        Err(reasons.join("; "))
    }

    async fn json(&self, url: Url) -> Result<Value, String> {
        let fetch = async {
            let failed = |error: reqwest::Error| error.without_url().to_string();
            let mut response = self.http.get(url).send().await.map_err(failed)?;
            if !response.status().is_success() {
                return Err(format!("HTTP status {}", response.status().as_u16()));
            }
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await.map_err(failed)? {
                if body.len() + chunk.len() > JWKS_BYTES {
                    return Err(format!("it has over {JWKS_BYTES} bytes"));
                }
                body.extend_from_slice(&chunk);
            }
            serde_json::from_slice(&body).map_err(|error| format!("it is no JSON: {error}"))
        };
        timer::timeout(JWKS_WAIT, fetch).await.unwrap_or_else(|| Err("there was no answer in time".into()))
    }
}

impl Key {
    /// Reads one key of a set; `None` where it is none that could verify a token.
    fn read(value: &Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value.clone()).ok()?;
        let (family, curve) = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => (AlgorithmFamily::Rsa, None),
            AlgorithmParameters::EllipticCurve(parameters) => (AlgorithmFamily::Ec, Some(parameters.curve.clone())),
            AlgorithmParameters::OctetKeyPair(parameters) => (AlgorithmFamily::Ed, Some(parameters.curve.clone())),
            // A shared secret in a public set is none.
            _ => return None,
        };
        let is_for_signatures = jwk.common.public_key_use.as_ref().is_none_or(|what| *what == PublicKeyUse::Signature);
        let key = DecodingKey::from_jwk(&jwk).ok().filter(|_| is_for_signatures)?;
        let (id, algorithm) = (jwk.common.key_id, jwk.common.key_algorithm);
        Some(Self { id, algorithm, family, curve, key: Arc::new(key) })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        let is_of_curve = match algorithm {
            Algorithm::ES256 => self.curve == Some(EllipticCurve::P256),
            Algorithm::ES384 => self.curve == Some(EllipticCurve::P384),
            Algorithm::EdDSA => self.curve == Some(EllipticCurve::Ed25519),
            _ => true,
        };
        let is_allowed = self.algorithm.is_none_or(|own| own == KeyAlgorithm::from(algorithm));
        self.family == algorithm.family() && is_of_curve && is_allowed
    }
}

/// Where an issuer's metadata can be, in the specification's order.
fn metadata_urls(issuer: &str) -> Result<Vec<Url>, String> {
    let url = Url::parse(issuer).map_err(|error| error.to_string())?;
    let path = url.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
        format!("{path}/.well-known/openid-configuration"),
    ];
    paths.dedup();
    let at = |path: &String| {
        let mut url = url.clone();
        url.set_path(path);
        url
    };
    Ok(paths.iter().map(at).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_is_looked_for_where_either_standard_puts_it() {
        let of = |issuer: &str| metadata_urls(issuer).unwrap().iter().map(Url::to_string).collect::<Vec<_>>();
        assert_eq!(
            of("https://id.example/realms/shop"),
            [
                "https://id.example/.well-known/oauth-authorization-server/realms/shop",
                "https://id.example/.well-known/openid-configuration/realms/shop",
                "https://id.example/realms/shop/.well-known/openid-configuration",
            ]
        );
        assert_eq!(of("https://id.example").len(), 2);
    }

    #[test]
    fn a_key_is_used_for_what_it_is_for_and_secrets_are_not_used() {
        let point = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let ec = |more: Value| {
            let mut key = json!({"kty": "EC", "crv": "P-256", "x": point, "y": point});
            key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            Key::read(&key)
        };
        let plain = ec(json!({"kid": "a"})).unwrap();
        assert_eq!(
            (plain.fits(Algorithm::ES256), plain.fits(Algorithm::ES384), plain.fits(Algorithm::RS256)),
            (true, false, false)
        );
        assert!(ec(json!({"use": "enc"})).is_none());
        assert!(!ec(json!({"alg": "ES384"})).unwrap().fits(Algorithm::ES256));
        assert!(Key::read(&json!({"kty": "oct", "k": "AAAA"})).is_none());
        assert!(Key::read(&json!({"kty": "new", "z": 1})).is_none());
        let rsa = Key::read(&json!({"kty": "RSA", "n": "AQAB", "e": "AQAB", "alg": "RS256"})).unwrap();
        assert_eq!(
            (rsa.fits(Algorithm::RS256), rsa.fits(Algorithm::PS256), rsa.fits(Algorithm::HS256)),
            (true, false, false)
        );
    }
}
