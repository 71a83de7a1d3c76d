//! The names things go by, and the one rule by which a tool's name becomes exposable. Must not know which names are
//! taken: that is `catalog::registry`.

use std::{fmt, sync::Arc};

use data_encoding::BASE32_NOPAD;
use sha2::{Digest as _, Sha256};

use super::limits::NAME_CHARS;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the name as it is.
            pub fn new(name: impl Into<Arc<str>>) -> Self {
                Self(name.into())
            }

            /// Returns the name's text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Shares the name's text.
            pub fn to_shared(&self) -> Arc<str> {
                Arc::clone(&self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )*};
}

names! {
    /// An upstream, as the config calls it.
    UpstreamName,
    /// A tool, as its upstream calls it.
    ToolName,
    /// A skill, as the catalogue calls it.
    SkillName,
    /// A tool, as clients see it: always `[A-Za-z0-9_-]{1,64}`.
    ExposedName,
}

impl UpstreamName {
    /// What is wrong with this name; an upstream whose name is wrong is not started, nor made a skill that nobody can load.
    pub fn fault(&self) -> Option<String> {
        let name = self.as_str();
        if name.trim() != name || name.is_empty() || name.chars().any(char::is_control) {
            return Some("a name is not empty and has no blanks around it or control characters".into());
        }
        (name.chars().count() > NAME_CHARS).then(|| format!("a name has at most {NAME_CHARS} characters"))
    }
}

impl ExposedName {
    /// Returns `name` itself where model APIs take it, else a rewritten form that depends on `name` alone.
    ///
    /// **Source:** model APIs take `^[a-zA-Z0-9_-]{1,64}$` and refuse the whole request otherwise.
    pub fn for_name(name: &str) -> Self {
        if is_exposable(name) { Self::new(name) } else { Self::rewritten(name, name) }
    }

    /// Returns the readable part of `name` with a stable hash of `identity` behind it.
    pub fn rewritten(name: &str, identity: &str) -> Self {
        let hash = short_hash(identity.as_bytes());
        let head: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
            .take(NAME_CHARS - hash.len() - 1)
            .collect();
        Self::new(format!("{}_{hash}", head.trim_end_matches('_')))
    }
}

/// Whether model APIs take `name` as a tool's name.
pub fn is_exposable(name: &str) -> bool {
    (1..=NAME_CHARS).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Six base32 characters (30 bits) of the SHA-256 of `bytes`.
fn short_hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let mut text = BASE32_NOPAD.encode(&digest).to_ascii_lowercase();
    text.truncate(6);
    text
}

/// The names among `known` closest to `wanted`, best first, at most three; ties by name.
pub fn did_you_mean<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut scored: Vec<(f64, &str)> =
        known.map(|name| (strsim::jaro_winkler(wanted, name), name)).filter(|(score, _)| *score > 0.8).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_model_apis_take_stays() {
        for name in ["x", "orders_list", "-lead", "9nine", &"a".repeat(64)] {
            assert_eq!(ExposedName::for_name(name).as_str(), name);
        }
    }

    #[test]
    fn any_other_name_is_rewritten_within_the_bounds() {
        for name in ["", "a.b", "fs read", "naïve", "工具", "😀", &"a".repeat(65), "a/b:c"] {
            let exposed = ExposedName::for_name(name);
            assert!(is_exposable(exposed.as_str()), "{name} became {exposed}");
            assert_eq!(exposed, ExposedName::for_name(name));
        }
    }

    #[test]
    fn names_that_differ_only_where_they_are_cut_or_replaced_stay_different() {
        let long = "b".repeat(84);
        let pairs = [("a.b", "a/b"), ("a.b", "a b"), (&*format!("{long}_alpha"), &*format!("{long}_gamma"))];
        for (a, b) in pairs {
            assert_ne!(ExposedName::for_name(a), ExposedName::for_name(b));
        }
    }

    #[test]
    fn suggestions_are_the_closest_names() {
        let known = ["orders_list", "orders_get", "store_list"];
        assert_eq!(did_you_mean("order_list", known.into_iter())[0], "orders_list");
        assert!(did_you_mean("zzz", known.into_iter()).is_empty());
    }
}
