//! Lines waiting to be written to one peer: bounded by bytes, joined into few writes, order kept.

use std::{
    collections::VecDeque,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::Notify,
};

use crate::model::limits::WRITE_BATCH_BYTES;

/// Why a line was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The peer reads too slowly.
    #[error("the peer does not read what it was sent")]
    Full,
    /// The peer is gone.
    #[error("the connection is closed")]
    Closed,
}

/// The queue of one peer. A full one refuses ([`Outbox::push`]), or takes a line and lets wait
/// ([`Outbox::put`], [`Outbox::has_room`]).
#[derive(Debug)]
pub struct Outbox {
    queue: Mutex<Queue>,
    limit_bytes: usize,
    filled: Notify,
    drained: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    lines: VecDeque<Vec<u8>>,
    size_bytes: usize,
    is_closed: bool,
}

impl Outbox {
    /// Holds at most `limit_bytes`, or one line of any size.
    pub fn new(limit_bytes: usize) -> Self {
        Self { queue: Mutex::default(), limit_bytes, filled: Notify::new(), drained: Notify::new() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing in here can panic half-way through a change.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line (without its line end) at once.
    ///
    /// # Errors
    /// [`PushError::Full`] and [`PushError::Closed`]; the line is dropped.
    pub fn push(&self, line: Vec<u8>) -> Result<(), PushError> {
        {
            let queue = self.queue();
            if queue.is_closed {
                return Err(PushError::Closed);
            }
            if !queue.lines.is_empty() && queue.size_bytes + line.len() > self.limit_bytes {
                return Err(PushError::Full);
            }
        }
        self.put(line);
        Ok(())
    }

    /// Adds a line whether there is room or not; for answers, whose giver waits for [`Outbox::has_room`] before it goes on. A closed box drops it.
    pub fn put(&self, mut line: Vec<u8>) {
        let mut queue = self.queue();
        if queue.is_closed {
            return;
        }
        line.push(b'\n');
        queue.size_bytes += line.len();
        queue.lines.push_back(line);
        drop(queue);
        self.filled.notify_one();
    }

    /// Waits until less than the limit is waiting to be written, or the box is closed.
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    pub async fn has_room(&self) {
        while self.is_over() {
            let drained = self.drained.notified();
            // It may have drained before the notice was asked for.
            if !self.is_over() {
                return;
            }
            drained.await;
        }
    }

    fn is_over(&self) -> bool {
        let queue = self.queue();
        !queue.is_closed && queue.size_bytes > self.limit_bytes
    }

    /// Takes no more lines; [`Outbox::write_to`] ends when those in it are written.
    pub fn close(&self) {
        self.queue().is_closed = true;
        self.filled.notify_one();
        self.drained.notify_waiters();
    }

    /// Whether [`Outbox::close`] was called or writing failed.
    pub fn is_closed(&self) -> bool {
        self.queue().is_closed
    }

    /// Writes lines as they come until the box is closed and empty. There is one such writer a box.
    ///
    /// # Errors
    /// Writing failed; the box is closed then, and what was in it is lost.
    ///
    /// # Cancel safety
    /// A line may be written in part when the future is dropped; the stream is of no use then.
    pub async fn write_to<W: AsyncWrite + Unpin>(&self, mut writer: W) -> io::Result<()> {
        let mut batch = Vec::new();
        loop {
            let filled = self.filled.notified();
            let more = self.take_batch(&mut batch);
            if batch.is_empty() {
                if !more {
                    return Ok(());
                }
                filled.await;
                continue;
            }
            self.drained.notify_waiters();
            let written = async {
                writer.write_all(&batch).await?;
                writer.flush().await
            };
            if let Err(error) = written.await {
                self.close();
                return Err(error);
            }
        }
    }

    /// Fills `batch` with what is to be written next; says whether there can be more later.
    fn take_batch(&self, batch: &mut Vec<u8>) -> bool {
        let mut queue = self.queue();
        match queue.lines.pop_front() {
            Some(line) => *batch = line,
            None => batch.clear(),
        }
        while let Some(line) = queue.lines.front() {
            if batch.len() + line.len() > WRITE_BATCH_BYTES {
                break;
            }
            batch.extend_from_slice(line);
            queue.lines.pop_front();
        }
        queue.size_bytes = queue.size_bytes.saturating_sub(batch.len());
        !queue.is_closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_written_in_order_until_closed() {
        let outbox = Outbox::new(1 << 20);
        for line in ["a", "b"] {
            outbox.push(line.into()).unwrap();
        }
        outbox.close();
        let mut written = Vec::new();
        outbox.write_to(&mut written).await.unwrap();
        assert_eq!(written, b"a\nb\n");
        assert_eq!(outbox.push("c".into()), Err(PushError::Closed));
    }

    #[tokio::test]
    async fn a_full_box_refuses_and_whoever_waits_for_room_goes_on_when_it_drains() {
        let outbox = Outbox::new(4);
        outbox.push("abcdef".into()).unwrap();
        assert_eq!(outbox.push("x".into()), Err(PushError::Full));
        let mut written = Vec::new();
        outbox.put("x".into());
        let (written_all, ()) = tokio::join!(outbox.write_to(&mut written), async {
            outbox.has_room().await;
            outbox.close();
        });
        written_all.unwrap();
        assert_eq!(written, b"abcdef\nx\n");
    }
}
