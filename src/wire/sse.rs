//! Server-sent events: reading what servers stream, and writing what clients read. **Source:** the HTML standard,
//! section "Server-sent events".

use bytes::Bytes;
use memchr::memchr2;

/// A byte-order mark.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// One event of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// What it says, without the last line end; a message of JSON-RPC, or nothing.
    pub data: Vec<u8>,
    /// How the reader can ask for what comes after it.
    pub id: Option<String>,
    /// How long to wait before asking, in milliseconds.
    pub retry_ms: Option<u64>,
}

/// Puts events together out of parts of a stream. An event over the limit is given up and counted.
#[derive(Debug)]
pub struct Decoder {
    limit_bytes: usize,
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    /// The last byte was a carriage return, so that a line feed belongs to it.
    after_return: bool,
    /// No line was read yet, so that a byte-order mark may come.
    is_first_line: bool,
    /// Bytes of the line at hand, those given up included.
    line_bytes: usize,
    /// Bytes of the event at hand, those given up included.
    size_bytes: usize,
    /// Sizes of the events that were given up, in bytes.
    pub too_long: Vec<usize>,
}

impl Decoder {
    /// Reads events of up to `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            line: Vec::new(),
            event: Event::default(),
            has_data: false,
            after_return: false,
            is_first_line: true,
            line_bytes: 0,
            size_bytes: 0,
            too_long: Vec::new(),
        }
    }

    /// Takes a part of the stream; returns the events that end in it.
    pub fn feed(&mut self, mut part: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some((&first, rest)) = part.split_first() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                part = rest;
                continue;
            }
            let Some(length) = memchr2(b'\n', b'\r', part) else {
                self.extend(part);
                break;
            };
            self.extend(&part[..length]);
            self.after_return = part[length] == b'\r';
            part = &part[length + 1..];
            events.extend(self.end_line());
        }
        events
    }

    fn extend(&mut self, part: &[u8]) {
        self.line_bytes += part.len();
        self.size_bytes += part.len();
        if self.size_bytes <= self.limit_bytes {
            self.line.extend_from_slice(part);
        }
    }

    fn end_line(&mut self) -> Option<Event> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_first_line) && line.starts_with(MARK) {
            line.drain(..MARK.len());
            self.line_bytes -= MARK.len();
        }
        if std::mem::take(&mut self.line_bytes) == 0 {
            return self.end_event();
        }
        if self.size_bytes > self.limit_bytes {
            return None;
        }
        let colon = memchr::memchr(b':', &line);
        let (field, value_start) = match colon {
            Some(0) => return None,
            Some(colon) => (&line[..colon], colon + 1 + usize::from(line.get(colon + 1) == Some(&b' '))),
            None => (&line[..], line.len()),
        };
        match field {
            b"data" if !self.has_data => {
                self.has_data = true;
                // The usual event has one line of data, which need not be copied.
                line.drain(..value_start);
                self.event.data = line;
            }
            b"data" => {
                self.event.data.push(b'\n');
                self.event.data.extend_from_slice(&line[value_start..]);
            }
            b"id" if !line[value_start..].contains(&0) => {
                self.event.id = Some(String::from_utf8_lossy(&line[value_start..]).into_owned());
            }
            b"retry" if line[value_start..].iter().all(u8::is_ascii_digit) => {
                let ms = std::str::from_utf8(&line[value_start..]).ok().and_then(|ms| ms.parse().ok());
                self.event.retry_ms = ms.or(self.event.retry_ms);
            }
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<Event> {
        let size_bytes = std::mem::take(&mut self.size_bytes);
        let event = std::mem::take(&mut self.event);
        let is_one = std::mem::take(&mut self.has_data) || event.id.is_some() || event.retry_ms.is_some();
        if size_bytes > self.limit_bytes {
            self.too_long.push(size_bytes);
            return None;
        }
        is_one.then_some(event)
    }
}

