//! Which loaded skills were of use, to whom: a tool of theirs was called and did what it should. Kept in memory.

use std::{
    collections::HashMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{
    catalog::OpenSkills,
    model::{name::SkillName, principal::Principal},
    search::prior,
};

/// What came of loading skills.
#[derive(Debug, Default)]
pub(super) struct Experience {
    /// By the name of a principal: what one of them does is nothing to the others.
    loads: Mutex<HashMap<String, HashMap<SkillName, Loads>>>,
    /// How many loads may yet show their use; calls look no further while there are none.
    n_open: AtomicUsize,
}

#[derive(Debug, Default)]
struct Loads {
    n: u32,
    n_good: u32,
    /// Whether nothing came of the last one yet.
    is_open: bool,
}

impl Experience {
    /// A skill was loaded.
    pub(super) fn loaded(&self, principal: &Principal, skill: &SkillName) {
        let mut all = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        let loads = all.entry(principal.name.clone()).or_default().entry(skill.clone()).or_default();
        // Loading it again before its use is no other use.
        if !loads.is_open {
            loads.n += 1;
            loads.is_open = true;
            self.n_open.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The skills of `open`, loaded by `principal`, of which a call may yet show that they are of use.
    pub(super) fn waiting(&self, principal: &Principal, open: &OpenSkills) -> Vec<SkillName> {
        if self.n_open.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let all = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = all.get(&principal.name) else { return Vec::new() };
        open.iter().filter(|skill| own.get(*skill).is_some_and(|loads| loads.is_open)).cloned().collect()
    }

    /// A call by these skills did what it should.
    pub(super) fn succeeded(&self, principal: &Principal, skills: &[SkillName]) {
        let mut all = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = all.get_mut(&principal.name) else { return };
        for skill in skills {
            if let Some(loads) = own.get_mut(skill).filter(|loads| loads.is_open) {
                loads.is_open = false;
                loads.n_good += 1;
                self.n_open.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// What a skill counts more in a search of `principal`.
    pub(super) fn prior(&self, principal: &Principal, skill: &SkillName, is_recent: bool) -> f32 {
        let all = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        let loads = all.get(&principal.name).and_then(|own| own.get(skill));
        // A load that nothing came of yet says nothing yet.
        let (n, n_good) = loads.map_or((0, 0), |loads| (loads.n - u32::from(loads.is_open), loads.n_good));
        prior(n, n_good, is_recent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_whose_tools_did_what_they_should_counts_more_for_who_loaded_it() {
        let (experience, ann) = (Experience::default(), Principal { name: "ann".into(), roles: Vec::new() });
        let [orders, mail] = ["orders", "mail"].map(SkillName::new);
        let open = vec![orders.clone(), mail.clone()];
        assert!(experience.waiting(&ann, &open).is_empty());
        experience.loaded(&ann, &orders);
        experience.loaded(&ann, &orders);
        assert_eq!(experience.waiting(&ann, &open), std::slice::from_ref(&orders));
        assert_eq!(experience.prior(&ann, &orders, false), 0.0, "nothing came of it yet");
        experience.succeeded(&ann, &open);
        experience.succeeded(&ann, &open);
        assert!(experience.waiting(&ann, &open).is_empty());
        assert_eq!(experience.prior(&ann, &orders, false), prior(1, 1, false));
        assert_eq!(experience.prior(&ann, &mail, false), 0.0);
        assert_eq!(experience.prior(&Principal::local(), &orders, false), 0.0, "others learn nothing of it");
    }
}
