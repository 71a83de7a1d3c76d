//! rmcp's state of one client towards one authorization server, as our config has it.

use rmcp::transport::auth::{AuthorizationManager, AuthorizationMetadataSource, OAuthClientConfig};

use serde_json::Value;

use super::failure::reason;
use crate::{
    model::program::{Endpoint, OAuth},
    wire::http_client::{plain_client, use_ring},
};

/// A client of the authorization server that was found.
pub(super) struct Discovered {
    pub(super) manager: AuthorizationManager,
    /// Whether it knows clients that have no secret, which is what we register as.
    pub(super) takes_public_clients: bool,
}

/// Finds the authorization server.
///
/// # Errors
/// There is none, or it cannot be reached; with the reason.
pub(super) async fn discovered(endpoint: &Endpoint, oauth: &OAuth) -> Result<Discovered, String> {
    use_ring();
    // What a server names is asked only where that is no address within a private network: it could be any of its machines.
    let made = match oauth.may_be_private {
        false => AuthorizationManager::new(&*endpoint.url).await,
        true => AuthorizationManager::new_allowing_private_addresses(&*endpoint.url).await,
    };
    let mut manager = made.map_err(|error| reason(&error))?;
    if let Some(file) = &endpoint.ca_file {
        manager.with_client(plain_client(Some(file), true)?).map_err(|error| reason(&error))?;
    }
    let found = manager.resolve_metadata().await.map_err(|error| reason(&error))?;
    if found.source == AuthorizationMetadataSource::LegacyEndpointFallback {
        return Err("the server names no authorization server".into());
    }
    let methods = found.metadata.additional_fields.get("token_endpoint_auth_methods_supported");
    let takes_public_clients =
        methods.and_then(Value::as_array).is_none_or(|all| all.iter().any(|name| name == "none"));
    manager.set_metadata(found.metadata);
    Ok(Discovered { manager, takes_public_clients })
}

/// Who we are there.
pub(super) fn client(id: &str, secret: Option<String>, redirect: &str) -> OAuthClientConfig {
    let config = OAuthClientConfig::new(id, redirect);
    match secret {
        Some(secret) => config.with_client_secret(secret),
        None => config,
    }
}
