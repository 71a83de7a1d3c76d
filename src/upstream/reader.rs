//! What an upstream writes: answers to their callers, progress to those who asked for it, everything else to those who
//! know the clients. One line after the other, in their order.

use std::sync::{Arc, atomic::Ordering};

use tokio::io::AsyncRead;
use tracing::{debug, warn};

use super::{
    Offering,
    clients::Message,
    link::{Failure, Link},
};
use crate::{
    model::limits::NOISE_LOGGED,
    wire::{
        envelope::{Envelope, Kind, result_line},
        line::{Line, LineReader, TooLong, scan},
        peer::{Answered, CallError, Peer},
    },
};

impl Link {
    /// Takes what the server writes, in its order.
    pub(super) async fn read(self: &Arc<Self>, peer: &Arc<Peer>, stdout: impl AsyncRead + Unpin) {
        let mut reader = LineReader::new(stdout, self.shared.line_limit_bytes);
        loop {
            match reader.next().await {
                Ok(Some(Line::Whole(line))) => self.take(peer, line, None).await,
                Ok(Some(Line::TooLong(found))) => self.take_too_long(peer, &found),
                Ok(None) => break,
                Err(error) => {
                    debug!(upstream = %self.name(), %error, "reading from upstream failed");
                    break;
                }
            }
        }
        // A server that closed its stdout is over, even if its process stays.
        peer.outbox().close();
    }

    /// Takes one message; over HTTP `about` is our id of the request on whose stream it came.
    pub(super) async fn take(self: &Arc<Self>, peer: &Arc<Peer>, line: &[u8], about: Option<u64>) {
        let Ok(envelope) = Envelope::parse(line) else { return self.take_unreadable(peer, line) };
        let message = Message { peer, line, envelope: &envelope, about };
        match envelope.kind() {
            Kind::Response { .. } => {
                if let Answered::Pass(to, line) = peer.answered(line, &envelope) {
                    // Put first, so that it is not lost if this server ends while its client reads slowly.
                    to.answer(line);
                    to.has_room().await;
                }
            }
            Kind::Notification { method: "notifications/progress" } => {
                if let Some((to, line)) = envelope.params.and_then(|params| peer.progressed(line, params)) {
                    to.put(line);
                    to.has_room().await;
                }
            }
            Kind::Notification { method: "notifications/tools/list_changed" } => self.list_changed.notify_one(),
            // Known to be old from now on, and told at the pace of `Link::follow`.
            Kind::Notification { method: "notifications/resources/list_changed" } => {
                self.forget(Offering::Resources);
                self.forget(Offering::Templates);
                self.resources_changed.notify_one();
            }
            Kind::Notification { method: "notifications/prompts/list_changed" } => {
                self.forget(Offering::Prompts);
                self.prompts_changed.notify_one();
            }
            // Of a subscription of our own, whose answer is what we wait for.
            Kind::Notification { method: "notifications/subscriptions/acknowledged" } => {}
            Kind::Notification { .. } => {
                if let Some(clients) = self.shared.clients.get() {
                    clients.told(self, &message);
                }
            }
            Kind::Request { id, method: "ping" } => drop(peer.outbox().push(result_line(id, "{}"))),
            Kind::Request { .. } => {
                if let Some(clients) = self.shared.clients.get() {
                    clients.asked(self, &message);
                }
            }
            Kind::Noise => self.noise(line),
        }
    }

    fn take_too_long(&self, peer: &Peer, found: &TooLong) {
        warn!(upstream = %self.name(), size_bytes = found.size_bytes, "upstream sent a line over the limit");
        let relay =
            found.id.as_ref().filter(|_| !found.has_method).and_then(|id| peer.answer_useless(id, CallError::TooLong));
        if let Some(relay) = relay {
            let failure = Failure::TooLong { size_bytes: found.size_bytes };
            self.failed(&relay, &failure);
        }
    }

    /// A line that is closed and has the id of a call is its answer, however broken.
    fn take_unreadable(&self, peer: &Peer, line: &[u8]) {
        self.noise(line);
        let found = scan(line).filter(|found| !found.has_method);
        let relay = found.and_then(|found| peer.answer_useless(&found.id?, CallError::Unreadable));
        if let Some(relay) = relay {
            self.failed(&relay, &Failure::Unreadable);
        }
    }

    /// Never answered: some servers answer errors with errors.
    fn noise(&self, line: &[u8]) {
        let number = self.n_noise.fetch_add(1, Ordering::Relaxed);
        if number < NOISE_LOGGED {
            let text = String::from_utf8_lossy(&line[..line.len().min(200)]);
            debug!(upstream = %self.name(), size_bytes = line.len(), %text, "upstream wrote a line that is no message");
        }
    }
}
