//! The real binary against real processes: servers of `tests/cases` and of the registries, raw lines and real clients.
#![expect(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "what tests rely on fails the test")]

mod architecture;
mod attack_beyond;
// The browser is there for this system.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod attack_browser;
mod attack_files;
mod attack_gate;
mod attack_http;
mod attack_import;
mod attack_limits;
mod attack_tokens;
mod attack_upstream;
mod audit;
mod auth;
mod auth_jwt;
mod auth_rules;
mod bad_input;
mod bridge;
mod budget;
mod budget_task;
mod cases;
mod check;
mod conformance;
mod credentials;
mod faults;
mod files;
mod finding;
mod fuzz;
mod gate;
mod hidden;
mod http;
mod import;
mod index;
mod init;
mod lock;
mod models;
mod pins;
mod real;
mod relay;
mod reload;
mod remote;
mod reports;
mod roundtrip;
mod sandbox;
mod scan;
mod shop;
mod skills;
mod support;
mod tls;
mod trust;
mod upstreams;
mod verbatim;
