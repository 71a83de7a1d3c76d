//! Changing a few bytes of a JSON text and leaving all others as they came.

use std::{borrow::Cow, ops::Range};

use super::json::each_member;

/// One member of a JSON object, borrowed from its text.
#[derive(Debug)]
pub struct Member<'a> {
    /// The name, unescaped.
    pub key: Cow<'a, str>,
    /// The name as written, quotes included.
    pub raw_key: &'a str,
    /// The value as written.
    pub value: &'a str,
}

/// The members of the object `text`, in their order; `None` where it is not an object.
pub fn members(text: &str) -> Option<Vec<Member<'_>>> {
    let mut members = Vec::with_capacity(4);
    each_member(text, |key, raw_key, value| members.push(Member { key, raw_key, value }))?;
    Some(members)
}

/// The last member called `key`: where a name stands twice, readers take the last.
pub fn member<'m, 'a>(members: &'m [Member<'a>], key: &str) -> Option<&'m Member<'a>> {
    members.iter().rev().find(|member| member.key == key)
}

/// Changes to one text, to be made together.
#[derive(Debug)]
pub struct Edits<'a> {
    text: &'a str,
    list: Vec<(Range<usize>, Cow<'a, str>)>,
}

impl<'a> Edits<'a> {
    /// Starts with no change.
    pub fn new(text: &'a str) -> Self {
        Self { text, list: Vec::new() }
    }

    /// Puts `with` in place of `part`, which must be borrowed from the text.
    pub fn replace(&mut self, part: &str, with: impl Into<Cow<'a, str>>) {
        let start = offset(self.text, part);
        self.list.push((start..start + part.len(), with.into()));
    }

    /// Adds a member to `object`, which must be borrowed from the text; `value` is JSON.
    pub fn insert(&mut self, object: &str, key: &str, value: &str) {
        let start = offset(self.text, object) + 1;
        let is_empty = object.trim_start_matches('{').trim_start().starts_with('}');
        let is_second = self.list.iter().any(|(range, _)| *range == (start..start));
        let (before, after) = match (is_empty, is_second) {
            (true, true) => (",", ""),
            (true, false) => ("", ""),
            (false, _) => ("", ","),
        };
        let key = super::envelope::json_text(key);
        self.list.push((start..start, format!("{before}{key}:{value}{after}").into()));
    }

    /// Takes the members for which `is_out` says so off the object that `members` came from.
    pub fn remove(&mut self, members: &[Member<'a>], is_out: impl Fn(&str) -> bool) {
        let mut is_first_kept = true;
        for (index, member) in members.iter().enumerate() {
            let start = offset(self.text, member.raw_key);
            let end = offset(self.text, member.value) + member.value.len();
            if !is_out(&member.key) {
                is_first_kept = false;
            } else if let (true, Some(next)) = (is_first_kept, members.get(index + 1)) {
                self.list.push((start..offset(self.text, next.raw_key), "".into()));
            } else if is_first_kept {
                self.list.push((start..end, "".into()));
            } else {
                let before = &members[index - 1].value;
                self.list.push((offset(self.text, before) + before.len()..end, "".into()));
            }
        }
    }

    /// Whether nothing is to change.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the changed text.
    pub fn apply(mut self) -> String {
        // Insertions go before what is replaced at their place; stable, so they keep their order.
        self.list.sort_by_key(|(range, _)| (range.start, range.end));
        let grown: usize = self.list.iter().map(|(_, with)| with.len()).sum();
        let mut out = String::with_capacity(self.text.len() + grown);
        let mut at = 0;
        for (range, with) in &self.list {
            debug_assert!(at <= range.start, "two edits overlap");
            out.push_str(self.text.get(at..range.start).unwrap_or_default());
            out.push_str(with);
            at = at.max(range.end);
        }
        out.push_str(self.text.get(at..).unwrap_or_default());
        out
    }
}

/// Copies `line` with `with` in place of `part`, which must be borrowed from it.
pub fn replaced(line: &[u8], part: &str, with: &str) -> Vec<u8> {
    let start = part.as_ptr() as usize - line.as_ptr() as usize;
    let mut out = Vec::with_capacity(line.len() + with.len() + 1);
    out.extend_from_slice(&line[..start]);
    out.extend_from_slice(with.as_bytes());
    out.extend_from_slice(&line[start + part.len()..]);
    out
}

/// Where `part`, borrowed from `text`, starts in it.
fn offset(text: &str, part: &str) -> usize {
    let start = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    debug_assert!(start + part.len() <= text.len(), "the part is not borrowed from the text");
    start
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn without(text: &str, out: &[&str]) -> String {
        let members = members(text).unwrap();
        let mut edits = Edits::new(text);
        edits.remove(&members, |key| out.contains(&key));
        edits.apply()
    }

    #[test]
    fn members_go_without_a_trace() {
        for (text, out, left) in [
            (r#"{"a":1,"b":2,"c":3}"#, &["a"][..], r#"{"b":2,"c":3}"#),
            (r#"{ "a" : 1 , "b" : 2 }"#, &["b"], r#"{ "a" : 1 }"#),
            (r#"{"a":1,"b":2,"c":3}"#, &["b"], r#"{"a":1,"c":3}"#),
            (r#"{"a":1,"b":2,"c":3}"#, &["a", "b"], r#"{"c":3}"#),
            (r#"{"a":1,"b":2,"c":3}"#, &["b", "c"], r#"{"a":1}"#),
            (r#"{"a":1,"b":2}"#, &["a", "b"], r#"{}"#),
            (r#"{"a":1}"#, &["x"], r#"{"a":1}"#),
        ] {
            assert_eq!(without(text, out), left, "{text} without {out:?}");
        }
    }

    #[test]
    fn members_are_added_in_front() {
        let text = r#"{"params":{ },"b":{"x":1}}"#;
        let all = members(text).unwrap();
        let mut edits = Edits::new(text);
        edits.insert(all[0].value, "k", "1");
        edits.insert(all[1].value, "k", "true");
        edits.insert(all[0].value, "l", "2");
        assert_eq!(edits.apply(), r#"{"params":{"k":1,"l":2 },"b":{"k":true,"x":1}}"#);
    }

    #[test]
    fn the_last_of_two_members_counts() {
        let all = members(r#"{"a":1,"\u0061":2}"#).unwrap();
        assert_eq!(member(&all, "a").unwrap().value, "2");
    }

    proptest! {
        #[test]
        fn removing_equals_removing_in_a_tree(object in prop::collection::btree_map("[a-d]{1,2}", 0..9u8, 0..6), out in "[a-d]{1,2}") {
            let mut tree = serde_json::to_value(&object).unwrap();
            let text = tree.to_string();
            let left = without(&text, &[&out]);
            tree.as_object_mut().unwrap().remove(&out);
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&left).unwrap(), tree);
        }
    }
}
