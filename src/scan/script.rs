//! Words that look Latin and are not quite: letters of other scripts among Latin ones.

use unicode_security::skeleton;

/// The first word of `text` with Latin letters and others that look like them, and where it is, in bytes.
pub(super) fn mixed_word(text: &str) -> Option<(usize, &str)> {
    // Most texts have no letter that could be meant.
    if !text.chars().any(is_double) {
        return None;
    }
    let mut at = 0;
    for word in text.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_') {
        let start = at;
        at += word.len();
        let word = word.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_');
        if word.chars().any(|c| c.is_ascii_alphabetic()) && word.chars().any(is_double) {
            return Some((start, word));
        }
    }
    None
}

/// Cyrillic and Greek letters that look like Latin ones. Units such as `μs` and words that have both for a reason are left
/// alone.
fn is_double(c: char) -> bool {
    matches!(c, '\u{391}'..='\u{3c9}' | '\u{400}'..='\u{52f}') && {
        let mut looks = skeleton(c.encode_utf8(&mut [0; 4])).collect::<Vec<_>>().into_iter();
        looks.next().is_some_and(|look| look.is_ascii_alphabetic()) && looks.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_two_scripts_are_found_and_words_of_one_are_not() {
        for (text, expected) in [
            ("read the fіle", Some("fіle")),
            ("pаypal_send now", Some("pаypal_send")),
            ("Привет, мир", None),
            ("wait 5 μs, λ-calculus, ΔT", None),
            ("plain", None),
        ] {
            assert_eq!(mixed_word(text).map(|(_, word)| word), expected, "{text}");
        }
        assert_eq!(mixed_word("a čaj fіle").map(|(at, _)| at), Some(7));
    }
}
