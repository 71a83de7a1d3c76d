//! Newline framing with a stated limit. A longer line is read past and reported with its id, so that whoever waits for
//! it can be answered.

use std::io;

use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::envelope::id_key;
use crate::model::limits::{IDLE_BUFFER_BYTES, READ_CHUNK_BYTES};

/// What one read of a line gave.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// Without line end, blanks around it, or a byte-order mark; never empty.
    Whole(&'a [u8]),
    /// Over the limit; its bytes are gone.
    TooLong(TooLong),
}

/// What is known of a line that was over the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooLong {
    /// Its length, in bytes.
    pub size_bytes: usize,
    /// Of the message, as JSON (see [`id_key`]), where it has one.
    pub id: Option<Box<str>>,
    /// Whether it is a request or notification rather than an answer.
    pub has_method: bool,
}

/// Reads lines out of a byte stream.
#[derive(Debug)]
pub struct LineReader<R> {
    inner: R,
    limit_bytes: usize,
    buffer: Vec<u8>,
    /// Where the next line starts in `buffer`.
    start: usize,
    /// Up to where `buffer` is known to hold no line end.
    scanned: usize,
    /// Set while a line over the limit is read past.
    overlong: Option<TopLevel>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads from `inner`; lines may have `limit_bytes`.
    pub fn new(inner: R, limit_bytes: usize) -> Self {
        Self { inner, limit_bytes, buffer: Vec::new(), start: 0, scanned: 0, overlong: None }
    }

    /// Returns the next line that is not blank, or `None` at the end. A last line without a line end counts.
    ///
    /// # Errors
    /// Reading failed.
    ///
    /// # Cancel safety
    /// No bytes are lost when the future is dropped.
    pub async fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            if let Some(length) = memchr(b'\n', &self.buffer[self.scanned..]) {
                let (start, end) = (self.start, self.scanned + length);
                self.start = end + 1;
                self.scanned = self.start;
                if let Some(found) = self.finish_overlong(start, end) {
                    return Ok(Some(Line::TooLong(found)));
                }
                let (from, to) = trimmed(&self.buffer, start, end);
                if from < to {
                    return Ok(Some(Line::Whole(&self.buffer[from..to])));
                }
                continue;
            }
            self.scanned = self.buffer.len();
            self.skip_overlong();
            if self.fill().await? == 0 {
                return Ok(self.last_line());
            }
        }
    }

    async fn fill(&mut self) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        if self.buffer.is_empty() && self.buffer.capacity() > IDLE_BUFFER_BYTES {
            self.buffer = Vec::new();
        }
        // Doubling keeps the copying of a long line linear.
        self.buffer.reserve(READ_CHUNK_BYTES.max(self.buffer.len()));
        self.inner.read_buf(&mut self.buffer).await
    }

    /// Gives up the bytes so far of a line that is over the limit.
    fn skip_overlong(&mut self) {
        let pending = self.buffer.len() - self.start;
        if self.overlong.is_some() || pending > self.limit_bytes {
            let scan = self.overlong.get_or_insert_default();
            scan.feed(&self.buffer[self.start..]);
            self.buffer.clear();
            (self.start, self.scanned) = (0, 0);
        }
    }

    fn finish_overlong(&mut self, start: usize, end: usize) -> Option<TooLong> {
        if self.overlong.is_none() && end - start <= self.limit_bytes {
            return None;
        }
        let mut scan = self.overlong.take().unwrap_or_default();
        scan.feed(&self.buffer[start..end]);
        Some(scan.finish())
    }

    fn last_line(&mut self) -> Option<Line<'_>> {
        let (start, end) = (self.start, self.buffer.len());
        self.start = end;
        self.scanned = end;
        if let Some(found) = self.overlong.take().map(TopLevel::finish) {
            return Some(Line::TooLong(found));
        }
        let (from, to) = trimmed(&self.buffer, start, end);
        (from < to).then(|| Line::Whole(&self.buffer[from..to]))
    }
}

/// The range without white space around it and without a byte-order mark before it.
fn trimmed(buffer: &[u8], start: usize, end: usize) -> (usize, usize) {
    let (mut from, mut to) = (start, end);
    while from < to && buffer[to - 1].is_ascii_whitespace() {
        to -= 1;
    }
    if buffer[from..to].starts_with(b"\xef\xbb\xbf") {
        from += 3;
    }
    while from < to && buffer[from].is_ascii_whitespace() {
        from += 1;
    }
    (from, to)
}

/// Looks for the envelope of a line that cannot be parsed; `None` where it is not even closed.
pub fn scan(line: &[u8]) -> Option<TooLong> {
    let mut scan = TopLevel::default();
    scan.feed(line);
    (line.first() == Some(&b'{') && scan.depth == 0 && !scan.in_string).then(|| scan.finish())
}

/// Longest id that is remembered of a line over the limit, in bytes.
const ID_BYTES: usize = 256;

