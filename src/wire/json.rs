//! Passing over JSON: where its values begin and end. Everything is checked against the grammar of RFC 8259, to any depth,
//! and nothing is decoded. Each message is read like this at least twice, which makes this half of a small call's work:
//! serde_json's raw values need three times as many instructions.

use std::borrow::Cow;

/// Calls `take` with each member of the object `text`, in their order: its name unescaped, and name and value as written.
/// `None` where `text` is no object, or has a member that two readers would call differently: half of a surrogate pair is
/// in its name.
pub fn each_member<'a>(text: &'a str, mut take: impl FnMut(Cow<'a, str>, &'a str, &'a str)) -> Option<()> {
    Reader::new(text).whole([b'{', b'}'], |reader| {
        let raw_key = reader.part(Reader::string)?;
        reader.colon()?;
        take(as_text(raw_key)?, raw_key, reader.part(Reader::value)?);
        Some(())
    })
}

/// The items of the list `text`, as written; `None` where it is no list.
pub fn items(text: &str) -> Option<Vec<&str>> {
    let mut items = Vec::new();
    Reader::new(text).whole([b'[', b']'], |reader| {
        items.push(reader.part(Reader::value)?);
        Some(())
    })?;
    Some(items)
}

/// Reads a JSON string without copying where it holds no escapes; `None` where `raw`, which must be JSON, is no string, or
/// holds half of a surrogate pair.
pub fn as_text(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.as_bytes().contains(&b'\\') {
        return Some(inner.into());
    }
    serde_json::from_str(raw).ok().map(Cow::Owned)
}

/// The place of the first of eight bytes that cannot stand in a string by itself: a quote, a backslash, or a control
/// character. In a word a byte's highest bit is set by what is found, and by nothing before the first.
fn special(bytes: [u8; 8]) -> Option<usize> {
    const EACH: u64 = u64::MAX / 255;
    const HIGHEST: u64 = EACH << 7;
    let word = u64::from_le_bytes(bytes);
    let is_below = |word: u64, least: u8| word.wrapping_sub(EACH * u64::from(least)) & !word & HIGHEST;
    let is_byte = |byte: u8| is_below(word ^ (EACH * u64::from(byte)), 1);
    let found = is_below(word, b' ') | is_byte(b'"') | is_byte(b'\\');
    (found != 0).then_some(found.trailing_zeros() as usize / 8)
}

