//! A small HTTP server on a port of the system's choice, said on stderr; `echo` and `ideal` stand behind it.

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Request, Response, StatusCode,
    body::{Body, Incoming},
    header::CONTENT_TYPE,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, task::JoinSet};

use crate::{Failure, Result, http::SESSION};

/// Serves until the process is ended; `connected` makes the handler of each connection.
pub(crate) async fn serve<H, F, B>(connected: impl Fn() -> H) -> Result<()>
where
    H: Fn(Request<Incoming>) -> F + Send + 'static,
    F: Future<Output = Result<Response<B>>> + Send + 'static,
    B: Body<Data: Send, Error: Into<Failure>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listens on http://{}/mcp", listener.local_addr()?);
    let mut connections = JoinSet::new();
    loop {
        let (socket, _) = listener.accept().await?;
        // Without it an answer may wait for the other side's acknowledgment.
        socket.set_nodelay(true)?;
        let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service_fn(connected()));
        connections.spawn(connection);
        while connections.try_join_next().is_some() {}
    }
}

/// An answer in JSON, of a session if one begins with it.
pub(crate) fn json(body: Vec<u8>, session: Option<String>) -> Result<Response<Full<Bytes>>> {
    let mut response = Response::builder().header(CONTENT_TYPE, "application/json");
    if let Some(session) = session {
        response = response.header(SESSION, session);
    }
    Ok(response.body(Full::from(body))?)
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Result<Response<Full<Bytes>>> {
    Ok(Response::builder().status(status).body(Full::default())?)
}
