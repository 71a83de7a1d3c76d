//! One upstream tool: its definition as it came, and the few fields that the gate reads. Must not know how it got here.

use super::name::ToolName;

/// What calling a tool may do, by its own annotations. Hints, so never a reason to open something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Marked `readOnlyHint: true`.
    Read,
    /// Anything else.
    Write,
}

impl Effect {
    /// The word used in signatures and results.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// A tool as its upstream listed it, repaired where model APIs would refuse it.
#[derive(Debug)]
pub struct Tool {
    /// The upstream's own name; what goes on the wire.
    pub name: ToolName,
    /// The whole definition, as JSON, with the upstream's own name in it.
    pub definition: Box<str>,
    /// The input schema within it.
    pub input_schema: Box<str>,
    /// Empty where the upstream gave none.
    pub description: String,
    /// By the tool's annotations.
    pub effect: Effect,
    /// Whether a call may be repeated without harm (`readOnlyHint` or `idempotentHint`).
    pub repeatable: bool,
    /// Lowercase hex SHA-256 of `definition`.
    pub digest: String,
}

impl Tool {
    /// Tokens of the definition, estimated (see [`estimate_tokens`]).
    pub fn tokens(&self) -> usize {
        estimate_tokens(&self.definition)
    }

    /// The first sentence of the description, at most 160 characters.
    pub fn summary(&self) -> String {
        first_sentence(&self.description, 160)
    }
}

/// Tokens of `text`, estimated from above: a third of its bytes.
///
/// English and JSON have 3.5 to 4.5 bytes a token in o200k_base, Czech and Polish about 3, so budgets kept by this
/// figure hold. Exact counts are `tokens`, which takes a while to load its tables and so is not for the proxy.
pub fn estimate_tokens(text: &str) -> usize {
    text.len().div_ceil(3)
}

/// The first sentence of `text` in one line, headings passed over, cut to `most` characters.
pub fn first_sentence(text: &str, most: usize) -> String {
    let is_prose = |part: &&str| !part.trim().is_empty() && !part.trim_start().starts_with('#');
    let line = text.trim().split("\n\n").find(is_prose).unwrap_or_default();
    let mut sentence = String::new();
    for word in line.split_whitespace() {
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
        let is_end = word.ends_with(['.', '!', '?', '。']) && !word.ends_with("e.g.") && !word.ends_with("i.e.");
        if is_end && sentence.chars().count() > 15 {
            break;
        }
    }
    cut(&sentence, most)
}

/// `text` cut to `most` characters, the last one an ellipsis where something is missing.
pub fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_ends_at_its_stop() {
        assert_eq!(first_sentence("Lists the orders.  Use it\nfirst.", 160), "Lists the orders.");
        assert_eq!(first_sentence("Lists orders, e.g. open ones. More", 160), "Lists orders, e.g. open ones.");
        assert_eq!(first_sentence("no stop\nin two lines\n\nsecond paragraph", 160), "no stop in two lines");
        assert_eq!(first_sentence("# Title\n\n## More\n\nThe text itself.", 160), "The text itself.");
        assert_eq!(first_sentence("abcdefghij klm", 8), "abcdefg…");
    }
}
