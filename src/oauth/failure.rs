//! What went wrong with a token, in words for a log and for a model: no address, no token, no header.

use rmcp::transport::auth::AuthError;

use crate::model::tool::cut;

/// Characters of what an authorization server said.
const SAID: usize = 200;

/// The reason without its causes, which may hold addresses with secrets in them.
pub(super) fn reason(error: &AuthError) -> String {
    match error {
        AuthError::NoAuthorizationSupport => "the server says nothing of how to log in".into(),
        AuthError::HttpError(error) if error.is_timeout() => "its authorization server does not answer in time".into(),
        AuthError::HttpError(_) | AuthError::DiscoveryRequestFailed { .. } => {
            "its authorization server cannot be reached".into()
        }
        other => cut(&other.to_string(), SAID),
    }
}
