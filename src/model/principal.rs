//! Who is calling. Must not know what a caller may do: that is `gate::policy`.

use std::fmt;

/// A caller: who it is and the roles it holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal {
    /// As given on the command line or by the config.
    pub name: String,
    /// Sorted, without repeats.
    pub roles: Vec<String>,
}

impl Principal {
    /// The caller when nobody said who it is: one person at their own machine.
    pub fn local() -> Self {
        Self { name: "local".into(), roles: Vec::new() }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