/// A place in a text. What it steps over begins there; blanks before it are for the caller.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// The brackets that will close what is open.
    open: Vec<u8>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0, open: Vec::new() }
    }

    /// Reads the whole text as one pair of brackets, with `part` for what stands between commas.
    fn whole(&mut self, brackets: [u8; 2], mut part: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.blank();
        if self.peek()? != brackets[0] {
            return None;
        }
        if !self.is_empty(brackets[1]) {
            loop {
                part(self)?;
                self.blank();
                match self.next()? {
                    b',' => self.blank(),
                    byte if byte == brackets[1] => break,
                    _ => return None,
                }
            }
        }
        self.blank();
        (self.at == self.text.len()).then_some(())
    }

    /// What `step` steps over.
    fn part(&mut self, step: impl FnOnce(&mut Self) -> Option<()>) -> Option<&'a str> {
        let start = self.at;
        step(self)?;
        self.text.get(start..self.at)
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn blank(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn string(&mut self) -> Option<()> {
        if self.next()? != b'"' {
            return None;
        }
        loop {
            while let Some(bytes) = self.rest().first_chunk() {
                match special(*bytes) {
                    None => self.at += bytes.len(),
                    Some(place) => {
                        self.at += place;
                        break;
                    }
                }
            }
            match self.next()? {
                b'"' => return Some(()),
                b'\\' => self.escape()?,
                ..b' ' => return None,
                // Among the last seven bytes.
                _ => {}
            }
        }
    }

    /// What stands behind a backslash.
    fn escape(&mut self) -> Option<()> {
        match self.next()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let is_number = self.rest().first_chunk::<4>()?.iter().all(u8::is_ascii_hexdigit);
                is_number.then(|| self.at += 4)
            }
            _ => None,
        }
    }

    /// The colon behind a name, and blanks around it.
    fn colon(&mut self) -> Option<()> {
        self.blank();
        if self.next()? != b':' {
            return None;
        }
        self.blank();
        Some(())
    }

    /// Any value, of any depth.
    fn value(&mut self) -> Option<()> {
        loop {
            match self.peek()? {
                b'"' => self.string()?,
                b'{' if !self.is_empty(b'}') => {
                    self.open.push(b'}');
                    self.string()?;
                    self.colon()?;
                    continue;
                }
                b'[' if !self.is_empty(b']') => {
                    self.open.push(b']');
                    continue;
                }
                b'{' | b'[' => {}
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                _ => self.number()?,
            }
            if !self.close()? {
                return Some(());
            }
        }
    }

    /// Steps over an opening bracket and, where nothing is between them, over the closing one.
    fn is_empty(&mut self, closing: u8) -> bool {
        self.at += 1;
        self.blank();
        let is_empty = self.peek() == Some(closing);
        self.at += usize::from(is_empty);
        is_empty
    }

    /// Steps over what stands between a value and the next; says whether there is a next.
    fn close(&mut self) -> Option<bool> {
        while let Some(closing) = self.open.last().copied() {
            self.blank();
            match self.next()? {
                b',' => {
                    self.blank();
                    if closing == b'}' {
                        self.string()?;
                        self.colon()?;
                    }
                    return Some(true);
                }
                byte if byte == closing => drop(self.open.pop()),
                _ => return None,
            }
        }
        Some(false)
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.rest().starts_with(word.as_bytes()).then(|| self.at += word.len())
    }

    fn number(&mut self) -> Option<()> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek()? == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    /// One digit at least.
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    /// What serde_json makes of the same text: the members as they are written, where each has a name.
    fn expected(text: &str) -> Option<Vec<(String, String)>> {
        struct Members;
        impl<'de> serde::de::Visitor<'de> for Members {
            type Value = Vec<(String, String)>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                    serde_json::from_str::<String>(key.get()).map_err(serde::de::Error::custom)?;
                    all.push((key.get().into(), value.get().into()));
                }
                Ok(all)
            }
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        let members = serde::Deserializer::deserialize_map(&mut reader, Members).ok()?;
        reader.end().ok()?;
        Some(members)
    }

    fn found(text: &str) -> Option<Vec<(String, String)>> {
        let mut all = Vec::new();
        each_member(text, |_, key, value| all.push((key.to_owned(), value.to_owned())))?;
        Some(all)
    }

    #[test]
    fn members_are_those_that_a_full_reader_finds() {
        let deep = format!(r#"{{"a":{}1{}}}"#, r#"[{"b":"#.repeat(5_000), "}]".repeat(5_000));
        let unclosed = format!(r#"{{"a":{}"#, "[".repeat(100_000));
        for text in [
            "{}",
            " { } ",
            r#"{"a":1}"#,
            "{\t\"a\" :\r\n[ ] , \"b\": { } }\n",
            r#"{"a":[1,"b",{"c":[[]]},null,true,false],"a":-0.5e+10}"#,
            r#"{"\u0061":"\ud800","b\"\\\/\b\f\n\r\t":"é\u00e9"}"#,
            r#"{"a":1e400,"b":123456789012345678901234567890,"c":-0,"d":0.0,"e":1E-5}"#,
            &deep,
        ] {
            assert!(found(text).is_some(), "{text}");
            assert_eq!(found(text), expected(text), "{text}");
        }
        for text in [
            "",
            "{",
            "[]",
            "1",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{,"a":1}"#,
            r#"{"a":1 "b":2}"#,
            r#"{"a":1}}"#,
            r#"{"a":1}{}"#,
            r#"{a:1}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":[,1]}"#,
            r#"{"a":[1}"#,
            r#"{"a":[1}]"#,
            r#"{"a":{"b":1]}"#,
            r#"{"a":{"b"}}"#,
            r#"{"a":{"b":1,}}"#,
            r#"{"a":tru}"#,
            r#"{"a":nul1}"#,
            r#"{"a":truefalse}"#,
            r#"{"a":01}"#,
            r#"{"a":-}"#,
            r#"{"a":1.}"#,
            r#"{"a":.5}"#,
            r#"{"a":1e}"#,
            r#"{"a":1e+}"#,
            r#"{"a":+1}"#,
            r#"{"a":0x1}"#,
            r#"{"a":"b}"#,
            r#"{"a":"\x"}"#,
            r#"{"a":"\u12g4"}"#,
            r#"{"a":"\u12"}"#,
            r#"{"a":"\"#,
            "{\"a\":\"\u{1f}\"}",
            "{\"a\":\"\n\"}",
            "{\"a\u{0}\":1}",
            "{\u{a0}\"a\":1}",
            "\u{feff}{}",
            r#"{"\ud800":1}"#,
            &unclosed,
        ] {
            assert_eq!(found(text), None, "{text}");
            assert_eq!(expected(text), None, "{text}");
        }
    }

    #[test]
    fn items_are_those_between_the_brackets() {
        assert_eq!(items(r#" [1 , "a,]",{"b":[2]},[] ] "#), Some(vec!["1", r#""a,]""#, r#"{"b":[2]}"#, "[]"]));
        assert_eq!(items("[]"), Some(vec![]));
        for text in ["", "[", "{}", "[1,]", "[,1]", "[1 2]", "[1]]", "1"] {
            assert_eq!(items(text), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn any_text_of_json_bits_is_judged_alike(bits in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u00e9", "\\ud800", "\"a\"", "\"a\":", "1", "-", "0", ".5", "e1", "E+", "true",
            "null", " ", "\n", "\u{1}", "é", "{\"k\":", "\"x\":[1,2]",
        ]), 0..14)) {
            let text = format!("{{{}}}", bits.concat());
            prop_assert_eq!(found(&text), expected(&text));
            let text = bits.concat();
            prop_assert_eq!(found(&text), expected(&text));
        }
    }
}
