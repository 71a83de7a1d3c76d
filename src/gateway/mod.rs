//! Floor 4, the data plane: what a client asks → an answer of ours or a call to an upstream. Only this folder answers
//! clients. Read `dispatch` first.

mod call;
mod catalogue;
mod dispatch;
mod error;
mod list;
mod meta;
mod notify;
mod params;
mod signature;

pub use dispatch::Gateway;
pub use error::answer_failure;
pub use meta::NAMES as META_TOOLS;
pub use signature::signature;
