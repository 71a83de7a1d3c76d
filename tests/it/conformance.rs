//! The official conformance suite: against a server that conforms, against the same server behind the proxy, where nothing
//! may be lost, and against the proxy's own skills.

use std::{process::Command, sync::OnceLock, time::Duration};

use serde_json::json;

use crate::support::{
    example,
    proxy::gatekey,
    root,
    running::Running,
    suite::{self, Report},
};

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";
/// How long a program may take to listen.
const START: Duration = Duration::from_secs(30);

/// The conforming server, on a port of its own; returns where.
fn fixture() -> (Running, String) {
    let mut server = Running::start(Command::new(example("conformance")));
    let url = server.rest_of_line("listening on ", START);
    (server, url)
}

/// `gatekey proxy --config … --http` with this config, on a port of its own; returns where.
fn front(mut command: Command) -> (Running, String) {
    command.args(["--http", "127.0.0.1:0"]);
    let mut proxy = Running::start(command);
    let url = proxy.rest_of_line("gatekey listens on ", START);
    (proxy, url)
}

/// Runs the suite against a proxy that stands before one upstream and opens everything.
fn behind_the_proxy(upstream: &str, revision: &str) -> Report {
    let scratch = tempfile::tempdir().unwrap();
    let config = scratch.path().join("gatekey.toml");
    std::fs::write(&config, format!("version = 1\npass-through = true\n\n[upstreams.fixture]\n{upstream}\n")).unwrap();
    let mut command = gatekey();
    command.args(["proxy", "--config"]).arg(&config);
    let (_proxy, url) = front(command);
    suite::run(&url, revision)
}

/// What the suite finds without the proxy; once for all tests.
fn direct(revision: &str) -> &'static Report {
    static LEGACY_REPORT: OnceLock<Report> = OnceLock::new();
    static MODERN_REPORT: OnceLock<Report> = OnceLock::new();
    let report = if revision == LEGACY { &LEGACY_REPORT } else { &MODERN_REPORT };
    report.get_or_init(|| {
        let (_server, url) = fixture();
        suite::run(&url, revision)
    })
}

fn assert_nothing_is_lost(upstream: &str, revision: &str) {
    let lost = direct(revision).lost_in(&behind_the_proxy(upstream, revision));
    assert!(lost.is_empty(), "{revision}, passes directly and not behind the proxy:\n{lost}");
}

/// With the conforming server as an upstream over HTTP.
fn over_http(revision: &str) {
    let (_server, url) = fixture();
    assert_nothing_is_lost(&format!("url = {}", json!(url)), revision);
}

/// With the conforming server as an upstream over stdio.
fn over_stdio(revision: &str) {
    let command = example("conformance");
    assert_nothing_is_lost(&format!("command = {}\nargs = [\"--stdio\"]", json!(command)), revision);
}

#[test]
fn the_fixture_conforms_to_the_revision_with_sessions() {
    let report = direct(LEGACY);
    assert!(report.conforms, "{}", report.said);
    assert_eq!(report.list(|check| check.has_failed()), "");
}

#[test]
fn the_fixture_conforms_to_the_revision_without_sessions() {
    let report = direct(MODERN);
    assert!(report.conforms, "{}", report.said);
    assert_eq!(report.list(|check| check.has_failed()), "");
}

#[test]
fn nothing_is_lost_between_http_and_http_with_sessions() {
    over_http(LEGACY);
}

#[test]
fn nothing_is_lost_between_http_and_http_without_sessions() {
    over_http(MODERN);
}

#[test]
fn nothing_is_lost_between_http_and_stdio_with_sessions() {
    over_stdio(LEGACY);
}

#[test]
fn nothing_is_lost_between_http_and_stdio_without_sessions() {
    over_stdio(MODERN);
}

/// Runs the scenarios of the skills extension against the bundled shop behind the proxy, as it is shipped.
fn assert_skills_conform(revision: &str) {
    let mut command = gatekey();
    command.args(["proxy", "--config"]).arg(root().join("examples/eshop/gatekey.toml"));
    command.env("ESHOP_MCP", example("eshop-mcp"));
    let (_proxy, url) = front(command);
    // Before 2026-07-28 results say nothing of caching, so there is nothing to check.
    let cannot_be = |id: &str| revision == LEGACY && id.ends_with("-cache-attributes");
    for scenario in ["sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory"] {
        let report = suite::run_scenario(&url, revision, scenario);
        // A proxy that does not declare the extension has every check skipped.
        let bad = report.list(|check| check.has_failed() || check.is_skipped() && !cannot_be(check.id()));
        assert_eq!(bad, "", "{revision}");
    }
}

#[test]
fn own_skills_conform_with_sessions() {
    assert_skills_conform(LEGACY);
}

#[test]
fn own_skills_conform_without_sessions() {
    assert_skills_conform(MODERN);
}
