//! Floor 1, the gate: which tools a skill opens, the keys that prove a load, and the one decision whether a tool may be
//! called. Pure: no clock, no I/O. Read `policy` first.

pub mod key;
pub mod map;
pub mod policy;
mod reading;
