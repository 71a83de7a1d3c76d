//! Floor 4, the data plane: what a client asks → an answer of ours or a call to an upstream. Only this folder answers
//! clients. Read `dispatch` first.

mod admission;
mod call;
mod catalogue;
mod dispatch;
mod error;
mod experience;
mod finding;
mod finish;
mod hello;
mod index;
mod inputs;
mod ledger;
mod list;
mod meta;
mod notify;
mod offers;
mod params;
mod recorded;
mod relay;
mod serve;
mod signature;
mod skills;
mod subscribe;
mod tasks;
mod upward;

pub use catalogue::{CatalogueParts, catalogue_parts};
pub use dispatch::{Gateway, NoSkill, needs_upstreams};
pub use index::{INDEX_MARKERS, MiniIndex, mini_index};
pub use meta::NAMES as META_TOOLS;
pub use signature::signature;
