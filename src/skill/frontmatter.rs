//! The header of a SKILL.md. Lenient towards what editors and authors do, strict where a restriction could get lost: a
//! header that is not understood costs the skill.
//!
//! **Source:** the Agent Skills standard and its client guide ("adding skills support").

use serde_json::{Map, Value};

use crate::model::limits::{FRONTMATTER_BYTES, SKILL_BYTES};

/// A SKILL.md in its two parts.
#[derive(Debug, PartialEq, Eq)]
pub struct Document {
    /// The header's members, as the author wrote them.
    pub members: Map<String, Value>,
    /// Everything after the header, byte by byte, without the blank lines before it.
    pub body: String,
    /// Whether values had to be put in quotes before the header could be read.
    pub was_quoted: bool,
}

/// Why a SKILL.md is not used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// A stable code of `model::diagnostic`.
    pub code: &'static str,
    /// From 1; 0 where the whole file is meant.
    pub line: usize,
    /// A fragment without a full stop.
    pub message: String,
}

impl Refusal {
    fn new(code: &'static str, line: usize, message: impl Into<String>) -> Self {
        Self { code, line, message: message.into() }
    }
}

/// Splits a SKILL.md and reads its header.
///
/// # Errors
/// The file is too large or no text, has no closed header, or the header cannot be read.
pub fn parse(bytes: &[u8]) -> Result<Document, Refusal> {
    let text = as_text(bytes)?;
    let header = split(text)?;
    if header.yaml.len() > FRONTMATTER_BYTES {
        let message = format!("the header has {} bytes, the limit is {FRONTMATTER_BYTES}", header.yaml.len());
        return Err(Refusal::new("skill-too-large", header.first_line, message));
    }
    let (members, was_quoted) = match read_yaml(&header.yaml) {
        Ok(members) => (members, false),
        Err((line, message)) => match read_yaml(&with_quotes(&header.yaml)) {
            Ok(members) => (members, true),
            Err(_still) => {
                return Err(Refusal::new("skill-frontmatter-invalid", header.first_line + line - 1, message));
            }
        },
    };
    let body = header.body.trim_start_matches(['\n', '\r']).to_owned();
    Ok(Document { members, body, was_quoted })
}

fn as_text(bytes: &[u8]) -> Result<&str, Refusal> {
    if bytes.len() as u64 > SKILL_BYTES {
        let message = format!("the file has {} bytes, the limit is {SKILL_BYTES}", bytes.len());
        return Err(Refusal::new("skill-too-large", 0, message));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(Refusal::new("skill-encoding", 0, "the file is UTF-16, save it as UTF-8"));
    }
    if let Some(at) = memchr::memchr(0, bytes) {
        let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        return Err(Refusal::new("skill-binary", line, "the file holds a NUL byte"));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        Refusal::new("skill-encoding", line, "the file is not UTF-8")
    })
}

struct Header<'a> {
    yaml: String,
    /// Line of the file on which `yaml` starts.
    first_line: usize,
    body: &'a str,
}

fn split(text: &str) -> Result<Header<'_>, Refusal> {
    // A file without any line feed has old Mac line ends, or is one line.
    let end = if text.contains('\n') { '\n' } else { '\r' };
    let mut yaml = String::new();
    let mut first_line = 0;
    let mut rest = text;
    for number in 1.. {
        if rest.is_empty() {
            break;
        }
        let (line, after) = rest.split_once(end).unwrap_or((rest, ""));
        rest = after;
        let line = line.strip_suffix('\r').unwrap_or(line);
        let is_fence = line.trim_end() == "---";
        if first_line == 0 {
            match (is_fence, line.trim().is_empty()) {
                (true, _) => first_line = number + 1,
                (false, true) => {}
                (false, false) => break,
            }
        } else if is_fence || line.trim_end() == "..." {
            return Ok(Header { yaml, first_line, body: rest });
        } else {
            yaml.push_str(line);
            yaml.push('\n');
        }
    }
    Err(if first_line == 0 {
        Refusal::new("skill-frontmatter-missing", 1, "the file does not start with a `---` line")
    } else {
        Refusal::new("skill-frontmatter-unclosed", first_line - 1, "the header has no second `---` line")
    })
}

