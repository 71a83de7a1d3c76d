//! The token that goes with each request to a server: of a login, or got by id and secret; renewed when its time is over or
//! the server does not take it.

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use rmcp::transport::auth::{AuthError, AuthorizationManager, ClientCredentialsConfig};
use tokio::sync::Mutex;

use super::{
    failure::reason,
    manager::{client, discovered},
    store::Slot,
};
use crate::{
    model::program::{Endpoint, Grant, OAuth},
    wire::http_client::{Credential, Soon},
};

const SCHEME: &str = "Bearer ";

/// A token that is there when it is needed.
pub struct Bearer {
    endpoint: Endpoint,
    oauth: OAuth,
    /// Where the login is; id and secret need none.
    slot: Option<Slot>,
    /// What the user can do where there is no login.
    remedy: String,
    /// Made when first needed, and anew where somebody logged in as another client.
    client: Mutex<Option<Client>>,
}

struct Client {
    id: String,
    manager: AuthorizationManager,
}

impl Bearer {
    /// Nothing is asked for yet.
    ///
    /// # Errors
    /// There is no place where logins could be.
    pub fn new(endpoint: &Endpoint, oauth: &OAuth, upstream: &str, caller: Option<&str>) -> Result<Self, String> {
        let slot = match oauth.grant {
            Grant::Code => Some(Slot::new(oauth, &endpoint.url, caller)?),
            Grant::Client => None,
        };
        let of_whom = caller.map(|caller| format!(" --as {caller}")).unwrap_or_default();
        let remedy = format!("log in with `gatekey login {upstream}{of_whom}`");
        let (endpoint, oauth) = (endpoint.clone(), oauth.clone());
        Ok(Self { endpoint, oauth, slot, remedy, client: Mutex::default() })
    }

    /// The token as it is now, or the next one where its time is over or it is the one that was `refused`.
    async fn token(&self, refused: Option<&str>) -> Result<String, String> {
        // One of many who need the next one gets it; the others wait for it here.
        let mut known = self.client.lock().await;
        match &self.slot {
            Some(slot) => self.of_login(slot, &mut known, refused).await,
            None => self.of_client(&mut known, refused).await,
        }
    }

    async fn of_login(&self, slot: &Slot, known: &mut Option<Client>, refused: Option<&str>) -> Result<String, String> {
        let kept = slot.kept().map_err(|error| format!("the logins cannot be read: {error}"))?;
        let Some(kept) = kept.filter(|kept| kept.credentials.token_response.is_some()) else {
            return Err(format!("nobody is logged in: {}", self.remedy));
        };
        let id = &kept.credentials.client_id;
        let client = match known.take().filter(|known| known.id == *id) {
            Some(client) => client,
            None => {
                let mut manager = discovered(&self.endpoint, &self.oauth).await?.manager;
                manager.set_credential_store(slot.clone());
                // A login at another authorization server than the one of now is none.
                if !manager.initialize_from_store().await.map_err(|error| self.failed(&error))? {
                    return Err(self.failed(&AuthError::AuthorizationRequired));
                }
                let secret = self.oauth.client_secret.clone().or(kept.client_secret);
                let config = client(id, secret, &self.endpoint.url);
                manager.configure_client(config).map_err(|error| reason(&error))?;
                Client { id: id.clone(), manager }
            }
        };
        let manager = &known.insert(client).manager;
        let token = manager.get_access_token().await.map_err(|error| self.failed(&error))?;
        if refused != Some(token.as_str()) {
            return Ok(token);
        }
        manager.refresh_token().await.map_err(|error| self.failed(&error))?;
        manager.get_access_token().await.map_err(|error| self.failed(&error))
    }

    async fn of_client(&self, known: &mut Option<Client>, refused: Option<&str>) -> Result<String, String> {
        let (Some(id), Some(secret)) = (&self.oauth.client_id, &self.oauth.client_secret) else {
            return Err("the config has no `client-id` and `client-secret`".into());
        };
        let config = ClientCredentialsConfig::ClientSecret {
            client_id: id.clone(),
            client_secret: secret.clone(),
            scopes: self.oauth.scopes.clone(),
            resource: Some(self.endpoint.url.clone()),
        };
        let client = match known.take() {
            Some(client) => client,
            None => {
                let mut manager = discovered(&self.endpoint, &self.oauth).await?.manager;
                manager.configure_client_credentials(&config).map_err(|error| reason(&error))?;
                Client { id: id.clone(), manager }
            }
        };
        let manager = &known.insert(client).manager;
        match manager.get_access_token().await {
            Ok(token) if refused != Some(token.as_str()) => return Ok(token),
            Ok(_) | Err(AuthError::AuthorizationRequired | AuthError::TokenExpired) => {}
            Err(error) => return Err(reason(&error)),
        }
        manager.exchange_client_credentials(&config).await.map_err(|error| reason(&error))?;
        manager.get_access_token().await.map_err(|error| reason(&error))
    }

    fn failed(&self, error: &AuthError) -> String {
        match error {
            AuthError::AuthorizationRequired | AuthError::TokenExpired | AuthError::TokenRefreshRejected(_) => {
                format!("the login is over: {}", self.remedy)
            }
            other => reason(other),
        }
    }
}

impl Credential for Bearer {
    fn headers(&self) -> Soon<'_, Result<HeaderMap, String>> {
        Box::pin(async move {
            let token = self.token(None).await?;
            // The reason would repeat it.
            let mut value = HeaderValue::try_from(format!("{SCHEME}{token}"))
                .map_err(|_error| "the token can stand in no header".to_owned())?;
            value.set_sensitive(true);
            Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
        })
    }

    fn renew<'a>(&'a self, refused: &'a HeaderMap) -> Soon<'a, bool> {
        Box::pin(async move {
            let given = refused.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix(SCHEME));
            let renewed = self.token(given).await;
            renewed.inspect_err(|reason| tracing::debug!(reason, "a token is not renewed")).is_ok()
        })
    }
}

// By hand: what it holds are secrets.
impl std::fmt::Debug for Bearer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bearer").finish_non_exhaustive()
    }
}
