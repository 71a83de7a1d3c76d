//! Headers that repeat parts of a body: what is written can be sent and is read again.

use gatekey::wire::headers::{PARAM_PREFIX, decode, encode, param_headers};
use serde_json::Value;

/// Takes `input` as a value, as a header and as a tool's schema.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let header = encode(text);
    assert!(header.bytes().all(|byte| (0x20..=0x7e).contains(&byte)), "{header:?} can be sent");
    assert_eq!(decode(&header).as_deref(), Some(text));
    // What stands between may put blanks around a value.
    assert_eq!(decode(&format!(" {header}\t")).as_deref(), Some(text));
    if let Some(value) = decode(text) {
        assert_eq!(decode(&encode(&value)).as_ref(), Some(&value));
    }
    let Ok(schema) = serde_json::from_str::<Value>(text) else { return };
    let found = param_headers(&schema);
    for (index, header) in found.iter().enumerate() {
        let own = header.name.strip_prefix(PARAM_PREFIX).unwrap_or_default();
        assert!(!own.is_empty() && own.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase()));
        assert!(found[..index].iter().all(|other| other.name != header.name), "{} stands twice", header.name);
        // A schema is as good a set of arguments as any.
        if let Some(value) = header.value(&schema) {
            assert_eq!(decode(&encode(&value)).as_deref(), Some(&*value));
        }
    }
}
