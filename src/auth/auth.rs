//! From what a request brings to who is calling. A credential is looked at with each request, and again while something of
//! its holder stays open.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{
    claims,
    jwt::{Trusted, verify},
    keys::Keys,
    ring,
    token_file::{PREFIX, TokenFileError},
    tokens::Tokens,
};
use crate::{
    config::{self, Principals},
    model::{
        limits::{BEARER_BYTES, JWT_LEEWAY},
        principal::Principal,
    },
};

/// Knows who may come.
#[derive(Debug)]
pub struct Auth {
    tokens: Option<Tokens>,
    trusted: Vec<Trusted>,
    resource: Option<String>,
}

/// Who is calling, and by what right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// With the roles of the credential and of the config.
    pub principal: Principal,
    /// What it was let in for.
    pub credential: Credential,
}

/// What somebody was let in for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// Everybody is.
    None,
    /// A token of ours, by its id.
    Token(String),
    /// A JWT.
    Jwt {
        /// Its holder, with the roles that it gives.
        principal: Principal,
        /// Seconds since 1970.
        expires: u64,
    },
}

/// Why somebody is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It brings nothing.
    Missing,
    /// What it brings is wrong, whatever is wrong with it.
    Invalid,
    /// It lacks one of these scopes, all of which are needed.
    Scope(Vec<String>),
    /// Whether it may come cannot be found out now.
    Unavailable,
}

/// Why nobody can be known.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The file of tokens is there and cannot be used.
    #[error("failed to load the tokens: {0}")]
    Tokens(#[from] TokenFileError),
    /// An issuer's keys cannot be fetched, for this reason.
    #[error("issuer `{name}`: {reason}")]
    Issuer {
        /// Its name in the config.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

impl Auth {
    /// Reads the tokens; keys are fetched when they are needed.
    ///
    /// # Errors
    /// See [`AuthError`].
    pub fn new(config: &config::Auth) -> Result<Self, AuthError> {
        ring::install();
        let tokens = config.tokens.clone().map(Tokens::new).transpose()?;
        let trusted = |issuer: &config::Issuer| {
            let named = |reason: String| AuthError::Issuer { name: issuer.name.clone(), reason };
            Ok(Trusted { issuer: issuer.clone(), keys: Keys::new(issuer).map_err(named)? })
        };
        let trusted = config.issuers.iter().map(trusted).collect::<Result<_, AuthError>>()?;
        Ok(Self { tokens, trusted, resource: config.resource.clone() })
    }

    /// Is known by this name, where the config gives none.
    pub fn known_as(&mut self, resource: String) {
        self.resource.get_or_insert(resource);
    }

    /// What clients know this server by: the part before `/mcp`.
    pub fn base(&self) -> &str {
        let resource = self.resource.as_deref().unwrap_or_default();
        resource.strip_suffix("/mcp").unwrap_or(resource).trim_end_matches('/')
    }

    /// What clients know this server by.
    pub fn resource(&self) -> &str {
        self.resource.as_deref().unwrap_or_default()
    }

    /// Who gives out JWTs for it.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        self.trusted.iter().map(|trusted| trusted.issuer.issuer.as_str())
    }

    /// Scopes that somebody may need, or that give roles; sorted, without repeats.
    pub fn scopes(&self) -> Vec<&str> {
        let all = self.trusted.iter().map(|trusted| &trusted.issuer);
        let mut scopes: Vec<&str> = all
            .flat_map(|issuer| issuer.required_scopes.iter().chain(issuer.scopes.keys()).map(String::as_str))
            .collect();
        scopes.sort_unstable();
        scopes.dedup();
        scopes
    }

    /// Scopes without which nobody with a JWT is let in; sorted, without repeats.
    pub fn required_scopes(&self) -> Vec<&str> {
        let all = self.trusted.iter().flat_map(|trusted| &trusted.issuer.required_scopes);
        let mut scopes: Vec<&str> = all.map(String::as_str).collect();
        scopes.sort_unstable();
        scopes.dedup();
        scopes
    }

    /// Who holds this bearer token, which is for any of these audiences. `known` gives roles besides.
    ///
    /// # Errors
    /// See [`Refusal`].
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    pub async fn caller(&self, bearer: &str, audiences: &[&str], known: &Principals) -> Result<Caller, Refusal> {
        if bearer.len() > BEARER_BYTES {
            return Err(Refusal::Invalid);
        }
        let credential = if bearer.starts_with(PREFIX) {
            let token = self.tokens.as_ref().and_then(|tokens| tokens.find(bearer, now()));
            Credential::Token(token.ok_or(Refusal::Invalid)?.id)
        } else {
            self.jwt(bearer, audiences).await?
        };
        let principal = self.holder(&credential, known).ok_or(Refusal::Invalid)?;
        Ok(Caller { principal, credential })
    }

    async fn jwt(&self, bearer: &str, audiences: &[&str]) -> Result<Credential, Refusal> {
        let (claims, issuer) = verify(bearer, &self.trusted, audiences).await?;
        let name = claims::name(&claims, issuer).ok_or_else(|| {
            tracing::debug!(issuer = %issuer.name, claim = %issuer.principal_claim, "a JWT names nobody");
            Refusal::Invalid
        })?;
        let scopes = claims::scopes(&claims);
        if !issuer.required_scopes.iter().all(|scope| scopes.contains(scope)) {
            return Err(Refusal::Scope(issuer.required_scopes.clone()));
        }
        // Some issuers write it with a fraction.
        let expires = claims["exp"].as_f64().and_then(|expires| Duration::try_from_secs_f64(expires).ok());
        let expires = expires.ok_or(Refusal::Invalid)?.as_secs();
        Ok(Credential::Jwt { principal: Principal::new(name, claims::roles(&claims, issuer)), expires })
    }

    /// Who holds a credential that let somebody in, with the roles that it has now; `None` where it is of no use any more.
    pub fn holder(&self, credential: &Credential, known: &Principals) -> Option<Principal> {
        let (name, mut roles) = match credential {
            Credential::None => return None,
            Credential::Token(id) => {
                let token = self.tokens.as_ref()?.with_id(id, now())?;
                (token.name, token.roles)
            }
            Credential::Jwt { principal, expires } => {
                let is_over = now() >= expires.saturating_add(JWT_LEEWAY.as_secs());
                let Principal { name, roles } = principal.clone();
                if is_over {
                    return None;
                }
                (name, roles)
            }
        };
        roles.extend(known.get(&name).into_iter().flat_map(|known| known.roles.iter().cloned()));
        Some(Principal::new(name, roles))
    }
}
