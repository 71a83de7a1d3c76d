//! Serving one client over a byte stream: lines in, in their order.

use std::{collections::VecDeque, sync::Arc};

use serde_json::json;
use tokio::{io::AsyncRead, time::timeout};
use tracing::debug;

use super::{
    dispatch::{Gateway, needs_upstreams},
    params::Params,
};
use crate::{
    model::limits::{LAST_ANSWERS, LOAD_WAIT},
    session::Session,
    wire::{
        envelope::{Envelope, Kind, error_line, id_key},
        era::{Era, INVALID_REQUEST},
        line::{Line, LineReader, TooLong},
        splice::{member, members},
    },
};

/// Requests that came before the upstreams were up, by id, in their order.
type Early = VecDeque<(Box<str>, Vec<u8>)>;

/// Early requests that are held before the client is read on.
const EARLY: usize = 256;

impl Gateway {
    /// Serves one client until its input ends and what it asked for is answered.
    ///
    /// # Cancel safety
    /// Dropped, it leaves its calls running; they are given up with [`Gateway::close`].
    pub async fn serve(self: &Arc<Self>, session: &Arc<Session>, input: impl AsyncRead + Unpin) {
        self.open(session);
        let mut early = Early::new();
        let mut reader = LineReader::new(input, self.store.load().config.line_limit_bytes);
        let mut is_open = true;
        // After its end the input may still have requests that wait for the upstreams.
        while is_open || !early.is_empty() {
            session.outbox().has_room().await;
            let may_read = is_open && early.len() < EARLY;
            let line = tokio::select! {
                biased;
                () = self.settled(), if !early.is_empty() => {
                    for (_, line) in std::mem::take(&mut early) {
                        self.take(session, session.outbox(), &line);
                    }
                    continue;
                }
                line = reader.next(), if may_read => line,
            };
            match line {
                Ok(Some(Line::Whole(line))) if self.is_settled() && early.is_empty() => {
                    self.take(session, session.outbox(), line);
                }
                Ok(Some(Line::Whole(line))) => self.take_early(session, line, &mut early),
                Ok(Some(Line::TooLong(found))) => refuse_too_long(session, &found),
                Ok(None) => is_open = false,
                Err(error) => {
                    debug!(%error, "reading from the client failed");
                    is_open = false;
                }
            }
        }
        // Whoever pipes requests into us has sent them all and waits for the answers.
        timeout(LOAD_WAIT + LAST_ANSWERS, session.waited()).await.ok();
    }

    /// Holds a request that depends on upstreams; a cancelled one goes.
    fn take_early(self: &Arc<Self>, session: &Arc<Session>, line: &[u8], early: &mut Early) {
        if let Ok(envelope) = Envelope::parse(line) {
            // A client of the newer era need not introduce itself; upstreams wait for nothing more then.
            if Params::read(envelope.params).is_some_and(|params| params.version().is_some()) {
                self.pool.introduce(Era::Modern, "{}");
            }
            match envelope.kind() {
                Kind::Request { id, method } if needs_upstreams(method) => {
                    return early.push_back((id_key(id), line.to_owned()));
                }
                Kind::Notification { method: "notifications/cancelled" } => {
                    let all = envelope.params.and_then(|params| members(params)).unwrap_or_default();
                    let id = member(&all, "requestId").map(|found| id_key(found.value));
                    early.retain(|(held, _)| Some(held) != id.as_ref());
                }
                _ => {}
            }
        }
        self.take(session, session.outbox(), line);
    }
}

fn refuse_too_long(session: &Session, found: &TooLong) {
    let data = json!({"size_bytes": found.size_bytes}).to_string();
    if let Some(id) = found.id.as_ref().filter(|_| found.has_method) {
        let message = "the message is longer than a line may be";
        session.outbox().answer(error_line(id, INVALID_REQUEST, message, Some(&data)));
    }
}
