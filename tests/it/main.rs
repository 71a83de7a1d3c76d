//! The real binary against real processes: servers of `tests/cases` and of the registries, raw lines and real clients.

mod architecture;
mod bad_input;
mod cases;
mod gate;
mod real;
mod shop;
mod support;
