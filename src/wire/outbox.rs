//! Lines waiting to be written to one peer: bounded by bytes, joined into few writes, order kept. Over stdio one box is
//! the whole connection; over HTTP each stream has its own, so that a reader who stalls stops nobody else.

use std::{
    any::Any,
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
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

/// The queue of one peer. A full one refuses ([`Outbox::push`]), or takes a line and does what its [`Kind`] says.
#[derive(Debug)]
pub struct Outbox {
    queue: Mutex<Queue>,
    kind: Kind,
    limit_bytes: usize,
    filled: Notify,
    drained: Notify,
    held: OnceLock<Weak<dyn Any + Send + Sync>>,
}

/// Something that is kept as long as a request goes on.
pub type Held = Arc<dyn Any + Send + Sync>;

/// What a box is for, and so what happens when it is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole connection: whoever puts lines waits for [`Outbox::has_room`].
    Connection,
    /// The stream of one request, which its answer closes; one that is not read is given up.
    Request,
    /// What nobody asked for; the oldest lines go.
    Unsolicited,
}

#[derive(Debug, Default)]
struct Queue {
    lines: VecDeque<Vec<u8>>,
    size_bytes: usize,
    is_closed: bool,
}

impl Outbox {
    /// A connection that holds at most `limit_bytes`, or one line of any size.
    pub fn new(limit_bytes: usize) -> Self {
        Self::of_kind(Kind::Connection, limit_bytes)
    }

    /// Holds at most `limit_bytes`, or one line of any size.
    pub fn of_kind(kind: Kind, limit_bytes: usize) -> Self {
        let (filled, drained, held) = (Notify::new(), Notify::new(), OnceLock::new());
        Self { queue: Mutex::default(), kind, limit_bytes, filled, drained, held }
    }

    /// Lets whoever answers here keep this until that is done; whoever gives it lets go when it wants.
    pub fn hold(&self, held: &Held) {
        // One request, one thing.
        self.held.set(Arc::downgrade(held)).ok();
    }

    /// What is to be kept until the request is answered, while whoever gave it still has it.
    pub fn held(&self) -> Option<Held> {
        self.held.get().and_then(Weak::upgrade)
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

    /// Adds a line whether there is room or not; on a connection its giver waits for [`Outbox::has_room`] before it goes
    /// on. A closed box drops it.
    pub fn put(&self, line: Vec<u8>) {
        self.add(line, false);
    }

    /// Adds the answer to a request. The box of a request takes nothing after it.
    pub fn answer(&self, line: Vec<u8>) {
        self.add(line, self.kind == Kind::Request);
    }

    fn add(&self, mut line: Vec<u8>, is_last: bool) {
        let mut queue = self.queue();
        if queue.is_closed {
            return;
        }
        // A line of any size is taken; what counts is what waits before it.
        if queue.size_bytes > self.limit_bytes && self.kind == Kind::Request {
            *queue = Queue { is_closed: true, ..Queue::default() };
            drop(queue);
            return self.filled.notify_one();
        }
        while queue.size_bytes > self.limit_bytes
            && self.kind == Kind::Unsolicited
            && let Some(oldest) = queue.lines.pop_front()
        {
            queue.size_bytes -= oldest.len();
        }
        line.push(b'\n');
        queue.size_bytes += line.len();
        queue.lines.push_back(line);
        queue.is_closed |= is_last;
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
        self.kind == Kind::Connection && !queue.is_closed && queue.size_bytes > self.limit_bytes
    }

    /// Takes the next line, with its line end; `None` once the box is closed and empty. There is one such taker a box.
    ///
    /// # Cancel safety
    /// No line is lost when the future is dropped.
    pub async fn next(&self) -> Option<Vec<u8>> {
        loop {
            let filled = self.filled.notified();
            if let Some(taken) = self.try_next() {
                return taken;
            }
            filled.await;
        }
    }

    /// As [`Outbox::next`], but gives an empty line where [`Outbox::wake`] was called and there is no other.
    ///
    /// # Cancel safety
    /// No line is lost when the future is dropped.
    pub async fn next_or_woken(&self) -> Option<Vec<u8>> {
        let filled = self.filled.notified();
        if let Some(taken) = self.try_next() {
            return taken;
        }
        filled.await;
        self.try_next().unwrap_or_else(|| Some(Vec::new()))
    }

    /// Lets whoever waits for a line look up.
    pub fn wake(&self) {
        self.filled.notify_one();
    }

    /// The next line if there is one, `Some(None)` once the box is closed and empty.
    pub fn try_next(&self) -> Option<Option<Vec<u8>>> {
        let mut queue = self.queue();
        let line = queue.lines.pop_front();
        queue.size_bytes -= line.as_ref().map_or(0, Vec::len);
        let taken = if line.is_some() || queue.is_closed { Some(line) } else { None };
        drop(queue);
        self.drained.notify_waiters();
        taken
    }

    /// Whether nothing is in it and nothing will come.
    pub fn is_done(&self) -> bool {
        let queue = self.queue();
        queue.is_closed && queue.lines.is_empty()
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

    #[tokio::test]
    async fn the_answer_closes_the_box_of_a_request_and_no_other() {
        let (request, connection) = (Outbox::of_kind(Kind::Request, 100), Outbox::new(100));
        for outbox in [&request, &connection] {
            outbox.answer("a".into());
            outbox.put("late".into());
        }
        assert_eq!((request.next().await, request.next().await), (Some(b"a\n".to_vec()), None));
        assert!(request.is_done() && !connection.is_closed());
    }

    #[tokio::test]
    async fn a_full_box_is_given_up_or_loses_its_oldest_lines() {
        let (request, unsolicited) = (Outbox::of_kind(Kind::Request, 5), Outbox::of_kind(Kind::Unsolicited, 5));
        for outbox in [&request, &unsolicited] {
            for line in ["aa", "a long one is taken all the same"] {
                outbox.put(line.into());
            }
            assert!(!outbox.is_over() && !outbox.is_closed(), "nobody waits for such a box");
            outbox.put("cc".into());
        }
        assert!(request.is_done());
        assert_eq!(unsolicited.next().await.unwrap(), b"cc\n");
    }
}
