//! SKILL.md files: read or refused with a line, no byte of the body changed, and alike whatever editor saved them.

use gatekey::{
    model::diagnostic::CODES,
    skill::{Document, parse},
};

const MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads `input`, and again as other editors would have saved it.
pub fn check(input: &[u8]) {
    let read = parse(input);
    match &read {
        Ok(document) => {
            assert!(input.ends_with(document.body.as_bytes()), "the body is the end of the file");
            assert!(!document.body.starts_with(['\n', '\r']));
        }
        Err(refusal) => {
            assert!(CODES.contains(&refusal.code), "{refusal}");
            let n_lines = input.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() + 1;
            assert!(refusal.line <= n_lines, "{refusal} in line {}", refusal.line);
            assert!(!refusal.message.trim().is_empty() && !refusal.message.contains('\n'), "{refusal:?}");
        }
    }
    let has_mark = [MARK, b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| input.starts_with(mark));
    if !has_mark {
        assert_eq!(parse(&[MARK, input].concat()), read, "a byte-order mark means nothing");
    }
    if !input.contains(&b'\r') && input.contains(&b'\n') {
        let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
        assert_eq!(parse(&lines.join(&b"\r\n"[..])).map(with_line_feeds), read, "line ends mean nothing");
    }
}

fn with_line_feeds(document: Document) -> Document {
    Document { body: document.body.replace("\r\n", "\n"), ..document }
}
