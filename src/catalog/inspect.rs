//! What clients will stumble over in a snapshot: names that one has no room for, and more tools than it takes.

use super::snapshot::Snapshot;
use crate::model::diagnostic::Diagnostic;

/// A client's limits on tools.
#[derive(Debug)]
pub struct ClientLimits {
    /// What it is called.
    pub name: &'static str,
    /// What it puts before a tool's name, where we are called `gatekey` in its config.
    pub before: &'static str,
    /// Characters of both.
    pub name_chars: usize,
    /// Tools at once; `usize::MAX` where none is known.
    pub tools: usize,
}

/// Clients whose limits are known.
///
/// **Source:** measured with a fake model where the client could be run; for Cursor and VS Code their users' reports
/// (microsoft/vscode#243602, #294055).
pub const CLIENTS: &[ClientLimits] = &[
    ClientLimits { name: "claude-code", before: "mcp__gatekey__", name_chars: 128, tools: usize::MAX },
    ClientLimits { name: "cline", before: "gatekey__", name_chars: 64, tools: usize::MAX },
    ClientLimits { name: "codex", before: "mcp__gatekey__", name_chars: 64, tools: usize::MAX },
    ClientLimits { name: "copilot-cli", before: "gatekey-", name_chars: 64, tools: usize::MAX },
    ClientLimits { name: "cursor", before: "gatekey", name_chars: 60, tools: 80 },
    ClientLimits { name: "vscode", before: "", name_chars: 64, tools: 128 },
];

impl Snapshot {
    /// What `client` has no room for: names, and tools that are listed at the start, of which `n_own` are ours.
    pub fn beyond_client(&self, client: &ClientLimits, n_own: usize) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for tool in self.registry.tools() {
            let n_chars = client.before.len() + tool.exposed.as_str().chars().count();
            if n_chars > client.name_chars {
                let message = format!(
                    "`{}{}` has {n_chars} characters, and {} takes {}",
                    client.before, tool.exposed, client.name, client.name_chars
                );
                let hint =
                    format!("give `{}` a shorter `prefix`; by key the tool can be called all the same", tool.upstream);
                found.push(Diagnostic::warning("client-name-long", message).hint(hint));
            }
        }
        let n_start =
            n_own + (0..self.registry.tools().len()).filter(|position| self.is_always_open(*position)).count();
        if n_start > client.tools {
            let message =
                format!("{n_start} tools are listed at the start, and {} takes {}", client.name, client.tools);
            found.push(Diagnostic::warning("client-tools-many", message).hint("let fewer tools be open at all times"));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_sorted_by_client() {
        assert!(CLIENTS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }
}
