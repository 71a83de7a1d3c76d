//! gatekey.
pub mod config;
pub mod gate;
pub mod model;
pub mod skill;
pub mod wire;
