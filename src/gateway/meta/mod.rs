//! The meta-tools: what a model sees of us. One file each; `serve` has their names, definitions and the way to them.

mod serve;
mod skill_load;
mod skill_read_reference;
mod skill_search;
mod skill_unload;
mod tool_call;
mod tool_describe;

pub use serve::NAMES;
pub(super) use serve::{call, definitions, sent_as};
