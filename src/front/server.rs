//! The listener: connections, limits, routes, and the end.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{Path, Request, State},
    http::{Response, StatusCode},
    routing::{any, get},
};
use hyper_util::{rt::TokioIo, server::graceful::GracefulShutdown, service::TowerToHyperService};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::timeout,
};
use tracing::{debug, warn};

use super::{
    access,
    door::{self, Clients, METADATA},
    endpoint,
    grants::Grants,
    sessions::Sessions,
};
use crate::{
    auth::{Caller, Credential, Limiter},
    config::Http,
    gateway::Gateway,
    model::limits::{ACCEPT_PAUSE, CONNECTIONS, DRAIN, GRANT_SWEEP, HEADER_BYTES, HEADER_WAIT, HEADERS, SESSION_SWEEP},
    wire::timer::{self, Timer},
};

/// What every request is served with.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) gateway: Arc<Gateway>,
    pub(super) sessions: Sessions,
    pub(super) clients: Clients,
    pub(super) grants: Arc<Grants>,
    pub(super) limiter: Limiter,
    pub(super) body_limit_bytes: usize,
    pub(super) options: Http,
}

/// A listener that serves clients.
#[derive(Debug)]
pub struct Front {
    listener: TcpListener,
    shared: Arc<Shared>,
}

impl Front {
    /// Binds to `address`; nothing is served yet.
    ///
    /// # Errors
    /// As the system says.
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    pub async fn bind(
        address: SocketAddr,
        gateway: Arc<Gateway>,
        mut clients: Clients,
        options: Http,
        body_limit_bytes: usize,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        if let Clients::Known(auth) = &mut clients {
            auth.known_as(format!("http://{}/mcp", listener.local_addr()?));
        }
        let sessions = Sessions::new(Arc::clone(&gateway), options.sessions, options.session_idle);
        let (grants, limiter) = (Arc::default(), Limiter::default());
        let shared = Shared { gateway, sessions, clients, grants, limiter, body_limit_bytes, options };
        Ok(Self { listener, shared: Arc::new(shared) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// As the system says.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` is ready, then takes no more and lets what is on its way end.
    ///
    /// # Cancel safety
    /// Must run to its end, or answers that are on their way are lost.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let Self { listener, shared } = self;
        let router = router(Arc::clone(&shared));
        let graceful = GracefulShutdown::new();
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        let mut connections = JoinSet::new();
        let mut sweep = timer::tick(SESSION_SWEEP);
        let is_guarded = matches!(shared.clients, Clients::Known(_));
        let mut grant_sweep = timer::tick(GRANT_SWEEP);
        tokio::pin!(stop);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                () = &mut sweep => {
                    shared.sessions.end_idle();
                    sweep = timer::tick(SESSION_SWEEP);
                }
                () = &mut grant_sweep, if is_guarded => {
                    shared.end_revoked();
                    grant_sweep = timer::tick(GRANT_SWEEP);
                }
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
                            debug!("there are too many connections");
                            continue;
                        };
                        let connection = graceful.watch(connection(stream, router.clone()));
                        connections.spawn(async move {
                            if let Err(error) = connection.await {
                                debug!(%error, "a connection ended");
                            }
                            drop(permit);
                        });
                    }
                    Err(error) => {
                        // Usually there are too many open files; some will be closed.
                        warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
            while connections.try_join_next().is_some() {}
        }
        drop(listener);
        shared.gateway.drained(DRAIN).await;
        shared.gateway.end_listeners();
        shared.sessions.end_all();
        timeout(DRAIN, graceful.shutdown()).await.ok();
        connections.shutdown().await;
    }
}

impl Shared {
    /// Ends what is open by right of a credential that is of no use any more.
    fn end_revoked(&self) {
        let may_stay = |caller: &Caller| self.clients.may_stay(caller, self);
        // A JWT that expires during a session is followed by another one; a token that is revoked by none.
        self.sessions.end_others(|caller| matches!(caller.credential, Credential::Jwt { .. }) || may_stay(caller));
        self.grants.end_others(may_stay);
    }
}

fn connection(
    stream: TcpStream,
    router: Router,
) -> hyper::server::conn::http1::Connection<TokioIo<TcpStream>, TowerToHyperService<Router>> {
    // Small answers must not wait for an acknowledgement of the client's system.
    stream.set_nodelay(true).ok();
    hyper::server::conn::http1::Builder::new()
        .timer(Timer)
        .header_read_timeout(HEADER_WAIT)
        .max_headers(HEADERS)
        .max_buf_size(HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/mcp", any(whole))
        .route("/skill/{name}/mcp", any(one_skill))
        .route(METADATA, get(metadata))
        .route(&format!("{METADATA}/{{*path}}"), get(metadata))
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .with_state(shared)
}

async fn whole(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    admit(&shared, request, None).await
}

async fn one_skill(State(shared): State<Arc<Shared>>, Path(name): Path<String>, request: Request) -> Response<Body> {
    admit(&shared, request, Some(&name)).await
}

async fn admit(shared: &Arc<Shared>, request: Request, skill: Option<&str>) -> Response<Body> {
    if let Err((status, why)) = access::check(request.headers(), &shared.options) {
        tracing::info!(%status, why, "a request is refused");
        return endpoint::plain(status, why);
    }
    match door::caller(shared, request.headers(), request.uri()).await {
        Ok(caller) => endpoint::serve(shared, request, skill, caller).await,
        Err(refusal) => {
            // Not in the audit, which strangers could fill until it forgets what matters.
            tracing::info!(status = %refusal.status(), "somebody is not let in");
            refusal
        }
    }
}

async fn metadata(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    // Who may not speak to us need not know whom we trust.
    if let Err((status, why)) = access::check(request.headers(), &shared.options) {
        tracing::info!(%status, why, "a request is refused");
        return endpoint::plain(status, why);
    }
    door::metadata(&shared, request.uri().path().strip_prefix(METADATA).unwrap_or_default())
}

/// Ready once the first list is known.
async fn ready(State(shared): State<Arc<Shared>>) -> (StatusCode, &'static str) {
    if shared.gateway.is_settled() { (StatusCode::OK, "ready") } else { (StatusCode::SERVICE_UNAVAILABLE, "starting") }
}
