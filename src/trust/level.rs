//! How far a skill is trusted, from all that is known of it.

use super::{approvals::Approvals, signature::Signed};
use crate::{model::trust::Trust, skill::Skill};

/// How far `skill` with this signature is trusted. Its files are read where that depends on them.
pub fn trust_of(skill: &Skill, approvals: &Approvals, signed: Option<&Signed>) -> Trust {
    if skill.trust == Trust::Trusted {
        return Trust::Trusted;
    }
    if matches!(signed, Some(Signed::By(_))) {
        return Trust::Verified;
    }
    if skill.trust == Trust::Untrusted && skill.set_digest().is_some_and(|digest| approvals.has(&digest)) {
        return Trust::User;
    }
    skill.trust
}
