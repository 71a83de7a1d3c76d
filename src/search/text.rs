//! Markdown and names as plain text.

/// What of a body is looked at; more than an encoder reads.
const PLAIN_CHARS: usize = 2_500;

/// The sentences of a Markdown text: without titles, code, rules, links' targets and marks.
pub(super) fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut is_code = false;
    for line in markdown.lines().map(str::trim) {
        if line.starts_with("```") || line.starts_with("~~~") {
            is_code = !is_code;
            continue;
        }
        if is_code || line.starts_with('#') || line.starts_with("|--") || line.starts_with("---") {
            continue;
        }
        let line = without_targets(line);
        let words = line.trim_matches(['-', ' ']).split(['*', '`', '|', '>', '_', ' ', '\t']);
        for word in words.filter(|word| !word.is_empty()) {
            text.push_str(word);
            text.push(' ');
        }
        if text.len() > PLAIN_CHARS {
            break;
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// A name as words.
pub(super) fn spaced(name: &str) -> String {
    name.replace(['-', '_'], " ")
}

/// A text with one blank between its words, and without lists' commas that nothing stands between.
pub(super) fn words(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    for word in text.split_whitespace().filter(|word| word.contains(|c| c != ',')) {
        if !words.is_empty() && !matches!(word, "." | ";" | ":") {
            words.push(' ');
        }
        words.push_str(word);
    }
    words
}

/// `[text](target)` as `text`.
fn without_targets(line: &str) -> String {
    let mut rest = line;
    let mut text = String::with_capacity(line.len());
    while let Some((before, behind)) = rest.split_once("](") {
        let Some((_, after)) = behind.split_once(')') else { break };
        text.push_str(&before.replacen('[', "", 1));
        rest = after;
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_markdown_the_sentences_are_left() {
        let markdown = "# Refunds\n\nAsk **why**, see [the rules](rules.md) and [`more`](x).\n```sh\nrm -rf /\n```\n| a | b |\n|---|---|\n- one\n---\n> two";
        assert_eq!(plain(markdown), "Ask why , see the rules and more . a b one two");
        assert_eq!(plain("[open](never"), "[open](never");
        let long = plain(&"many words\n".repeat(10_000));
        assert!(long.len() > PLAIN_CHARS && long.len() < PLAIN_CHARS + 20, "{}", long.len());
        assert_eq!(plain(""), "");
    }

    #[test]
    fn names_are_words_and_lists_have_no_holes() {
        assert_eq!(spaced("get_order-status"), "get order status");
        assert_eq!(words("Use when asked to , , or  . Now"), "Use when asked to or. Now");
    }
}
