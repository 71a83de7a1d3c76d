//! Forms of one JSON text: with line ends for people and their diffs, without blanks for models, and sorted for digests. What
//! stands in strings and numbers stays as it was written.

use crate::wire::{
    json::items,
    splice::{Member, members},
};

/// Blanks before a member, for each object or list that it is in.
const INDENT: &str = "  ";

/// A line for each member and item; `json` must be JSON.
pub(super) fn pretty(json: &str) -> String {
    let mut text = String::with_capacity(json.len() * 3 / 2);
    let mut depth = 0_usize;
    let mut rest = Tokens(json).peekable();
    let line = |text: &mut String, depth: usize| {
        text.push('\n');
        (0..depth).for_each(|_| text.push_str(INDENT));
    };
    while let Some(token) = rest.next() {
        match token {
            "{" | "[" => {
                text.push_str(token);
                let is_empty = rest.peek().is_some_and(|next| matches!(*next, "}" | "]"));
                if !is_empty {
                    depth += 1;
                    line(&mut text, depth);
                } else if let Some(end) = rest.next() {
                    text.push_str(end);
                }
            }
            "}" | "]" => {
                depth = depth.saturating_sub(1);
                line(&mut text, depth);
                text.push_str(token);
            }
            "," => {
                text.push(',');
                line(&mut text, depth);
            }
            ":" => text.push_str(": "),
            _ => text.push_str(token),
        }
    }
    text
}

/// Without blanks between its parts; `json` must be JSON.
pub(super) fn compact(json: &str) -> String {
    Tokens(json).collect()
}

/// Without blanks, and each object's members by name: equal for texts that say the same in another order. A name that two
/// readers would call differently stays where it is.
pub(super) fn canonical(json: &str) -> String {
    let joined = |parts: Vec<String>, ends: [&str; 2]| format!("{}{}{}", ends[0], parts.join(","), ends[1]);
    if let Some(items) = items(json) {
        return joined(items.into_iter().map(canonical).collect(), ["[", "]"]);
    }
    let Some(mut members) = members(json) else { return compact(json) };
    members.sort_by(|a, b| a.key.cmp(&b.key));
    let member = |Member { raw_key, value, .. }: Member<'_>| format!("{raw_key}:{}", canonical(value));
    joined(members.into_iter().map(member).collect(), ["{", "}"])
}

/// The parts of a JSON text: brackets, commas, colons, and whole strings, numbers and words.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start_matches([' ', '\t', '\n', '\r']);
        let first = text.bytes().next()?;
        let length = match first {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            b'"' => {
                let mut is_escaped = false;
                let is_end = |byte: u8| {
                    let is_end = byte == b'"' && !is_escaped;
                    is_escaped = byte == b'\\' && !is_escaped;
                    is_end
                };
                text.bytes().skip(1).position(is_end).map_or(text.len(), |end| end + 2)
            }
            _ => text.find([' ', '\t', '\n', '\r', ',', ':', '{', '}', '[', ']']).unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at_checked(length)?;
        self.0 = rest;
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#" {"b" : [1.50, 1e400,{ }, [ ]] ,"a":{"ü\" ,":"x : \\","z":null,"\u0061":true}} "#;

    #[test]
    fn strings_and_numbers_stay_as_they_were_written() {
        let compacted = r#"{"b":[1.50,1e400,{},[]],"a":{"ü\" ,":"x : \\","z":null,"\u0061":true}}"#;
        assert_eq!(compact(TEXT), compacted);
        assert_eq!(compact(&pretty(TEXT)), compacted);
        insta::assert_snapshot!(pretty(TEXT), @r#"
        {
          "b": [
            1.50,
            1e400,
            {},
            []
          ],
          "a": {
            "ü\" ,": "x : \\",
            "z": null,
            "\u0061": true
          }
        }
        "#);
    }

    #[test]
    fn the_order_of_members_is_no_difference_and_that_of_items_is() {
        assert_eq!(canonical(TEXT), r#"{"a":{"\u0061":true,"z":null,"ü\" ,":"x : \\"},"b":[1.50,1e400,{},[]]}"#);
        assert_eq!(canonical(r#"{"a":[1,2],"b":2}"#), canonical(r#"{ "b":2, "a":[1, 2]}"#));
        assert_ne!(canonical("[1,2]"), canonical("[2,1]"));
    }
}