/// Reads the header; an error has its line within it, from 1.
fn read_yaml(yaml: &str) -> Result<Map<String, Value>, (usize, String)> {
    // Duplicate members are errors by default, and budgets bound what aliases may expand to.
    let options = serde_saphyr::options! {
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 10_000 },
    };
    let value: Value = serde_saphyr::from_str_with_options(yaml, options).map_err(|error| {
        let line = error.location().map_or(1, |location| usize::try_from(location.line()).unwrap_or(1));
        let message = error.to_string();
        (line.max(1), message.lines().next().unwrap_or_default().trim().to_owned())
    })?;
    match value {
        Value::Object(members) => Ok(members),
        Value::Null => Ok(Map::new()),
        _ => Err((1, "the header is not a list of `name: value` members".into())),
    }
}

/// Puts quotes around those one-line values that cannot be read by themselves, as a value with `: ` in it.
fn with_quotes(yaml: &str) -> String {
    let quoted = |line: &str| {
        let (key, value) = line.split_once(':')?;
        let is_member = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        let value = value.trim();
        if !is_member || value.is_empty() || value.starts_with(['|', '>']) || read_yaml(line).is_ok() {
            return None;
        }
        let mut text = Value::from(value).to_string();
        // Valid in JSON, not in YAML, and seen in what was pasted.
        for control in '\u{7f}'..='\u{9f}' {
            text = text.replace(control, &format!("\\u{:04x}", u32::from(control)));
        }
        Some(format!("{key}: {text}"))
    };
    yaml.lines().map(|line| quoted(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(text: &str) -> String {
        match parse(text.as_bytes()) {
            Ok(document) => {
                format!("{} | {:?} | {}", Value::Object(document.members), document.body, document.was_quoted)
            }
            Err(refusal) => format!("{}:{}", refusal.code, refusal.line),
        }
    }

    #[test]
    fn headers_are_found_whatever_the_editor_did() {
        let loaded = r#"{"name":"x"} | "b\n---\nc" | false"#;
        for text in [
            "---\nname: x\n---\nb\n---\nc",
            "---\r\nname: x\r\n---\r\nb\n---\nc",
            "\u{feff}---\nname: x\n---\n\nb\n---\nc",
            "---  \nname: x\n---\t\nb\n---\nc",
            "\n\n---\nname: x\n...\nb\n---\nc",
        ] {
            assert_eq!(outcome(text), loaded, "{text:?}");
        }
        assert_eq!(outcome("---\rname: x\r---\rb"), r#"{"name":"x"} | "b" | false"#);
        assert_eq!(outcome("---\nname: x\n---"), r#"{"name":"x"} | "" | false"#);
    }

    #[test]
    fn prose_that_is_not_yaml_is_read_as_its_author_meant() {
        for value in [
            "Use: this",
            "two: colons: 'x', y",
            "@mentions",
            "*star* first",
            "`tick` first",
            "[beta] first",
            "\"Quoted\" first",
            "%percent",
            "pasted \u{80} and \u{7f}",
        ] {
            let text = format!("---\ndescription: {value}\nallowed-tools: a/b\n---\n");
            let document = parse(text.as_bytes()).unwrap();
            assert_eq!(document.members["description"], value);
            assert_eq!(document.members["allowed-tools"], "a/b", "{value}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_line() {
        for (text, refusal) in [
            ("# Title", "skill-frontmatter-missing:1"),
            ("", "skill-frontmatter-missing:1"),
            ("text\n---\nname: x\n---\n", "skill-frontmatter-missing:1"),
            ("---\nname: x\n# Title\n", "skill-frontmatter-unclosed:1"),
            ("---\nname: x\nmeta:\n\ta: b\n---\n", "skill-frontmatter-invalid:4"),
            ("---\nname: x\nallowed-tools: a\nallowed-tools: b\n---\n", "skill-frontmatter-invalid:4"),
            ("---\n- a\n---\n", "skill-frontmatter-invalid:2"),
            ("---\nname: x\n<<<<<<< HEAD\na: b\n=======\n---\n", "skill-frontmatter-invalid:3"),
            ("---\nname: a\0b\n---\n", "skill-binary:2"),
        ] {
            assert_eq!(outcome(text), refusal, "{text:?}");
        }
        assert_eq!(parse(b"\xff\xfe-\0").unwrap_err().code, "skill-encoding");
        assert_eq!(
            parse(b"---\nname: \xff\n---\n").unwrap_err(),
            Refusal::new("skill-encoding", 2, "the file is not UTF-8")
        );
    }

    #[test]
    fn aliases_cannot_be_used_as_a_bomb() {
        let mut text = String::from("---\na0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for level in 1..10 {
            let items = vec![format!("*a{}", level - 1); 9].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{items}]\n"));
        }
        text.push_str("---\n");
        // What is left of it are its own lines, as texts.
        assert!(outcome(&text).len() < 2 * text.len());
    }
}
