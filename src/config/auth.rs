//! Who may come over HTTP, as the config says it. Must not know how a token is looked at.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use reqwest::Url;

use super::raw::{RawAuth, RawIssuer};
use crate::model::{principal::name_fault, source::escaped};

/// Who may come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auth {
    /// The file of tokens.
    pub tokens: Option<PathBuf>,
    /// What clients know this server by; the address it listens at where it is absent.
    pub resource: Option<String>,
    /// Who gives out JWTs.
    pub issuers: Vec<Issuer>,
}

/// One that gives out JWTs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// Stands before its callers' names.
    pub name: String,
    /// As `iss` has it.
    pub issuer: String,
    /// As `aud` must have it, where that is not the resource.
    pub audience: Option<String>,
    /// Where its keys are, where its metadata is not to say so.
    pub jwks_url: Option<String>,
    /// Certificates (PEM) that are trusted besides the system's.
    pub ca_file: Option<PathBuf>,
    /// The claim that tells callers apart.
    pub principal_claim: String,
    /// The claim with the roles.
    pub roles_claim: String,
    /// Roles that come with a scope.
    pub scopes: IndexMap<String, Vec<String>>,
    /// Scopes without which nothing is served.
    pub required_scopes: Vec<String>,
}

/// Whether what the URL names is on this machine.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

/// Fills in what the file leaves out; paths start at `folder`.
pub(super) fn checked(raw: RawAuth, folder: &Path) -> Auth {
    let issuer = |(name, raw): (String, RawIssuer)| Issuer {
        name,
        issuer: raw.issuer,
        audience: raw.audience,
        jwks_url: raw.jwks_url,
        ca_file: raw.ca_file.map(|file| folder.join(file)),
        principal_claim: raw.principal_claim.unwrap_or_else(|| "sub".into()),
        roles_claim: raw.roles_claim.unwrap_or_else(|| "roles".into()),
        scopes: raw.scopes,
        required_scopes: raw.required_scopes,
    };
    Auth {
        tokens: raw.tokens.map(|path| folder.join(path)),
        resource: raw.resource,
        issuers: raw.issuers.into_iter().map(issuer).collect(),
    }
}

/// The texts that may hold variables, with where they stand.
pub(super) fn texts(raw: &mut RawAuth) -> Vec<(String, &mut String)> {
    let at = |member: &str| format!("/http/auth/{member}");
    let mut texts: Vec<(String, &mut String)> = Vec::new();
    texts.extend(raw.tokens.as_mut().map(|text| (at("tokens"), text)));
    texts.extend(raw.resource.as_mut().map(|text| (at("resource"), text)));
    for (name, issuer) in &mut raw.issuers {
        let at = |member: &str| at(&format!("issuers/{}/{member}", escaped(name)));
        texts.push((at("issuer"), &mut issuer.issuer));
        texts.extend(issuer.audience.as_mut().map(|text| (at("audience"), text)));
        texts.extend(issuer.jwks_url.as_mut().map(|text| (at("jwks-url"), text)));
        texts.extend(issuer.ca_file.as_mut().map(|text| (at("ca-file"), text)));
    }
    texts
}

/// What is wrong, with where it stands.
pub(super) fn faults(raw: &RawAuth) -> Vec<(String, String)> {
    let mut faults = Vec::new();
    let mut refuse = |member: &str, message: String| faults.push((format!("/http/auth{member}"), message));
    if raw.tokens.is_none() && raw.issuers.is_empty() {
        refuse("", "`http.auth` lets nobody in: it needs `tokens` or an issuer".into());
    }
    if let Some(resource) = &raw.resource
        && !Url::parse(resource).is_ok_and(|url| is_plain(&url) && ["http", "https"].contains(&url.scheme()))
    {
        refuse("/resource", "`resource` must be a URL without user, query and fragment".into());
    }
    for (index, (name, issuer)) in raw.issuers.iter().enumerate() {
        let place = format!("/issuers/{}", escaped(name));
        if let Some(fault) = name_fault(name) {
            refuse(&place, format!("issuer `{}`: {fault}", name.escape_debug()));
        }
        let urls = [("issuer", Some(&issuer.issuer)), ("jwks-url", issuer.jwks_url.as_ref())];
        for (member, url) in urls.into_iter().filter_map(|(member, url)| Some((member, url?))) {
            if !Url::parse(url).is_ok_and(|url| is_safe(&url)) {
                let rule = "must be a URL with `https`, or `http` on this machine, without user and fragment";
                refuse(&format!("{place}/{member}"), format!("issuer `{name}`: `{member}` {rule}"));
            }
        }
        let scopes = issuer.scopes.keys().chain(&issuer.required_scopes);
        if let Some(scope) = scopes.into_iter().find(|scope| !is_scope(scope)) {
            refuse(&place, format!("issuer `{name}`: `{}` is no scope", scope.escape_debug()));
        }
        if raw.issuers.values().take(index).any(|other| other.issuer == issuer.issuer) {
            refuse(&place, format!("issuer `{name}`: another one has the same `issuer`"));
        }
    }
    faults
}

/// **Source:** RFC 6749, 3.3.
fn is_scope(scope: &str) -> bool {
    !scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

fn is_plain(url: &Url) -> bool {
    url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.fragment().is_none()
}

/// Whether what comes from there is what its owner sent.
fn is_safe(url: &Url) -> bool {
    let is_open = url.scheme() == "http" && is_loopback(url);
    (url.scheme() == "https" || is_open)
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::{Environment, load_text};

    #[test]
    fn who_may_come_is_said_without_a_doubt() {
        let text = r#"
            version = 1
            [http.auth]
            resource = "https://user@gw.example/mcp"
            [http.auth.issuers."a:b"]
            issuer = "https://id.example"
            [http.auth.issuers.plain]
            issuer = "http://id.example"
            jwks-url = "http://127.0.0.1:1/keys"
            [http.auth.issuers.twice]
            issuer = "https://id.example"
            required-scopes = ["a b"]
            [http.auth.issuers.right]
            issuer = "http://localhost:${PORT}"
        "#;
        let environment = Environment::from([("PORT", "8080")]);
        let loaded = load_text(Path::new("gatekey.toml"), text.into(), &environment);
        assert!(loaded.config.is_none());
        let findings: Vec<String> = loaded.findings.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(findings.join("\n"), @r"
        gatekey.toml:4:13: error[config-invalid]: `resource` must be a URL without user, query and fragment
        gatekey.toml:5:32: error[config-invalid]: issuer `a:b`: a name is short, not empty, and has no colon, control character or blank around it
        gatekey.toml:8:13: error[config-invalid]: issuer `plain`: `issuer` must be a URL with `https`, or `http` on this machine, without user and fragment
        gatekey.toml:10:32: error[config-invalid]: issuer `twice`: `a b` is no scope
        gatekey.toml:10:32: error[config-invalid]: issuer `twice`: another one has the same `issuer`
        ");
        let nobody = load_text(Path::new("gatekey.toml"), "version = 1\n[http.auth]\n".into(), &environment);
        assert_eq!(nobody.findings.len(), 1);
    }
}
