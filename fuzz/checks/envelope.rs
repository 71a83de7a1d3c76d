//! Messages and the few bytes that are changed in them: the change is made, and all else stays as it was written.

use gatekey::wire::{
    envelope::{Envelope, Kind, as_text, error_line, id_key, json_text, notification_line, request_line, result_line},
    splice::{Edits, Member, members, replaced},
};
use serde_json::{Value, value::RawValue};

/// Reads `input` as a message, an object and an id.
pub fn check(input: &[u8]) {
    message(input);
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(raw) = serde_json::from_str::<&RawValue>(text) else {
        assert!(members(text).is_none(), "what is no JSON has no members");
        return;
    };
    id(raw.get());
    object(raw.get());
}

/// The members of a message as they are written, its method unescaped.
fn outside(line: &[u8]) -> Option<[Option<String>; 5]> {
    let found = Envelope::parse(line).ok()?;
    let [id, params, result, error] =
        [found.id, found.params, found.result, found.error].map(|raw| raw.map(str::to_owned));
    Some([id, found.method.map(String::from), params, result, error])
}

fn message(line: &[u8]) {
    let Ok(envelope) = Envelope::parse(line) else { return };
    assert_eq!(line.trim_ascii_start().first(), Some(&b'{'), "only an object is a message");
    let seen = outside(line).unwrap();
    if let Some(id) = envelope.id {
        let mut expected = seen.clone();
        expected[0] = Some("-7".into());
        assert_eq!(outside(&replaced(line, id, "-7")), Some(expected), "only the id is another");
    }
    let [id, method, params, result, error] = seen;
    let body = params.clone().unwrap_or_else(|| "{}".into());
    let (ours, expected) = match envelope.kind() {
        Kind::Request { id, method } => {
            (request_line(id, method, &body), [Some(id.into()), Some(method.into()), Some(body), None, None])
        }
        Kind::Notification { method } => {
            (notification_line(method, params.as_deref()), [None, Some(method.into()), params, None, None])
        }
        Kind::Response { id } => match &result {
            Some(body) => (result_line(id, body), [Some(id.into()), None, None, result.clone(), None]),
            None => {
                let data = error.unwrap_or_default();
                let expected = format!(r#"{{"code":-1,"message":"\"","data":{data}}}"#);
                (error_line(id, -1, "\"", Some(&data)), [Some(id.into()), None, None, None, Some(expected)])
            }
        },
        Kind::Noise => {
            assert!(method.is_none() && (id.is_none() || (result.is_none() && error.is_none())));
            return;
        }
    };
    assert_eq!(outside(&ours), Some(expected), "a message of ours is read as it was meant");
}

/// Texts that mean the same have one key, which is one of them.
fn id(raw: &str) {
    let key = id_key(raw);
    assert!(serde_json::from_str::<&RawValue>(&key).is_ok(), "a key is JSON");
    assert_eq!(id_key(&key), key);
    let Some(text) = as_text(raw) else { return };
    assert_eq!(as_text(&key).as_ref(), Some(&text));
    let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    for spelling in [json_text(&text), format!("\"{escaped}\"")] {
        assert_eq!(id_key(&spelling), key);
    }
}

/// Takes every choice of the first four names out and changes what is left, all at once.
fn object(text: &str) {
    let Some(all) = members(text) else {
        let has_readable_keys = serde_json::from_str::<Value>(text).is_ok();
        assert!(!text.starts_with('{') || !has_readable_keys, "every readable object has members");
        return;
    };
    for part in all.iter().flat_map(|member| [member.raw_key, member.value]) {
        assert_eq!(serde_json::from_str::<&RawValue>(part).ok().map(RawValue::get), Some(part), "each part is a value");
    }
    for choice in 0..16 {
        let number = |key: &str| all.iter().position(|member| member.key == key).unwrap_or_default();
        change(text, &all, |key| choice >> (number(key) % 4) & 1 == 1);
    }
    for member in &all {
        if let Some(inner) = members(member.value) {
            change(member.value, &inner, |_| false);
        }
    }
}

fn change<'a>(text: &'a str, all: &[Member<'a>], is_out: impl Fn(&str) -> bool) {
    let mut edits = Edits::new(text);
    let mut expected: Vec<(String, String)> = Vec::new();
    let mut tree = tree(text, all);
    edits.remove(all, &is_out);
    let kept: Vec<&Member<'_>> = all.iter().filter(|member| !is_out(&member.key)).collect();
    if let Some(tree) = &mut tree {
        tree.retain(|key, _| !is_out(key));
    }
    // Where all members go, nothing can be added in the same step.
    if all.is_empty() || !kept.is_empty() {
        for (key, value) in [("new", "1"), ("\"\u{e9}", "[]")] {
            edits.insert(text, key, value);
            expected.push((json_text(key), value.into()));
            // In front, so that a member that was there before counts.
            tree.as_mut().map(|tree| tree.entry(key).or_insert_with(|| serde_json::from_str(value).unwrap()));
        }
    }
    for member in kept {
        let value = member.value;
        let mut changed = value.to_owned();
        if value.starts_with('{') && members(value).is_some() {
            edits.insert(value, "in", "null");
            let mut inner = Edits::new(value);
            inner.insert(value, "in", "null");
            changed = inner.apply();
        } else if value.starts_with('"') {
            edits.replace(value, "7");
            changed = "7".into();
        }
        expected.push((member.raw_key.into(), changed));
        match tree.as_mut().and_then(|tree| tree.get_mut(&*member.key)) {
            Some(Value::Object(object)) => _ = object.entry("in").or_insert(Value::Null),
            Some(text @ Value::String(_)) => *text = 7.into(),
            _ => {}
        }
    }
    let changed = edits.apply();
    let read = members(&changed).unwrap_or_else(|| panic!("the changed object is one: {changed}"));
    let read: Vec<_> = read.iter().map(|member| (member.raw_key.to_owned(), member.value.to_owned())).collect();
    assert_eq!(read, expected, "{changed}");
    if let Some(tree) = tree {
        assert_eq!(serde_json::from_str::<Value>(&changed).unwrap(), Value::Object(tree), "{changed}");
    }
}

/// The object as a tree, where it can be one: numbers have their limits there, and texts and depth.
fn tree(text: &str, all: &[Member<'_>]) -> Option<serde_json::Map<String, Value>> {
    // Under such names serde_json hands its own types through, and reads them back in place of the object.
    let is_private = |all: &[Member<'_>]| all.iter().any(|member| member.key.starts_with("$serde_json::private"));
    let inner = |member: &Member<'_>| members(member.value).is_some_and(|inner| is_private(&inner));
    if is_private(all) || all.iter().any(inner) {
        return None;
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(tree)) => Some(tree),
        _ => None,
    }
}
