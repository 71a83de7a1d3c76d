//! By whose right an upstream is spoken to: that of the config, or of the caller whose request it is. What one caller brings
//! never goes with another's request, nor to a server that it is not meant for.

use std::sync::Arc;

use reqwest::header::{HeaderMap, HeaderName};
use sha2::{Digest as _, Sha256};

use super::link::{CallerId, Link};
use crate::{
    config::Transport,
    model::{
        name::UpstreamName,
        principal::Principal,
        program::{Endpoint, OAuth},
    },
    oauth::Bearer,
    wire::http_client::{Credential, Soon},
};

/// Headers that a caller brought for one upstream.
#[derive(Debug)]
struct Brought(HeaderMap);

impl Credential for Brought {
    fn headers(&self) -> Soon<'_, Result<HeaderMap, String>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }

    fn renew<'a>(&'a self, _refused: &'a HeaderMap) -> Soon<'a, bool> {
        Box::pin(std::future::ready(false))
    }
}

/// There is none, for this reason.
#[derive(Debug)]
struct Missing(String);

impl Credential for Missing {
    fn headers(&self) -> Soon<'_, Result<HeaderMap, String>> {
        Box::pin(std::future::ready(Err(self.0.clone())))
    }

    fn renew<'a>(&'a self, _refused: &'a HeaderMap) -> Soon<'a, bool> {
        Box::pin(std::future::ready(false))
    }
}

/// By what the connection that all share is known, besides the headers of the config.
pub(super) fn of_all(endpoint: &Endpoint, upstream: &UpstreamName) -> Option<Arc<dyn Credential>> {
    // Where callers log in, a token of the config's may list.
    let has_token = endpoint.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
    let oauth = endpoint.oauth.as_ref().filter(|_| !has_token)?;
    Some(bearer(endpoint, oauth, upstream, None))
}

/// By what the connection of one caller is known, besides the headers of the config.
pub(super) fn of_caller(
    endpoint: &Endpoint,
    upstream: &UpstreamName,
    caller: &str,
    brought: &HeaderMap,
) -> Arc<dyn Credential> {
    match endpoint.oauth.as_ref().filter(|oauth| oauth.is_per_caller) {
        Some(oauth) => bearer(endpoint, oauth, upstream, Some(caller)),
        None => Arc::new(Brought(brought.clone())),
    }
}

fn bearer(endpoint: &Endpoint, oauth: &OAuth, upstream: &UpstreamName, caller: Option<&str>) -> Arc<dyn Credential> {
    match Bearer::new(endpoint, oauth, upstream.as_str(), caller) {
        Ok(bearer) => Arc::new(bearer),
        Err(reason) => Arc::new(Missing(reason)),
    }
}

impl Link {
    /// By whose right a request of `principal`, who brought these headers, goes to the upstream, with those of the headers
    /// that are for it; `None` where all share one.
    ///
    /// # Errors
    /// A header is missing; says which.
    pub fn right_of(
        &self,
        principal: &Principal,
        brought: Option<&HeaderMap>,
    ) -> Result<Option<(CallerId, HeaderMap)>, String> {
        let Ok(Transport::Http(endpoint)) = &self.config().transport else { return Ok(None) };
        if !endpoint.is_per_caller() {
            return Ok(None);
        }
        // Of a login nothing is brought.
        let (mut headers, mut digest) = (HeaderMap::new(), Sha256::new());
        for (own, from) in &endpoint.caller_headers {
            let value = brought.and_then(|brought| brought.get(from));
            let (Some(value), Ok(own)) = (value, HeaderName::try_from(own)) else {
                return Err(format!("the client must send the header `{from}` with its requests"));
            };
            // With its length before it no part can run into the next one.
            for part in [own.as_str().as_bytes(), value.as_bytes()] {
                digest.update((part.len() as u64).to_be_bytes());
                digest.update(part);
            }
            let mut value = value.clone();
            value.set_sensitive(true);
            headers.insert(own, value);
        }
        Ok(Some((CallerId { name: principal.name.clone(), digest: digest.finalize().into() }, headers)))
    }
}
