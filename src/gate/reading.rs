//! The ways in which a server may read a URI. A rule is about what is meant, so a denial holds for each of them, and an
//! allowance must hold for more than the text. Must not know what a rule is.
//!
//! **Source:** RFC 3986, 6.2 (normalization), and what servers do beyond it.

use std::borrow::Cow;

/// Rounds of percent-decoding; who encodes more often than that means harm, and the last reading is still none of ours.
const ROUNDS: usize = 4;

/// What a URI may be read as.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Readings<'a> {
    /// As it is written.
    text: &'a str,
    /// Decoded, in lower case up to its path, without dots and empty parts in that: as the standard has it, and as those
    /// servers do to whom the authority is a part of the path.
    plain: [String; 2],
    /// The same without query and fragment, and with the first part of the path where the authority is empty.
    bare: [String; 3],
}

impl<'a> Readings<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let Some((scheme, rest)) = text.split_once(':') else {
            let same = || text.to_owned();
            return Self { text, plain: [same(), same()], bare: [same(), same(), same()] };
        };
        let decoded = decoded(rest);
        let cut = decoded.find(['?', '#']).unwrap_or(decoded.len());
        let (path, more) = decoded.split_at(cut);
        let path = path.replace('\\', "/");
        let scheme = scheme.to_ascii_lowercase();
        let [strict, loose] =
            [true, false].map(|has_authority| format!("{scheme}:{}", without_dots(&path, has_authority)));
        let plain = [format!("{strict}{more}"), format!("{loose}{more}")];
        let filled = format!("{scheme}://{}", loose.trim_start_matches(&format!("{scheme}:")).trim_start_matches('/'));
        Self { text, plain, bare: [strict, loose, filled] }
    }

    /// Those for each of which a denial holds.
    pub(super) fn any(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.text).chain(self.plain.iter().chain(&self.bare).map(String::as_str))
    }

    /// Those for all of which an allowance must hold.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.text).chain(self.plain.iter().map(String::as_str))
    }
}

fn decoded(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..ROUNDS {
        let next = decoded_once(&text);
        if next == text {
            break;
        }
        text = next;
    }
    text
}

/// What is no code of a byte stays; bytes that are no text become the sign for such.
fn decoded_once(text: &str) -> String {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.extend(u8::try_from(high * 16 + low));
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Resolves `.`, `..` and empty parts. With an authority, that is the first part, which no `..` leaves.
fn without_dots(path: &str, has_authority: bool) -> String {
    let (start, rest, is_first_apart) = match path.strip_prefix("//") {
        Some(rest) => ("//", rest, true),
        None => (if path.starts_with('/') { "/" } else { "" }, path, false),
    };
    let floor = usize::from(is_first_apart && has_authority);
    let mut parts: Vec<Cow<'_, str>> = Vec::new();
    for (index, part) in rest.split('/').enumerate() {
        match part {
            _ if index == 0 && is_first_apart && (has_authority || !part.starts_with('.')) => {
                parts.push(part.to_ascii_lowercase().into());
            }
            "" | "." => {}
            ".." if parts.len() > floor => drop(parts.pop()),
            ".." => {}
            part => parts.push(part.into()),
        }
    }
    let end = if rest.ends_with('/') && parts.len() > floor { "/" } else { "" };
    format!("{start}{}{end}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_may_take_for_the_same_is_read_as_the_same() {
        for text in [
            "notes://hr/pay",
            "NOTES://HR/pay",
            "notes://hr/%70ay",
            "notes://hr/%2570ay",
            "notes://hr%2Fpay",
            "notes://hr//pay",
            "notes://hr/./x/../pay",
            "notes://hr/x/%2e%2e/pay",
            "notes://hr\\pay",
            "notes://hr%5cpay",
            "notes://hr/../../pay",
            "notes://hr/pay?x=1",
            "notes://hr/pay#top",
            "notes://hr/pay%3Fx",
        ] {
            assert_eq!(Readings::of(text).bare[0], "notes://hr/pay", "{text}");
        }
        for (text, plain) in [
            ("file:///etc/../srv/./x", "file:///srv/x"),
            ("notes://a/b/?q=1", "notes://a/b/?q=1"),
            ("note:1", "note:1"),
            ("urn:a/../b", "urn:b"),
            ("greet", "greet"),
            ("x://%zz%4", "x://%zz%4"),
            ("x://a/%ff", "x://a/\u{fffd}"),
        ] {
            assert_eq!(Readings::of(text).plain[0], plain, "{text}");
        }
        for text in
            ["notes://public/../hr/pay", "notes://a/b/../../../hr/pay?x", "notes://../hr/pay", "notes:///hr/pay"]
        {
            assert!(Readings::of(text).any().any(|reading| reading == "notes://hr/pay"), "{text}");
        }
        // What is written plainly is one thing, so that an allowance for it is enough.
        for text in ["file:///data/x", "notes://hr/pay", "https://h/a?b=/../c", "note:1", "greet"] {
            assert!(Readings::of(text).all().all(|reading| reading == text), "{text}");
        }
    }
}
