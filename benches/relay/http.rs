//! HTTP/1.1 as a client: one connection in our own hands, and an MCP session over it.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Method, Request, Response,
    body::{Body, Incoming},
    client::conn::http1::{SendRequest, handshake},
    header::{ACCEPT, CONTENT_TYPE, HOST},
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinSet, time::timeout};

use crate::{
    Failure, Result,
    message::{Answer, PROTOCOL, Template, start_of},
};

/// The header that names a session.
pub(crate) const SESSION: &str = "mcp-session-id";
/// An event stream that stays open this long after its answer is left with its connection.
const STREAM_END: Duration = Duration::from_millis(50);

/// A connection that is used by one request at a time.
pub(crate) struct Connection<B> {
    sender: SendRequest<B>,
    /// What moves its bytes; ends with it.
    _driver: JoinSet<()>,
}

impl<B: Body<Data: Send, Error: Into<Failure>> + Send + 'static> Connection<B> {
    pub(crate) async fn open(authority: &str) -> Result<Self> {
        let socket = TcpStream::connect(authority).await?;
        socket.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(socket)).await?;
        let mut driver = JoinSet::new();
        driver.spawn(async { drop(connection.await) });
        Ok(Self { sender, _driver: driver })
    }

    pub(crate) async fn send(&mut self, request: Request<B>) -> Result<Response<Incoming>> {
        self.sender.ready().await?;
        Ok(self.sender.send_request(request).await?)
    }
}

/// `HOST:PORT` and the path of a plain URL.
pub(crate) fn split(url: &str) -> Result<(&str, &str)> {
    let rest = url.strip_prefix("http://").ok_or("the URL is not http://")?;
    let slash = rest.find('/').unwrap_or(rest.len());
    Ok(rest.split_at(slash))
}

/// An MCP session.
pub(crate) struct Http {
    authority: String,
    path: String,
    session: Option<String>,
    /// None before the first request, and after one that failed.
    connection: Option<Connection<Full<Bytes>>>,
    last_id: u64,
}

impl Http {
    pub(crate) fn new(url: &str) -> Result<Self> {
        let (authority, path) = split(url)?;
        let path = if path.is_empty() { "/" } else { path };
        Ok(Self { authority: authority.into(), path: path.into(), session: None, connection: None, last_id: 0 })
    }

    /// Towards the same server, with no session yet.
    pub(crate) fn another(&self) -> Self {
        let (authority, path) = (self.authority.clone(), self.path.clone());
        Self { authority, path, session: None, connection: None, last_id: 0 }
    }

    /// Another connection of the same session; its ids stay apart from this one's.
    pub(crate) fn beside(&self, number: u64) -> Self {
        Self { session: self.session.clone(), last_id: number << 40, ..self.another() }
    }

    pub(crate) async fn ask(&mut self, request: &Template) -> Result<Bytes> {
        self.last_id += 1;
        let id = self.last_id;
        let response = self.send(Method::POST, request.with(id)).await?;
        let kind = response.headers().get(CONTENT_TYPE).map(|kind| kind.as_bytes());
        let is_stream = kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"));
        let answer = if is_stream { self.read_stream(response, id).await? } else { whole(response).await? };
        match Answer::peek(&answer) {
            Some(peeked) if peeked.id == id && !peeked.is_error => Ok(answer),
            _ => Err(format!("refused: {}", start_of(&answer)).into()),
        }
    }

    pub(crate) async fn tell(&mut self, message: &str) -> Result<()> {
        let response = self.send(Method::POST, message.to_owned()).await?;
        drop(whole(response).await?);
        Ok(())
    }

    /// Ends the session; the connection stays.
    pub(crate) async fn end(&mut self) -> Result<()> {
        if self.session.is_some() {
            let response = self.send(Method::DELETE, String::new()).await;
            self.session = None;
            drop(whole(response?).await?);
        }
        Ok(())
    }

    async fn send(&mut self, method: Method, body: String) -> Result<Response<Incoming>> {
        let mut request = Request::builder()
            .method(method)
            .uri(&self.path)
            .header(HOST, &self.authority)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request.header(SESSION, session).header("mcp-protocol-version", PROTOCOL);
        }
        // Taken, so that a request that fails or is given up takes its connection with it.
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.authority).await?,
        };
        let response = connection.send(request.body(Full::from(body))?).await?;
        self.connection = Some(connection);
        if let Some(session) = response.headers().get(SESSION) {
            self.session = Some(session.to_str()?.to_owned());
        }
        if !response.status().is_success() {
            let status = response.status();
            return Err(format!("{status}: {}", start_of(&response.into_body().collect().await?.to_bytes())).into());
        }
        Ok(response)
    }

    /// The answer among the events of a stream; what comes before it is for others.
    async fn read_stream(&mut self, response: Response<Incoming>, id: u64) -> Result<Bytes> {
        let mut body = response.into_body();
        let mut unread = Vec::new();
        while let Some(frame) = body.frame().await {
            let start = unread.len();
            unread.extend_from_slice(frame?.data_ref().map_or(&[][..], |data| data));
            let Some(end) = memchr::memrchr(b'\n', &unread[start..]) else { continue };
            let rest = unread.split_off(start + end + 1);
            for line in std::mem::replace(&mut unread, rest).split(|byte| *byte == b'\n') {
                let Some(data) = line.strip_prefix(b"data:") else { continue };
                if Answer::peek(data).is_some_and(|answer| answer.id == id) {
                    if timeout(STREAM_END, body.collect()).await.is_err() {
                        self.connection = None;
                    }
                    return Ok(Bytes::copy_from_slice(data));
                }
            }
        }
        Err("the event stream ended without the answer".into())
    }
}

async fn whole(response: Response<Incoming>) -> Result<Bytes> {
    Ok(response.into_body().collect().await?.to_bytes())
}
