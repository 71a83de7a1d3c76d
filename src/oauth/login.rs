//! A user logs in: they are sent to the authorization server's page, and come back to an address of ours with a code, for
//! which there are tokens.

use reqwest::Url;
use rmcp::transport::auth::{AuthorizationCallback, AuthorizationRequest, AuthorizationSession};

use super::{
    failure::reason,
    manager::{Discovered, discovered},
    store::Slot,
};
use crate::model::{
    hidden::visible,
    program::{Endpoint, OAuth},
    tool::cut,
};

/// Characters of what an authorization server said.
const SAID: usize = 200;
/// By which we register where nobody did so for us.
const CLIENT_NAME: &str = "gatekey";

/// A login that has begun.
pub struct Login(AuthorizationSession);

impl Login {
    /// Finds the authorization server, registers there if the config names no client, and asks for the page to go to.
    ///
    /// # Errors
    /// There is no such server, or it refuses; with the reason.
    pub async fn begin(endpoint: &Endpoint, oauth: &OAuth, slot: Slot, redirect: &str) -> Result<Self, String> {
        let Discovered { mut manager, takes_public_clients } = discovered(endpoint, oauth).await?;
        let scopes: Vec<&str> = oauth.scopes.iter().map(String::as_str).collect();
        let (id, secret) = match &oauth.client_id {
            Some(id) => (id.clone(), oauth.client_secret.clone()),
            None => {
                let registered = manager.register_client(CLIENT_NAME, redirect, &scopes).await;
                let registered = registered.map_err(|error| reason(&error))?;
                // Some give a secret to a client that asked to have none, and refuse it later.
                (registered.client_id, registered.client_secret.filter(|_| !takes_public_clients))
            }
        };
        let is_registered = oauth.client_id.is_none();
        manager.set_credential_store(slot.with_secret(secret.clone().filter(|_| is_registered)));
        let mut request = AuthorizationRequest::new(redirect).with_preregistered_client(id);
        request = request.with_scopes(scopes).with_initial_scope_selection();
        if let Some(secret) = secret {
            request = request.with_client_secret(secret);
        }
        let session = AuthorizationSession::new(manager, request).await.map_err(|(_, error)| reason(&error))?;
        Ok(Self(session))
    }

    /// The page.
    pub fn page(&self) -> &str {
        self.0.get_authorization_url()
    }

    /// Whether somebody who came back with this query did so from the page.
    pub fn is_of(&self, query: &str) -> bool {
        let state_of = |query: &str| {
            let url = Url::parse(&format!("http://localhost/?{query}")).ok()?;
            url.query_pairs().find(|(name, _)| name == "state").map(|(_, value)| value.into_owned())
        };
        let own = Url::parse(self.page()).ok().and_then(|page| state_of(page.query().unwrap_or_default()));
        own.is_some() && state_of(query) == own
    }

    /// Takes the address by which the user came back, and keeps what there is for its code. One that is not of this login
    /// changes nothing.
    ///
    /// # Errors
    /// It is not of this login, or the server refuses; with the reason.
    pub async fn finish(&self, came_back: &str) -> Result<(), String> {
        if let Some(error) = refusal(came_back) {
            return Err(format!("the authorization server says: {error}"));
        }
        let callback = AuthorizationCallback::from_redirect_url(came_back).map_err(|error| reason(&error))?;
        let (code, state, issuer) = (&callback.code, &callback.csrf_token, callback.issuer.as_deref());
        self.0.handle_callback_with_issuer(code, state, issuer).await.map(drop).map_err(|error| reason(&error))
    }
}

/// What an authorization server said instead of giving a code.
fn refusal(came_back: &str) -> Option<String> {
    let url = Url::parse(came_back).ok()?;
    let value = |name: &str| url.query_pairs().find(|(found, _)| found == name).map(|(_, value)| value.into_owned());
    let error = value("error")?;
    let said = value("error_description").map(|said| format!(" ({said})")).unwrap_or_default();
    Some(cut(&visible(&format!("{error}{said}")), SAID))
}

// By hand: what it holds are secrets.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}
