//! Characters that a model reads and people do not see, or see in another order. Must not know what texts are for.

use std::{borrow::Cow, fmt};

/// One such character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hidden {
    /// Which.
    pub character: char,
    /// Where, in bytes.
    pub at: usize,
}

impl Hidden {
    /// Whether no script and no emoji needs it where it stands: it turns text around, or carries a text of its own.
    pub fn is_never_needed(&self) -> bool {
        matches!(self.character, '\u{e0000}'..='\u{e007f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    }

    /// What kind of character it is, with an article.
    pub fn kind(&self) -> &'static str {
        match self.character {
            '\u{e0000}'..='\u{e007f}' => "a tag character",
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => "a character that turns the direction of text",
            '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => "a row of variation selectors",
            _ => "a character without width",
        }
    }
}

impl fmt::Display for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (U+{:04X})", self.kind(), u32::from(self.character))
    }
}

/// Those of `text`, in their order, without what emoji and scripts need: a joiner between two of their characters, one
/// variation selector, the tags of a flag, a byte-order mark at the beginning.
pub fn hidden(text: &str) -> impl Iterator<Item = Hidden> {
    let mut before = None;
    // The tags behind a black flag, up to the one that ends them.
    let mut is_flag = false;
    text.char_indices().filter_map(move |(at, character)| {
        let last = before.replace(character);
        is_flag = character == '\u{1f3f4}' || (is_flag && matches!(character, '\u{e0020}'..='\u{e007e}'));
        let is_selector = |c: char| matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}');
        let is_hidden = match character {
            '\u{e007f}' => !last.is_some_and(|last| matches!(last, '\u{e0020}'..='\u{e007e}')),
            '\u{e0000}'..='\u{e007e}' => !is_flag,
            '\u{200c}' | '\u{200d}' => last.is_none_or(|last| last.is_ascii()),
            '\u{feff}' => at > 0,
            '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' | '\u{180e}' => {
                true
            }
            c if is_selector(c) => last.is_none_or(is_selector),
            _ => false,
        };
        is_hidden.then_some(Hidden { character, at })
    })
}

/// A text in which what would not be seen, or would do something to a terminal, stands as its number: also what [`hidden`]
/// lets scripts and emoji have.
pub fn visible(text: &str) -> String {
    let is_numbered = |c: char| {
        (c.is_control() && c != '\t')
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
    };
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_numbered(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}

/// A text for a terminal, with lines of its own, in which what would be a command stands as its number.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(is_command) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let is_line_end = c == '\n' || (c == '\r' && rest.peek() == Some(&'\n'));
        if is_command(c) && !is_line_end { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown.into()
}

/// JSON that means the same, in which what would be a command to a terminal, or the end of a line to some readers, stands as
/// its number. JSON itself has numbers for the rest.
pub fn harmless_json(json: &str) -> Cow<'_, str> {
    let is_odd = |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}');
    if !json.contains(is_odd) {
        return json.into();
    }
    let written = |c: char| if is_odd(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    json.chars().map(written).collect::<String>().into()
}

fn is_command(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_found_and_what_scripts_need_is_not() {
        for (text, expected) in [
            ("plain, český, 中文, עברית, हिन्दी", 0),
            ("\u{feff}at the start", 0),
            ("inside\u{feff}", 1),
            ("⚠\u{fe0f} 👩\u{200d}💻 می\u{200c}خواهم", 0),
            ("🏴\u{e0067}\u{e0062}\u{e007f}", 0),
            ("hi\u{e0068}\u{e0069}", 2),
            ("a\u{200b}b\u{200d}", 2),
            ("\u{202e}evil", 1),
            ("x\u{fe01}\u{fe02}\u{e0101}", 2),
        ] {
            assert_eq!(hidden(text).count(), expected, "{text:?}");
        }
        let found = hidden("č\u{200b}").next().unwrap();
        assert_eq!((found.at, found.to_string().as_str()), (2, "a character without width (U+200B)"));
    }

    #[test]
    fn commands_to_a_terminal_are_numbered_and_lines_stay() {
        assert_eq!(harmless("a\x1b[2J\rb\r\n\tc\u{9b}m\n"), "a\\u{1b}[2J\\u{d}b\r\n\tc\\u{9b}m\n");
        let json = serde_json::json!({"a\u{9b}": "\u{1b}\u{7f}\u{2028}č"}).to_string();
        let shown = harmless_json(&json);
        assert!(shown.is_ascii() || shown.contains('č'), "{shown}");
        assert!(!shown.contains(|c: char| c.is_control() || c == '\u{2028}'), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap()["a\u{9b}"], "\u{1b}\u{7f}\u{2028}č");
    }

    #[test]
    fn what_would_not_be_seen_is_numbered_by_its_number() {
        assert_eq!(visible("a\u{200b}b\u{1b}[31m\u{e0041}\u{202e} č"), r"a\u{200b}b\u{1b}[31m\u{e0041}\u{202e} č");
    }
}
