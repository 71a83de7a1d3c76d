//! Configs and gating maps: whatever they hold, they are read or refused, with findings at places of the text.

use std::path::Path;

use gatekey::{
    config::{Environment, Transport, load_text},
    gate::map::GatingMap,
    model::diagnostic::{CODES, Diagnostic},
};

/// What no finding may show.
const SECRET: &str = "only-the-environment-knows-this";

/// Reads `input` as a config of our own, as a client's file and as a gating map.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let environment = Environment::from([("TOKEN", SECRET), ("EMPTY", "")]);
    for file in ["conf/gatekey.toml", "conf/mcp.json"] {
        let loaded = load_text(Path::new(file), text.into(), &environment);
        are_inside(&loaded.findings, file, text);
        let Some(config) = loaded.config else {
            assert!(loaded.findings.iter().any(Diagnostic::is_error), "a config is refused for a reason");
            continue;
        };
        for upstream in &config.upstreams {
            match &upstream.transport {
                Err(reason) => {
                    assert!(loaded.findings.iter().any(|finding| finding.message.ends_with(last_of(reason))));
                }
                Ok(Transport::Http(endpoint)) => assert!(endpoint.url.starts_with("http")),
                Ok(Transport::Stdio(_)) => {}
            }
        }
    }
    let mut map = GatingMap::default();
    match map.join(Path::new("map.toml"), text.into()) {
        Ok(()) => {
            let n_entries = map.entries().count();
            assert!(map.join(Path::new("map.toml"), text.into()).is_ok(), "a map agrees with itself");
            assert_eq!(map.entries().count(), 2 * n_entries);
        }
        Err(findings) => {
            assert!(!findings.is_empty(), "a map is refused for a reason");
            are_inside(&findings, "map.toml", text);
            assert_eq!(map.entries().count(), 0, "a map that is refused changes nothing");
        }
    }
}

fn last_of(reasons: &str) -> &str {
    reasons.rsplit("; ").next().unwrap_or_default()
}

fn are_inside(findings: &[Diagnostic], file: &str, text: &str) {
    let lines: Vec<&str> = text.split('\n').collect();
    for finding in findings {
        assert!(CODES.contains(&finding.code), "{finding}");
        assert!(!finding.to_string().contains(SECRET), "{finding}");
        let place = finding.at.as_ref().unwrap_or_else(|| panic!("without a place: {finding}"));
        assert_eq!(place.file, Path::new(file));
        assert!((1..=lines.len()).contains(&place.line), "{finding}");
        assert!((1..=lines[place.line - 1].chars().count() + 1).contains(&place.column), "{finding}");
    }
    assert!(findings.is_sorted_by_key(|finding| &finding.at), "findings stand in the file's order");
}
