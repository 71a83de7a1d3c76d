//! Floor 2, how far each skill is trusted: by its folder, by a signature, or because the user approved it as it is. Must not
//! know what trust allows. Read `level` first.

mod approvals;
mod level;
mod signature;

pub use approvals::{Approval, Approvals, ApprovalsError};
pub use level::trust_of;
pub use signature::{KeyError, Signed, check_key, make_keys, sign, signer};
