//! Who is calling. Must not know what a caller may do: that is `gate::policy`.

use std::fmt;

use super::limits::PRINCIPAL_CHARS;

/// A caller: who it is and the roles it holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal {
    /// As given on the command line or by the config.
    pub name: String,
    /// Sorted, without repeats.
    pub roles: Vec<String>,
}

impl Principal {
    /// A caller with these roles, in any order.
    pub fn new(name: impl Into<String>, mut roles: Vec<String>) -> Self {
        roles.sort();
        roles.dedup();
        Self { name: name.into(), roles }
    }

    /// The caller when nobody said who it is: one person at their own machine.
    pub fn local() -> Self {
        Self { name: "local".into(), roles: Vec::new() }
    }
}

/// Why this can be no name of a token or an issuer; `None` where it can be one. Issuers stand before their callers' names
/// with a colon, so that none of their callers is ever taken for somebody else.
pub fn name_fault(name: &str) -> Option<&'static str> {
    let is_good = !name.is_empty() && name.trim() == name && !name.contains(':') && !name.chars().any(char::is_control);
    let is_short = name.chars().count() <= PRINCIPAL_CHARS;
    (!is_good || !is_short)
        .then_some("a name is short, not empty, and has no colon, control character or blank around it")
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
