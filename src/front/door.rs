//! Who is let in, and what is said to who is not: the statuses and challenges of bearer tokens, and the metadata by which
//! clients find out where to get one. Must not know what a token is.
//!
//! **Source:** RFC 6750, RFC 9728, and the specification's authorization page.

use axum::{
    body::Body,
    http::{
        HeaderMap, HeaderValue, Response, StatusCode, Uri,
        header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE},
    },
};
use reqwest::Url;
use serde_json::json;

use super::{endpoint::plain, server::Shared};
use crate::{
    auth::{Auth, Caller, Credential, Refusal},
    model::principal::Principal,
};

/// Where metadata stands, before the path of what it is about.
pub(super) const METADATA: &str = "/.well-known/oauth-protected-resource";

/// Who may come.
#[derive(Debug)]
pub enum Clients {
    /// Whoever reaches the address, as this caller.
    Everyone(Principal),
    /// Those who show that they may.
    Known(Box<Auth>),
}

impl Clients {
    /// Whether what somebody has open may stay so.
    pub(super) fn may_stay(&self, caller: &Caller, shared: &Shared) -> bool {
        match self {
            Self::Everyone(_) => true,
            Self::Known(auth) => {
                let known = &shared.gateway.snapshot().config.principals;
                auth.holder(&caller.credential, known).as_ref() == Some(&caller.principal)
            }
        }
    }
}

/// Finds out who is calling.
///
/// # Errors
/// The response that says why nobody is let in.
pub(super) async fn caller(shared: &Shared, headers: &HeaderMap, uri: &Uri) -> Result<Caller, Response<Body>> {
    let auth = match &shared.clients {
        Clients::Everyone(principal) => {
            return Ok(Caller { principal: principal.clone(), credential: Credential::None });
        }
        Clients::Known(auth) => auth,
    };
    let resource = resource_at(auth, uri.path());
    let challenge = |status, error, scopes: &[&str]| challenge(status, &resource, error, scopes);
    // A token in an address ends up in logs and histories, so it is of no use there.
    if names_token(uri) {
        return Err(challenge(StatusCode::BAD_REQUEST, Some("invalid_request"), &[]));
    }
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let bearer = match (given.next(), given.next()) {
        (None, _) => return Err(challenge(StatusCode::UNAUTHORIZED, None, &auth.required_scopes())),
        (Some(_), Some(_)) => return Err(challenge(StatusCode::BAD_REQUEST, Some("invalid_request"), &[])),
        (Some(given), None) => bearer(given),
    };
    let Some(bearer) = bearer else {
        return Err(challenge(StatusCode::UNAUTHORIZED, None, &auth.required_scopes()));
    };
    let snapshot = shared.gateway.snapshot();
    let found = auth.caller(bearer, &[auth.resource(), &resource], &snapshot.config.principals).await;
    found.map_err(|refusal| match refusal {
        Refusal::Missing | Refusal::Invalid => {
            challenge(StatusCode::UNAUTHORIZED, Some("invalid_token"), &auth.required_scopes())
        }
        Refusal::Scope(scopes) => {
            let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
            challenge(StatusCode::FORBIDDEN, Some("insufficient_scope"), &scopes)
        }
        Refusal::Unavailable => {
            plain(StatusCode::SERVICE_UNAVAILABLE, "whether this token is valid cannot be found out now")
        }
    })
}

/// The token of an `Authorization` header; `None` where it is of another scheme.
fn bearer(given: &HeaderValue) -> Option<&str> {
    let (scheme, token) = given.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn names_token(uri: &Uri) -> bool {
    let query = uri.query().unwrap_or_default();
    query.split('&').any(|pair| pair.split('=').next() == Some("access_token"))
}

/// What clients know the endpoint at this path by: that of a skill is a resource of its own.
fn resource_at(auth: &Auth, path: &str) -> String {
    match path.rfind("/skill/").and_then(|at| path.get(at..)).filter(|path| path.ends_with("/mcp")) {
        Some(path) => format!("{}{path}", auth.base()),
        None => auth.resource().to_owned(),
    }
}

fn challenge(status: StatusCode, resource: &str, error: Option<&str>, scopes: &[&str]) -> Response<Body> {
    let mut text = String::from("Bearer");
    let mut comma = " ";
    let mut add = |name: &str, value: &str| {
        text.push_str(&format!("{comma}{name}=\"{value}\""));
        comma = ", ";
    };
    if let Some(error) = error {
        add("error", error);
    }
    if !scopes.is_empty() {
        add("scope", &scopes.join(" "));
    }
    if let Some(url) = metadata_url(resource) {
        add("resource_metadata", &url);
    }
    let words = match status {
        StatusCode::BAD_REQUEST => "a token stands once, in the Authorization header",
        StatusCode::FORBIDDEN => "the token lacks a scope",
        _ => "a valid bearer token is needed",
    };
    let mut response = plain(status, words);
    // Both resource and scopes are checked with the config; what fits into no header is left out with it.
    if let Ok(value) = HeaderValue::try_from(text) {
        response.headers_mut().insert(WWW_AUTHENTICATE, value);
    }
    response
}

/// Between host and path of what it is about. A URL has neither quotes nor blanks.
fn metadata_url(resource: &str) -> Option<String> {
    let mut url = Url::parse(resource).ok()?;
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&format!("{METADATA}{path}"));
    Some(url.into())
}

/// What clients are told of how to be let in; `path` is what stands behind the well-known one.
pub(super) fn metadata(shared: &Shared, path: &str) -> Response<Body> {
    let Clients::Known(auth) = &shared.clients else { return plain(StatusCode::NOT_FOUND, "") };
    let resource = resource_at(auth, path);
    let own_path = Url::parse(&resource).map(|url| url.path().trim_end_matches('/').to_owned()).unwrap_or_default();
    if !["", "/mcp", &own_path].contains(&path.trim_end_matches('/')) {
        return plain(StatusCode::NOT_FOUND, "");
    }
    let mut told = json!({
        "resource": resource,
        "resource_name": "gatekey",
        "bearer_methods_supported": ["header"],
    });
    let (issuers, scopes): (Vec<&str>, _) = (auth.issuers().collect(), auth.scopes());
    if !issuers.is_empty() {
        told["authorization_servers"] = json!(issuers);
    }
    if !scopes.is_empty() {
        told["scopes_supported"] = json!(scopes);
    }
    let mut response = Response::new(Body::from(told.to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_holds_no_part_of_a_path_as_it_was_sent() {
        let response = challenge(
            StatusCode::UNAUTHORIZED,
            "https://gw.example/gate/skill/a\"b, realm=\"x\\/mcp",
            Some("invalid_token"),
            &["mcp:read", "mcp:write"],
        );
        insta::assert_snapshot!(
            response.headers()[WWW_AUTHENTICATE].to_str().unwrap(),
            @r#"Bearer error="invalid_token", scope="mcp:read mcp:write", resource_metadata="https://gw.example/.well-known/oauth-protected-resource/gate/skill/a%22b,%20realm=%22x//mcp""#
        );
    }

    #[test]
    fn only_a_bearer_token_is_one() {
        let of = |text: &'static str| bearer(&HeaderValue::from_static(text)).map(str::to_owned);
        assert_eq!((of("Bearer a"), of("bearer  a ")), (Some("a".into()), Some("a".into())));
        for text in ["Basic a", "Bearer", "Bearer ", "a"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
