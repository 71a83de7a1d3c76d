//! What clients and readers will stumble over in a snapshot: names that a client has no room for, and characters that nobody
//! sees.

use super::snapshot::Snapshot;
use crate::{
    model::{
        diagnostic::{Diagnostic, Place},
        hidden::hidden,
    },
    skill::SkillSet,
};

/// Characters that are named in one finding.
const HIDDEN_NAMED: usize = 5;

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

    /// Tools whose definitions have characters that a model reads and people do not see.
    pub fn hidden_in_tools(&self) -> Vec<Diagnostic> {
        let finding = |tool: &super::registry::Registered| {
            // Escaped or not.
            let decoded =
                serde_json::from_str::<serde_json::Value>(&tool.tool.definition).ok().map(|value| texts(&value));
            let text = decoded.as_deref().unwrap_or(&tool.tool.definition);
            let found = all_hidden(text)?;
            let message =
                format!("the definition of `{}` of `{}` has {found}, which nobody sees", tool.exposed, tool.upstream);
            let hint = "ask whoever wrote it; a terminal does not show it";
            Some(Diagnostic::warning("hidden-character", message).hint(hint))
        };
        self.registry.tools().iter().filter_map(finding).collect()
    }
}

/// What is hidden in a text: each kind of character once, at most [`HIDDEN_NAMED`] of them.
fn all_hidden(text: &str) -> Option<String> {
    let mut found: Vec<String> = hidden(text).map(|hidden| hidden.to_string()).collect();
    found.sort();
    found.dedup();
    found.truncate(HIDDEN_NAMED);
    (!found.is_empty()).then(|| found.join(", "))
}

/// Every text in a value, one a line.
fn texts(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(items) => items.iter().map(texts).collect::<Vec<_>>().join("\n"),
        serde_json::Value::Object(members) => {
            members.iter().map(|(name, value)| format!("{name}\n{}", texts(value))).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Skills whose files have such characters: the first of each.
pub fn hidden_in_skills(set: &SkillSet) -> Vec<Diagnostic> {
    let finding = |(file, skill): (&std::path::Path, &crate::skill::Skill)| {
        let text = std::fs::read_to_string(file).ok()?;
        let first = hidden(&text).next()?;
        let found = all_hidden(&text)?;
        let before = text.get(..first.at)?;
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let message = format!("`{}` has {found}, which nobody sees", skill.name);
        let place = Place { file: file.to_owned(), line, column };
        Some(
            Diagnostic::warning("hidden-character", message).at(place).hint("remove it unless you know what it is for"),
        )
    };
    set.reached().filter_map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_names_and_values_at_any_depth() {
        let value = serde_json::json!({"a": ["b", {"c": "d"}], "e": 1});
        assert_eq!(texts(&value).split_whitespace().collect::<String>(), "abcde");
    }

    #[test]
    fn limits_are_sorted_by_client() {
        assert!(CLIENTS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }
}