/// One message as an event; its line ends come back as line feeds.
pub fn event(id: Option<&str>, message: &[u8]) -> Bytes {
    let message = message.trim_ascii_end();
    let mut out = Vec::with_capacity(message.len() + 64);
    if let Some(id) = id {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
    // JSON may hold line ends as blanks, carriage returns too, and readers take each for the end of a line.
    let mut rest = message;
    loop {
        let length = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(&rest[..length]);
        out.push(b'\n');
        let Some(after) = rest.get(length + 1..) else { break };
        rest = if rest[length..].starts_with(b"\r\n") { &after[1..] } else { after };
    }
    out.push(b'\n');
    out.into()
}

/// An event without a message, by which a client learns where a stream can be taken up again.
pub fn priming_event(id: &str, retry_ms: u64) -> Bytes {
    format!("id: {id}\nretry: {retry_ms}\ndata: \n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every event of `stream`, read a byte at a time and at once.
    fn events(stream: &[u8], limit_bytes: usize) -> (Vec<(String, Option<String>)>, Vec<usize>) {
        let mut whole = Decoder::new(limit_bytes);
        let at_once = whole.feed(stream);
        let mut torn = Decoder::new(limit_bytes);
        let by_byte: Vec<Event> = stream.iter().flat_map(|byte| torn.feed(&[*byte])).collect();
        assert_eq!(at_once, by_byte);
        assert_eq!(whole.too_long, torn.too_long);
        let text = |event: Event| (String::from_utf8(event.data).unwrap(), event.id);
        (by_byte.into_iter().map(text).collect(), torn.too_long)
    }

    fn data(stream: &str) -> Vec<String> {
        events(stream.as_bytes(), 1_000).0.into_iter().map(|(data, _)| data).collect()
    }

    #[test]
    fn events_end_at_blank_lines_however_lines_end() {
        for stream in ["data: a\n\ndata:b\n\n", "data: a\r\n\r\ndata:b\r\n\r\n", "data: a\r\rdata:b\r\r"] {
            assert_eq!(data(stream), ["a", "b"], "{stream:?}");
        }
        assert_eq!(data("\u{feff}: comment\nevent: message\ndata: a\ndata: b\nother: c\n\ndata: unfinished"), ["a\nb"]);
        assert_eq!(data("data\n\n: only a comment\n\ndata:  two blanks\n\n"), ["", " two blanks"]);
    }

    #[test]
    fn ids_and_pauses_are_read() {
        let mut decoder = Decoder::new(1_000);
        let events = decoder.feed(b"id: 7-1\nretry: 300\ndata:\n\nid: a\0b\nretry: soon\ndata: x\n\n");
        assert_eq!((events[0].id.as_deref(), events[0].retry_ms), (Some("7-1"), Some(300)));
        assert_eq!((events[1].id.as_deref(), events[1].retry_ms), (None, None));
        // What is no number of milliseconds is as good as not there.
        let events =
            decoder.feed(b"retry: +1\ndata:\n\nretry: 5\nretry: soon\nretry:\nretry: 99999999999999999999\n\n");
        assert_eq!(events.iter().map(|event| event.retry_ms).collect::<Vec<_>>(), [None, Some(5)]);
    }

    #[test]
    fn a_mark_counts_at_the_very_start_only() {
        assert_eq!(data("\u{feff}data: a\n\n\u{feff}data: b\n\n"), ["a"]);
        assert_eq!(data("\n\u{feff}data: a\n\n"), [""; 0]);
        let long = format!("{}\n\n\u{feff}data: a\n\n", ":".repeat(50));
        assert_eq!(events(long.as_bytes(), 30), (vec![], vec![50]));
        // A mark alone is a blank line.
        assert_eq!(events("\u{feff}\ndata: ab\n\n".as_bytes(), 8).0.len(), 1);
    }

    #[test]
    fn an_event_over_the_limit_is_given_up_and_the_next_one_is_read() {
        let stream = format!("data: {}\n\ndata: ok\n\n", "x".repeat(50));
        let (read, too_long) = events(stream.as_bytes(), 30);
        assert_eq!(read, [("ok".to_owned(), None)]);
        assert_eq!(too_long, [56]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut stream = priming_event("3-0", 500).to_vec();
        stream.extend_from_slice(&event(Some("3-1"), b"{\"a\":1}\n"));
        let (read, _) = events(&stream, 1_000);
        assert_eq!(read, [(String::new(), Some("3-0".into())), ("{\"a\":1}".into(), Some("3-1".into()))]);
    }

    #[test]
    fn a_message_in_several_lines_stays_one_event() {
        for message in ["{\n\"a\":\n1}\n", "{\r\"a\":\r1}", "{\r\n\"a\":\n1}\r\n"] {
            let (read, _) = events(&event(None, message.as_bytes()), 1_000);
            assert_eq!(read, [("{\n\"a\":\n1}".to_owned(), None)], "{message:?}");
        }
    }
}
