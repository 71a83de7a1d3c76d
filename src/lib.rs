//! gatekey.
pub mod app;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod gate;
pub mod gateway;
pub mod model;
pub mod reload;
pub mod session;
pub mod skill;
pub mod upstream;
pub mod wire;
