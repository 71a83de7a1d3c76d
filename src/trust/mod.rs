//! Floor 2, how far each skill is trusted: by its folder, by a signature, or because the user approved it as it is. Must not
//! know what trust allows. Read `approvals` first.

mod approvals;
mod signature;

pub use approvals::{Approval, Approvals, ApprovalsError};
pub use signature::{KeyError, Signed, check_key, make_keys, sign, signer};

use indexmap::IndexMap;

use crate::{model::trust::Trust, skill::Skill};

/// How far `skill` is trusted. Its files are read where that depends on them.
pub fn trust_of(skill: &Skill, approvals: &Approvals, keys: &IndexMap<String, String>) -> Trust {
    if skill.trust == Trust::Trusted {
        return Trust::Trusted;
    }
    if matches!(signer(skill, keys), Some(Signed::By(_))) {
        return Trust::Verified;
    }
    if skill.trust == Trust::Untrusted && skill.set_digest().is_some_and(|digest| approvals.has(&digest)) {
        return Trust::User;
    }
    skill.trust
}
