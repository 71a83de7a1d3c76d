//! Lines out of a byte stream: however it arrives, the same lines come, and a long one is known by its envelope.

use std::{
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use gatekey::wire::{
    envelope::{Envelope, id_key},
    line::{Line, LineReader, TooLong, scan},
};
use tokio::io::{AsyncRead, ReadBuf};

use super::torn;

/// Ids in messages up to this length are found at all times.
const SHORT: usize = 256;

/// Reads `input` under a tight, a usual and a wide limit.
pub fn check(input: &[u8]) {
    for limit_bytes in [8, 64, 1 << 20] {
        let expected = split(input, limit_bytes);
        let mut first = None;
        for parts in torn::ways(input) {
            let read = read(&parts, limit_bytes);
            let shapes: Vec<Result<&[u8], usize>> =
                read.iter().map(|line| line.as_deref().map_err(|found| found.size_bytes)).collect();
            let expected: Vec<_> = expected.iter().map(|(_, line)| *line).collect();
            assert_eq!(shapes, expected);
            assert_eq!(first.get_or_insert(read.clone()), &read, "however it is torn");
        }
        for (line, (raw, _)) in first.iter().flatten().zip(&expected) {
            if let Err(found) = line {
                outline(raw, found);
            }
        }
    }
    for (_, line) in split(input, usize::MAX) {
        let line = line.unwrap_or_default();
        let found = scan(line);
        assert!(found.is_some() || Envelope::parse(line).is_err(), "a message is closed");
        if let Some(found) = found {
            outline(line, &found);
        }
    }
}

/// What is known of a line without reading it is what reading it says.
fn outline(line: &[u8], found: &TooLong) {
    assert_eq!(found.size_bytes, line.len());
    let Ok(envelope) = Envelope::parse(trimmed(line)) else { return };
    assert_eq!(found.has_method, envelope.method.is_some());
    // Only a text or a number is an id that anybody waits for.
    let id = envelope.id.filter(|id| !id.starts_with(['{', '['])).map(id_key);
    assert!(found.id == id || (found.id.is_none() && line.len() > SHORT), "{:?} is {id:?}", found.id);
}

/// A line, and its bytes or how many they were.
type Split<'a> = Vec<(&'a [u8], Result<&'a [u8], usize>)>;

/// The lines that are not blank, as they are written and as they are read: a text, or a length over the limit.
fn split(input: &[u8], limit_bytes: usize) -> Split<'_> {
    let lines = input.split(|byte| *byte == b'\n').map(|line| {
        let read = if line.len() > limit_bytes { Err(line.len()) } else { Ok(trimmed(line)) };
        (line, read)
    });
    lines.filter(|(_, read)| !read.is_ok_and(<[u8]>::is_empty)).collect()
}

fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii_end();
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii_start()
}

fn read(parts: &[&[u8]], limit_bytes: usize) -> Vec<Result<Vec<u8>, TooLong>> {
    let mut reader = LineReader::new(Parts { rest: parts, is_ready: false }, limit_bytes);
    let mut lines = Vec::new();
    loop {
        // A future that has to wait is dropped here: what it has read must not be lost.
        match pin!(reader.next()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(Some(Line::Whole(line)))) => lines.push(Ok(line.to_vec())),
            Poll::Ready(Ok(Some(Line::TooLong(found)))) => lines.push(Err(found)),
            Poll::Ready(end) => {
                assert!(matches!(end, Ok(None)));
                return lines;
            }
            Poll::Pending => {}
        }
    }
}

/// Gives one part a read, and lets every other read wait.
struct Parts<'a> {
    rest: &'a [&'a [u8]],
    is_ready: bool,
}

impl AsyncRead for Parts<'_> {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        self.is_ready = !self.is_ready;
        if self.is_ready {
            return Poll::Pending;
        }
        if let Some((part, rest)) = self.rest.split_first() {
            into.put_slice(part);
            self.rest = rest;
        }
        Poll::Ready(Ok(()))
    }
}
