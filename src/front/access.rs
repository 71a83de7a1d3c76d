//! Who may speak to us at all: a page in a browser must not reach a local server, neither by its own origin nor by a name
//! that it made point here.

use axum::http::{HeaderMap, StatusCode, header::HOST, header::ORIGIN};

use crate::config::Http;

/// Names that stand for this machine whatever the network says.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Checks `Host` and `Origin`. A request without `Origin` comes from no page.
///
/// # Errors
/// The status to refuse with, and why.
pub(super) fn check(headers: &HeaderMap, options: &Http) -> Result<(), (StatusCode, &'static str)> {
    let refused = |why| Err((StatusCode::FORBIDDEN, why));
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    match host {
        Some(host) if hosts.next().is_none() && is_known(host, &options.hosts) => {}
        _ => return refused("this host is not served; `allowed-hosts` names those that are"),
    }
    let mut origins = headers.get_all(ORIGIN).iter();
    let Some(origin) = origins.next() else { return Ok(()) };
    let is_allowed = |origin: &str| {
        options.origins.iter().any(|known| known.eq_ignore_ascii_case(origin))
            || origin.strip_prefix("http://").is_some_and(|host| LOOPBACK.contains(&without_port(host)))
    };
    match origin.to_str() {
        Ok(origin) if origins.next().is_none() && is_allowed(origin) => Ok(()),
        _ => refused("this origin is not served; `allowed-origins` names those that are"),
    }
}

fn is_known(host: &str, allowed: &[String]) -> bool {
    let name = without_port(host);
    let is_it = |known: &str| known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(name);
    LOOPBACK.iter().any(|known| is_it(known)) || allowed.iter().any(|known| known == "*" || is_it(known))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(host: &str, origin: Option<&str>) -> u16 {
        let options = Http {
            hosts: vec!["gate.example".into()],
            origins: vec!["https://ui.example".into()],
            ..crate::config::Config::default().http
        };
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        check(&headers, &options).map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    #[test]
    fn only_known_hosts_and_origins_are_served() {
        for (host, origin, expected) in [
            ("127.0.0.1:8080", None, 200),
            ("localhost", Some("http://localhost:5173"), 200),
            ("[::1]:80", Some("http://[::1]:80"), 200),
            ("gate.example:8443", Some("https://ui.example"), 200),
            ("evil.example", None, 403),
            ("localhost.evil.example", None, 403),
            ("127.0.0.1", Some("http://evil.example"), 403),
            ("127.0.0.1", Some("http://localhost.evil.example"), 403),
            ("127.0.0.1", Some("http://localhost@evil.example"), 403),
            ("127.0.0.1", Some("null"), 403),
            ("127.0.0.1", Some("https://ui.example.evil"), 403),
        ] {
            assert_eq!(status(host, origin), expected, "{host} {origin:?}");
        }
        assert_eq!(
            check(&HeaderMap::new(), &crate::config::Config::default().http).unwrap_err().0,
            403,
            "a request names its host"
        );
    }
}
