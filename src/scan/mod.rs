//! Floor 1, looking through texts that will land in a model's context for what is hardly meant well. Hygiene, no gate:
//! nothing is changed, findings say where. Must not know whose texts these are. Read `scanner` first.

mod pattern;
mod scanner;
mod script;

pub use pattern::{Class, Kind, PatternError};
pub use scanner::{Found, Scanner};
