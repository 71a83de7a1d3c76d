//! From a queue of messages to the body of a response: one JSON object where the answer comes first, else a stream of
//! events.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;

use super::{grants::Grant, sessions::HttpSession, stream::Stream};
use crate::{
    gateway::Gateway,
    model::limits::KEEP_ALIVE,
    session::Session,
    wire::{
        outbox::{Held, Outbox},
        sse,
        timer::{self, Sleep},
    },
};

/// Whose answer a connection waits for.
pub(super) enum Owner {
    /// Of the newer era: when the client closes the connection nobody waits any more, so the calls are given up.
    Request(Arc<Gateway>, Arc<Session>),
    /// Of the older era: the client may take the stream up again.
    Session(Arc<HttpSession>),
}

/// A connection that waits for messages; dropped, it does what is due to its owner.
pub(super) struct Lease {
    owner: Owner,
    outbox: Arc<Outbox>,
    /// Of the older era, once the answer became a stream.
    stream: Option<(Arc<Stream>, u64)>,
    /// By what right it waits.
    grant: Option<Grant>,
    /// Given back when nobody waits any more.
    _held: Option<Held>,
}

impl Lease {
    pub(super) fn new(owner: Owner, outbox: Arc<Outbox>, grant: Option<Grant>, held: Option<Held>) -> Self {
        if let Owner::Session(session) = &owner {
            session.n_open.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(held) = &held {
            outbox.hold(held);
        }
        Self { owner, outbox, stream: None, grant, _held: held }
    }

    /// Takes a stream up; whoever had it before is not its reader any more.
    pub(super) fn attach(&mut self, stream: Arc<Stream>) {
        let ticket = stream.attach();
        self.stream = Some((stream, ticket));
    }

    pub(super) fn session(&self) -> Option<&Arc<HttpSession>> {
        match &self.owner {
            Owner::Session(session) => Some(session),
            Owner::Request(..) => None,
        }
    }

    pub(super) fn event(&self, message: &[u8]) -> Bytes {
        match &self.stream {
            Some((stream, _)) => stream.event(message),
            None => sse::event(None, message),
        }
    }

    fn is_reader(&self) -> bool {
        self.stream.as_ref().is_none_or(|(stream, ticket)| stream.is_reader(*ticket))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        match &self.owner {
            Owner::Request(gateway, session) => {
                if !self.outbox.is_done() {
                    self.outbox.close();
                    gateway.close(session);
                }
            }
            Owner::Session(session) => {
                session.n_open.fetch_sub(1, Ordering::Relaxed);
                session.touch();
                if self.outbox.is_done() {
                    session.forget_ended();
                }
            }
        }
    }
}

/// The next message of a queue.
type Next = Pin<Box<dyn Future<Output = Option<Vec<u8>>> + Send>>;

/// Events as they come.
struct Events {
    lease: Lease,
    /// Events that go first.
    first: VecDeque<Bytes>,
    waiting: Option<Next>,
    keep_alive: Sleep,
    /// Ready once the client may not listen any more.
    ended: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// Streams `first`, and then what comes.
pub(super) fn events(lease: Lease, first: Vec<Bytes>) -> Body {
    let ended = lease.grant.as_ref().map(|grant| Box::pin(grant.ended()) as _);
    Body::new(Events { lease, first: first.into(), waiting: None, keep_alive: timer::sleep(KEEP_ALIVE), ended })
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        if this.ended.as_mut().is_some_and(|ended| ended.as_mut().poll(context).is_ready()) {
            // Ready once only.
            this.ended = Some(Box::pin(std::future::ready(())));
            return Poll::Ready(None);
        }
        if let Some(event) = this.first.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(event))));
        }
        loop {
            if !this.lease.is_reader() {
                return Poll::Ready(None);
            }
            let outbox = &this.lease.outbox;
            let waiting = this.waiting.get_or_insert_with(|| {
                let outbox = Arc::clone(outbox);
                Box::pin(async move { outbox.next_or_woken().await })
            });
            let Poll::Ready(next) = waiting.as_mut().poll(context) else { break };
            this.waiting = None;
            this.keep_alive = timer::sleep(KEEP_ALIVE);
            match next {
                Some(message) if message.is_empty() => {}
                next => return Poll::Ready(next.map(|message| Ok(Frame::data(this.lease.event(&message))))),
            }
        }
        if Pin::new(&mut this.keep_alive).poll(context).is_ready() {
            this.keep_alive = timer::sleep(KEEP_ALIVE);
            // Asked for again, so that the new deadline wakes us.
            context.waker().wake_by_ref();
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b": still here\n\n")))));
        }
        Poll::Pending
    }
}
