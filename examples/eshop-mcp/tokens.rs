//! What the tools' definitions cost a model, in tokens of o200k_base over compact JSON.

use crate::tool::Entry;

/// Writes a table: tokens per tool, and per group with the number of tools.
pub(crate) fn report(entries: &[Entry]) -> String {
    let mut text = String::new();
    let mut groups: Vec<(&str, usize, usize)> = Vec::new();
    for entry in entries {
        let n_tokens = count(entry);
        let group = entry.spec.name.split('_').next().unwrap_or_default();
        match groups.iter_mut().find(|(name, ..)| *name == group) {
            Some((_, n_tools, sum)) => {
                *n_tools += 1;
                *sum += n_tokens;
            }
            None => groups.push((group, 1, n_tokens)),
        }
        text.push_str(&format!("{n_tokens:>6}  {}\n", entry.spec.name));
    }
    for (group, n_tools, sum) in groups {
        text.push_str(&format!("{sum:>6}  {group}, {n_tools} tools\n"));
    }
    text
}

/// Counts the tokens of one definition.
pub(crate) fn count(entry: &Entry) -> usize {
    let json = serde_json::to_string(&entry.definition).unwrap_or_default();
    tiktoken_rs::o200k_base_singleton().count_ordinary(&json)
}
