//! Server-sent events: read as the standard says however the stream is torn, and written so that they are read again.

use gatekey::wire::sse::{Decoder, Event, event, priming_event};

use super::torn;

/// Reads `input` as a stream under a tight, a usual and a wide limit, and sends it as a message.
pub fn check(input: &[u8]) {
    for limit_bytes in [8, 64, 1 << 20] {
        let expected = by_the_standard(input, limit_bytes);
        for parts in torn::ways(input) {
            let mut decoder = Decoder::new(limit_bytes);
            let events: Vec<Event> = parts.iter().flat_map(|part| decoder.feed(part)).collect();
            assert_eq!((events, decoder.too_long), expected);
        }
    }
    let number = input.len();
    let id = format!("{number}-1");
    let mut stream = priming_event(&id, number as u64).to_vec();
    stream.extend_from_slice(&event(Some(&id), input));
    stream.extend_from_slice(&event(None, input));
    let data = lines(input.trim_ascii_end(), true).join(&b'\n');
    let expected = [
        Event { data: Vec::new(), id: Some(id.clone()), retry_ms: Some(number as u64) },
        Event { data: data.clone(), id: Some(id), retry_ms: None },
        Event { data, id: None, retry_ms: None },
    ];
    assert_eq!(Decoder::new(usize::MAX).feed(&stream), expected, "what is written is read again");
}

/// The standard's algorithm over a whole stream; beside it, sizes of the events over the limit.
fn by_the_standard(stream: &[u8], limit_bytes: usize) -> (Vec<Event>, Vec<usize>) {
    let (mut events, mut too_long) = (Vec::new(), Vec::new());
    let (mut event, mut n_data_lines, mut size_bytes) = (Event::default(), 0, 0);
    for (index, line) in lines(stream, false).into_iter().enumerate() {
        size_bytes += line.len();
        let line = if index == 0 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
        if line.is_empty() {
            let event = std::mem::take(&mut event);
            if size_bytes > limit_bytes {
                too_long.push(size_bytes);
            } else if n_data_lines > 0 || event.id.is_some() || event.retry_ms.is_some() {
                events.push(event);
            }
            (n_data_lines, size_bytes) = (0, 0);
            continue;
        }
        let mut halves = line.splitn(2, |byte| *byte == b':');
        let (field, value) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                event.data.extend_from_slice(if n_data_lines > 0 { b"\n" } else { b"" });
                event.data.extend_from_slice(value);
                n_data_lines += 1;
            }
            b"id" if !value.contains(&0) => event.id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let given = String::from_utf8_lossy(value).parse().ok();
                event.retry_ms = given.or(event.retry_ms);
            }
            _ => {}
        }
    }
    (events, too_long)
}

/// Lines that end with a line feed, a carriage return or both; the last one without an end where it `is_whole`.
fn lines(text: &[u8], is_whole: bool) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(length) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        lines.push(&rest[..length]);
        let end = if rest[length..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = &rest[length + end..];
    }
    lines.extend(is_whole.then_some(rest));
    lines
}
