//! The real binary against real processes: servers of `tests/cases` and of the registries, raw lines and real clients.
#![expect(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "what tests rely on fails the test")]

mod architecture;
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
mod faults;
mod files;
mod finding;
mod fuzz;
mod gate;
mod hidden;
mod http;
mod index;
mod init;
mod lock;
mod models;
mod real;
mod relay;
mod reload;
mod remote;
mod reports;
mod roundtrip;
mod shop;
mod skills;
mod support;
mod upstreams;
mod verbatim;