/// Finds the envelope's id in a message that is fed in parts and not kept.
#[derive(Debug, Default)]
struct TopLevel {
    size_bytes: usize,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// Between a member's colon and its end, at the top level.
    in_value: bool,
    /// The last string at the top level that can be a member's name, quotes included.
    key: Vec<u8>,
    value: Vec<u8>,
    /// The value is longer than what was kept of it.
    is_cut: bool,
    id: Option<Box<str>>,
    has_method: bool,
}

impl TopLevel {
    fn feed(&mut self, part: &[u8]) {
        self.size_bytes += part.len();
        for &byte in part {
            self.step(byte);
        }
    }

    fn step(&mut self, byte: u8) {
        let is_top = self.depth == 1;
        if self.in_string {
            self.keep(is_top, byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if is_top && !self.in_value {
                    self.key.clear();
                }
                self.keep(is_top, byte);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                if is_top {
                    self.end_member();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if is_top && !self.in_value => {
                self.in_value = true;
                self.is_cut = false;
                self.value.clear();
            }
            b',' if is_top => self.end_member(),
            _ => self.keep(is_top && self.in_value, byte),
        }
    }

    fn keep(&mut self, is_wanted: bool, byte: u8) {
        let place = if self.in_value { &mut self.value } else { &mut self.key };
        let is_blank = !self.in_string && byte.is_ascii_whitespace();
        if !is_wanted || (is_blank && place.is_empty()) {
            return;
        }
        if place.len() < ID_BYTES {
            place.push(byte);
        } else {
            self.is_cut |= !is_blank;
        }
    }

    fn end_member(&mut self) {
        self.in_value = false;
        // A name may be written with escapes.
        let key = serde_json::from_slice::<String>(&self.key).unwrap_or_default();
        match key.as_str() {
            "id" => {
                let text = String::from_utf8_lossy(&self.value).trim().to_owned();
                let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
                self.id = (is_json && text != "null" && !self.is_cut).then(|| id_key(&text));
            }
            "method" => self.has_method = true,
            _ => {}
        }
    }

    fn finish(self) -> TooLong {
        TooLong { size_bytes: self.size_bytes, id: self.id, has_method: self.has_method }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], limit: usize) -> Vec<String> {
        // One byte a read finds every place where a line can be torn.
        let mut reader = LineReader::new(tokio_test_reader(input), limit);
        let mut out = Vec::new();
        while let Some(line) = reader.next().await.unwrap() {
            out.push(match line {
                Line::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                Line::TooLong(found) => format!("too long {} {:?} {}", found.size_bytes, found.id, found.has_method),
            });
        }
        out
    }

    fn tokio_test_reader(input: &[u8]) -> impl AsyncRead + Unpin + use<'_> {
        struct OneByte<'a>(&'a [u8]);
        impl AsyncRead for OneByte<'_> {
            fn poll_read(
                mut self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
                buf: &mut tokio::io::ReadBuf<'_>,
            ) -> std::task::Poll<io::Result<()>> {
                if let Some((first, rest)) = self.0.split_first() {
                    buf.put_slice(&[*first]);
                    self.0 = rest;
                }
                std::task::Poll::Ready(Ok(()))
            }
        }
        OneByte(input)
    }

    #[tokio::test]
    async fn lines_come_without_ends_blanks_and_marks() {
        let input = b"\xef\xbb\xbf{\"a\":1}\r\n\n   \n[2]\nlast";
        assert_eq!(lines(input, 100).await, [r#"{"a":1}"#, "[2]", "last"]);
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_reported_with_its_id_and_the_next_one_is_read() {
        let filler = "x".repeat(300);
        for (message, found) in [
            (format!(r#"{{"jsonrpc":"2.0","id":7,"result":"{filler}"}}"#), r#"Some("7") false"#),
            (format!(r#"{{"result":{{"id":1,"t":"\"id\":{filler}"}}, "id" : "a b" }}"#), r#"Some("\"a b\"") false"#),
            (format!(r#"{{"method":"x","params":["{filler}"],"id":-1}}"#), r#"Some("-1") true"#),
            (format!(r#"{{"m\u0065thod":"x","params":["{filler}"],"\u0069d":-1}}"#), r#"Some("-1") true"#),
            (format!(r#"{{"method":"x","params":["{filler}"]}}"#), "None true"),
            (filler.clone(), "None false"),
        ] {
            let input = format!("{message}\nok\n");
            let expected = [format!("too long {} {found}", message.len()), "ok".into()];
            assert_eq!(lines(input.as_bytes(), 100).await, expected);
        }
    }

    #[test]
    fn the_id_of_an_unreadable_line_is_found_where_the_line_is_closed() {
        let id = |line: &[u8]| scan(line).and_then(|found| found.id);
        assert_eq!(id(b"{\"id\":7,\"result\":\"\xe9\"}").as_deref(), Some("7"));
        for noise in [&b"{\"id\":7,\"resu"[..], b"[7]", b"text", b"", b"{\"not\":\"rpc\"}"] {
            assert_eq!(id(noise), None);
        }
    }

    #[tokio::test]
    async fn a_line_of_just_the_limit_passes() {
        assert_eq!(lines(b"abcd\nabcde\n", 4).await, ["abcd", "too long 5 None false"]);
    }
}
