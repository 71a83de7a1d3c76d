//! Why a tool is withheld: it is not as somebody accepted it, or its name is made to be taken for another. Must not know where
//! what was accepted is kept.

use std::collections::{HashMap, HashSet};

use unicode_normalization::UnicodeNormalization as _;
use unicode_security::skeleton;

use crate::model::name::{ToolName, UpstreamName};

/// What is wrong with a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// Its definition is another one than the one that was accepted.
    Changed,
    /// Nobody accepted it.
    New,
    /// Its name could be taken for this one, of ours or of another upstream.
    Imitates(String),
}

/// What of the upstreams' offers is not as it was accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unaccepted {
    /// By upstream and its own name.
    pub tools: HashMap<(UpstreamName, ToolName), Doubt>,
    /// Upstreams that say something else of themselves.
    pub instructions: HashSet<UpstreamName>,
    /// Whether that is withheld, not only told.
    pub is_enforced: bool,
}

/// Names as they look, of ours and of the upstreams that were registered so far.
pub(super) struct Looks<'a> {
    /// Without case and separators.
    own: HashMap<String, &'a str>,
    others: HashMap<String, (UpstreamName, String)>,
}

impl<'a> Looks<'a> {
    pub(super) fn new(reserved: &[&'a str]) -> Self {
        Self { own: reserved.iter().map(|name| (bare(name), *name)).collect(), others: HashMap::new() }
    }

    /// Takes in a name, and says which one it imitates: one of ours in whatever case and with whatever separators, or one of
    /// another upstream that differs in characters only that look alike. The same name is a clash and no imitation.
    pub(super) fn imitated(&mut self, upstream: &UpstreamName, name: &str) -> Option<String> {
        if let Some(own) = self.own.get(&bare(name)) {
            return Some((*own).to_owned());
        }
        let (first, known) = self.others.entry(look(name)).or_insert_with(|| (upstream.clone(), name.to_owned()));
        (first != upstream && known.to_lowercase() != name.to_lowercase()).then(|| known.clone())
    }
}

/// What a name looks like: the same for names that people and models take for each other.
///
/// **Source:** Unicode Technical Standard 39, "skeleton".
fn look(name: &str) -> String {
    let plain = name.nfkc().collect::<String>().to_lowercase();
    let seen: String = plain.chars().filter(|c| c.is_alphanumeric() || c.is_ascii_punctuation()).collect();
    skeleton(&seen).collect::<String>().to_lowercase()
}

fn bare(name: &str) -> String {
    look(name).chars().filter(|c| c.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_imitations_and_clashes_are_none() {
        let (shop, evil) = (UpstreamName::new("shop"), UpstreamName::new("evil"));
        let mut looks = Looks::new(&["skill_load", "tool_call_read"]);
        for name in ["orders_list", "Search", "list_items", "skill_download"] {
            assert_eq!(looks.imitated(&shop, name), None, "{name}");
        }
        for (name, expected) in [
            ("skill_load", Some("skill_load")),
            ("Skill-Load", Some("skill_load")),
            ("skillLoad", Some("skill_load")),
            ("ski11_load", Some("skill_load")),
            ("skіll_lоad", Some("skill_load")),
            ("ｓkill_load", Some("skill_load")),
            ("skill\u{200b}_load", Some("skill_load")),
            ("tool_call_reаd", Some("tool_call_read")),
            ("orders_1ist", Some("orders_list")),
            ("оrders_list", Some("orders_list")),
            ("0rders_list", Some("orders_list")),
            // Honest neighbours.
            ("orders_list", None),
            ("search", None),
            ("list-items", None),
            ("skill_loader", None),
            ("load_skill", None),
        ] {
            assert_eq!(looks.imitated(&evil, name).as_deref(), expected, "{name}");
        }
    }
}
