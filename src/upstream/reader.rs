//! What an upstream writes: answers to their callers, progress to those who asked for it, everything else kept away from
//! clients. One line after the other, in their order.

use std::sync::atomic::Ordering;

use serde_json::value::RawValue;
use tokio::io::AsyncRead;
use tracing::{debug, warn};

use super::link::{Failure, Link};
use crate::{
    model::limits::NOISE_LOGGED,
    wire::{
        envelope::{Envelope, Kind, error_line, result_line},
        era::METHOD_NOT_FOUND,
        line::{Line, LineReader, TooLong, scan},
        peer::{Answered, CallError, Peer},
    },
};

impl Link {
    /// Takes what the server writes, in its order.
    pub(super) async fn read(&self, peer: &Peer, stdout: impl AsyncRead + Unpin) {
        let mut reader = LineReader::new(stdout, self.shared.line_limit_bytes);
        loop {
            match reader.next().await {
                Ok(Some(Line::Whole(line))) => self.take(peer, line).await,
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

    async fn take(&self, peer: &Peer, line: &[u8]) {
        let Ok(envelope) = Envelope::parse(line) else { return self.take_unreadable(peer, line) };
        match envelope.kind() {
            Kind::Response { .. } => {
                if let Answered::Pass(to, line) = peer.answered(line, &envelope) {
                    // Put first, so that it is not lost if this server ends while its client reads slowly.
                    to.put(line);
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
            Kind::Notification { method } => debug!(upstream = %self.name(), method, "notification is not passed on"),
            Kind::Request { id, method } => self.asked(peer, id, method),
            Kind::Noise => self.noise(line),
        }
    }

    /// We told the server that we can do nothing for it; all it may ask is whether we are there.
    fn asked(&self, peer: &Peer, id: &RawValue, method: &str) {
        let answer = if method == "ping" {
            result_line(id.get(), "{}")
        } else {
            error_line(id.get(), METHOD_NOT_FOUND, "gatekey does not serve this to its upstreams", None)
        };
        peer.outbox().push(answer).ok();
    }

    fn take_too_long(&self, peer: &Peer, found: &TooLong) {
        warn!(upstream = %self.name(), size_bytes = found.size_bytes, "upstream sent a line over the limit");
        let relay =
            found.id.as_ref().filter(|_| !found.has_method).and_then(|id| peer.answer_useless(id, CallError::TooLong));
        if let Some(relay) = relay {
            let failure = Failure::TooLong { size_bytes: found.size_bytes };
            (self.shared.on_failure)(self.name(), &relay, &failure);
        }
    }

    /// A line that is closed and has the id of a call is its answer, however broken.
    fn take_unreadable(&self, peer: &Peer, line: &[u8]) {
        self.noise(line);
        let found = scan(line).filter(|found| !found.has_method);
        let relay = found.and_then(|found| peer.answer_useless(&found.id?, CallError::Unreadable));
        if let Some(relay) = relay {
            (self.shared.on_failure)(self.name(), &relay, &Failure::Unreadable);
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
