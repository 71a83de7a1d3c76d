//! An upstream over Streamable HTTP: each line of its queue becomes a request of its own, and what comes back is taken as
//! if it had been read from one pipe.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
};

use bytes::Bytes;
use tokio::{
    sync::{Semaphore, mpsc},
    task::{AbortHandle, JoinSet},
    time::{Duration, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::{
    handshake::Memory,
    link::{Ended, Failure, Link},
};
use crate::{
    model::{
        limits::{CHILD_GRACE, DRAIN, HTTP_IN_FLIGHT, UPSTREAM_QUEUE_BYTES},
        program::Endpoint,
    },
    wire::{
        envelope::{Envelope, Kind, as_text},
        http_client::{Deliver, HttpClient, HttpError, Outline},
        peer::{CallError, Peer},
        splice::{member, members},
    },
};

/// Pause before an idempotent request is sent a second time.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

impl Link {
    /// Greets the server and serves it until it cannot be reached or `stop`.
    pub(super) async fn serve_remote(
        self: &Arc<Self>,
        endpoint: &Endpoint,
        memory: &mut Memory,
        stop: &CancellationToken,
    ) -> Ended {
        let client = match HttpClient::new(endpoint, self.credential(endpoint), self.shared.line_limit_bytes) {
            Ok(client) => Arc::new(client),
            Err(reason) => return Ended::early(reason),
        };
        let peer = Arc::new(Peer::new(UPSTREAM_QUEUE_BYTES));
        let (failing, mut failures) = mpsc::channel(1);
        let remote = Remote { link: Arc::clone(self), peer: Arc::clone(&peer), client: Arc::clone(&client), failing };
        let mut io = JoinSet::new();
        io.spawn(remote.pump());
        io.spawn(Arc::clone(self).sweep(Arc::clone(&peer)));
        self.remote.store(Some(Arc::clone(&client)));

        let reason = {
            let life = self.live(&peer, memory);
            tokio::pin!(life);
            tokio::select! {
                () = stop.cancelled() => "gatekey is stopping".to_owned(),
                reason = &mut life => reason,
                Some(reason) = failures.recv() => reason,
            }
        };
        let was_ready = self.withdraw(&reason);
        if !stop.is_cancelled() && was_ready {
            // Other calls may be on their way over connections that still work.
            timeout(DRAIN, peer.idle()).await.ok();
        }
        self.lose(&peer, &reason);
        io.shutdown().await;
        timeout(CHILD_GRACE, client.close()).await.ok();
        Ended { reason, was_ready, was_probed: false }
    }
}

/// What posts the lines of one connection.
#[derive(Clone)]
struct Remote {
    link: Arc<Link>,
    peer: Arc<Peer>,
    client: Arc<HttpClient>,
    /// Takes the reason why the server cannot be reached. One is enough; a full channel has one.
    failing: mpsc::Sender<String>,
}

impl Remote {
    /// Posts lines as they come, each in a task of its own. `initialized` goes before whatever follows it.
    async fn pump(self) {
        let mut posts = JoinSet::new();
        let mut running: HashMap<u64, AbortHandle> = HashMap::new();
        let room = Arc::new(Semaphore::new(HTTP_IN_FLIGHT));
        while let Some(mut line) = self.peer.outbox().next().await {
            line.pop();
            while let Some(ended) = posts.try_join_next() {
                // A handle keeps the memory of its task.
                if let Ok(Some(id)) = ended {
                    running.remove(&id);
                }
            }
            let Ok(envelope) = Envelope::parse(&line) else { continue };
            let outline = self.client.outline(&envelope);
            let id = envelope.id.and_then(|id| id.parse::<u64>().ok()).filter(|_| envelope.method.is_some());
            match (envelope.kind(), id) {
                (Kind::Notification { method: "notifications/initialized" }, _) => {
                    self.clone().post(None, line.into(), outline).await;
                    let stream = self.clone();
                    posts.spawn(async move {
                        stream.listen().await;
                        None
                    });
                }
                (Kind::Notification { method: "notifications/cancelled" }, _) => {
                    let stopped = cancelled_id(&envelope).and_then(|id| running.remove(&id));
                    // A modern server learns it from the end of its stream.
                    if self.client.is_legacy() {
                        self.clone().post(None, line.into(), outline).await;
                    }
                    if let Some(handle) = stopped {
                        handle.abort();
                    }
                }
                _ => {
                    let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
                    let remote = self.clone();
                    let handle = posts.spawn(async move {
                        remote.post(id, line.into(), outline).await;
                        drop(permit);
                        id
                    });
                    if let Some(id) = id {
                        running.insert(id, handle);
                    }
                }
            }
        }
    }

    /// Posts one line; what fails is the failure of the call that it makes.
    async fn post(self, id: Option<u64>, line: Bytes, outline: Outline) {
        let mut outcome = self.try_post(id, line.clone(), outline.clone()).await;
        if let (Err(HttpError::Unreachable(_) | HttpError::Broken(_)), Some(id)) = (&outcome, id)
            && self.peer.is_repeatable(id)
        {
            tokio::time::sleep(RETRY_PAUSE).await;
            outcome = self.try_post(Some(id), line, outline).await;
        }
        let Err(error) = outcome else { return };
        debug!(upstream = %self.link.name(), %error, "a request to the upstream failed");
        if let HttpError::Unreachable(_) | HttpError::NoCredential(_) = error {
            self.failing.try_send(error.to_string()).ok();
        }
        let no_right = match &error {
            HttpError::NoCredential(reason) => Some(reason.clone()),
            HttpError::Refused { status: 401, .. } if self.client.has_credential() => {
                Some("it does not take the credential (HTTP status 401)".to_owned())
            }
            _ => None,
        };
        self.link.no_right.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&no_right);
        let Some(id) = id else { return };
        let why = match &error {
            HttpError::TooLong(_) => CallError::TooLong,
            HttpError::Refused { status, .. } => CallError::Refused(*status),
            _ => CallError::Gone,
        };
        let failure = match (error, no_right) {
            (_, Some(reason)) => Failure::NoRight(reason),
            (HttpError::TooLong(size_bytes), _) => Failure::TooLong { size_bytes },
            (error, _) => Failure::Http(error.to_string()),
        };
        if let Some(relay) = self.peer.answer_useless(&id.to_string(), why) {
            self.link.failed(&relay, &failure);
        }
    }

    async fn try_post(&self, id: Option<u64>, line: Bytes, outline: Outline) -> Result<(), HttpError> {
        let mut taker = Taker { remote: self, about: id };
        self.client.post(line, outline, &mut taker).await?;
        match id {
            Some(id) if self.peer.is_open(id) => Err(HttpError::NoAnswer),
            _ => Ok(()),
        }
    }

    /// What the server tells without being asked.
    async fn listen(self) {
        let mut taker = Taker { remote: &self, about: None };
        let ended = self.client.listen(&mut taker).await;
        debug!(upstream = %self.link.name(), ?ended, "the upstream has no stream for what it tells unasked");
    }
}

struct Taker<'a> {
    remote: &'a Remote,
    about: Option<u64>,
}

impl Deliver for Taker<'_> {
    async fn deliver(&mut self, message: Vec<u8>) -> bool {
        let Remote { link, peer, .. } = self.remote;
        link.take(peer, &message, self.about).await;
        self.about.is_none_or(|id| peer.is_open(id))
    }
}

fn cancelled_id(envelope: &Envelope<'_>) -> Option<u64> {
    let all = members(envelope.params?)?;
    let id = member(&all, "requestId")?.value;
    id.parse().ok().or_else(|| as_text(id)?.parse().ok())
}
