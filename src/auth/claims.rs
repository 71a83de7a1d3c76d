//! What a JWT that was verified says of its holder. Must not know how it was verified.

use serde_json::Value;

use crate::{config::Issuer, model::limits::PRINCIPAL_CHARS};

/// The caller's name, with the issuer's before it; `None` where the claim is missing or can be no name.
pub(super) fn name(claims: &Value, issuer: &Issuer) -> Option<String> {
    let said = claim(claims, &issuer.principal_claim)?.as_str()?;
    let is_good = !said.is_empty() && !said.chars().any(char::is_control) && said.chars().count() <= PRINCIPAL_CHARS;
    is_good.then(|| format!("{}:{said}", issuer.name))
}

/// The roles that the claim and the scopes give.
pub(super) fn roles(claims: &Value, issuer: &Issuer) -> Vec<String> {
    let mut roles = claim(claims, &issuer.roles_claim).map(words).unwrap_or_default();
    for scope in scopes(claims) {
        roles.extend(issuer.scopes.get(&scope).into_iter().flatten().cloned());
    }
    roles
}

/// The scopes of a token, under either of the names that are in use.
pub(super) fn scopes(claims: &Value) -> Vec<String> {
    ["scope", "scp"].iter().filter_map(|name| claims.get(name)).flat_map(words).collect()
}

/// A claim by its name, which may be a URL with dots in it, else by the way that leads there.
fn claim<'a>(claims: &'a Value, path: &str) -> Option<&'a Value> {
    claims.get(path).or_else(|| path.split('.').try_fold(claims, |value, name| value.get(name)))
}

/// A list of texts, or a text of words.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => text.split_whitespace().map(str::to_owned).collect(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn issuer(principal: &str, roles: &str) -> Issuer {
        Issuer {
            name: "corp".into(),
            issuer: String::new(),
            audience: None,
            jwks_url: None,
            ca_file: None,
            principal_claim: principal.into(),
            roles_claim: roles.into(),
            scopes: [("mcp:write".to_owned(), vec!["editor".to_owned()])].into_iter().collect(),
            required_scopes: Vec::new(),
        }
    }

    #[test]
    fn claims_are_found_by_name_and_by_path() {
        for (claims, path, expected) in [
            (json!({"roles": ["a", "b", 3]}), "roles", vec!["a", "b"]),
            (json!({"roles": "a b"}), "roles", vec!["a", "b"]),
            (json!({"realm_access": {"roles": ["a"]}}), "realm_access.roles", vec!["a"]),
            (json!({"https://x.example/roles": ["a"]}), "https://x.example/roles", vec!["a"]),
            (json!({"roles": {"a": true}}), "roles", vec![]),
            (json!({"scope": "x mcp:write"}), "roles", vec!["editor"]),
            (json!({"scp": ["mcp:write"]}), "roles", vec!["editor"]),
        ] {
            assert_eq!(roles(&claims, &issuer("sub", path)), expected, "{claims}");
        }
    }

    #[test]
    fn a_name_that_can_be_none_is_no_name() {
        let named = |sub: Value| name(&json!({"sub": sub}), &issuer("sub", "roles"));
        assert_eq!(named(json!("ann")).as_deref(), Some("corp:ann"));
        for sub in [json!(""), json!(7), json!(null), json!("a\nb"), json!("a\u{0}"), json!("x".repeat(300))] {
            assert_eq!(named(sub), None);
        }
    }
}
