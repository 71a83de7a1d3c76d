//! Streamable HTTP towards one server, both eras: a line is posted, and what comes back is handed on line by line. Keeps
//! the session of the older era and opens it anew when the server has forgotten it. Must not know what a line is about,
//! beyond the headers that repeat it. Read [`HttpClient::post`] first; answers that are streams of
//! events are read in `http_stream`.
//!
//! **Source:** the specification's transport pages, 2025-03-26 to 2026-07-28.

use std::{
    collections::HashMap,
    error::Error as _,
    fmt::Debug,
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use reqwest::{
    RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::Value;

use super::{
    envelope::{Envelope, as_text, notification_line},
    headers::{self, ParamHeader},
    json::items,
    splice::{member, members},
};
use crate::model::{
    limits::{HTTP_CONNECT, HTTP_ERROR_BYTES, HTTP_IDLE},
    program::Endpoint,
};

/// One server, and the session with it if it keeps one.
#[derive(Debug)]
pub struct HttpClient {
    pub(super) http: reqwest::Client,
    pub(super) url: Url,
    /// Of every request: those of the config, and what we take.
    pub(super) fixed: HeaderMap,
    credential: Option<Arc<dyn Credential>>,
    pub(super) limit_bytes: usize,
    state: Mutex<State>,
    /// Held while a session is opened anew, so that many calls that find it gone open one.
    reopening: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Set once the server was asked to `initialize`, with that line.
    greeting: Option<Bytes>,
    /// Legacy only.
    pub(super) session: Session,
    /// Arguments that headers repeat, by tool. Modern only.
    params: HashMap<String, Vec<ParamHeader>>,
}

/// A session with the server, as headers name it.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) id: Option<HeaderValue>,
    /// The revision agreed on.
    version: Option<HeaderValue>,
}

impl Session {
    pub(super) fn add_to(&self, all: &mut HeaderMap) {
        for (name, value) in [(headers::VERSION, &self.version), (headers::SESSION, &self.id)] {
            if let Some(value) = value {
                all.insert(HeaderName::from_static(name), value.clone());
            }
        }
    }
}

/// By what a server knows who is asking; it may change while a connection lasts.
pub trait Credential: Debug + Send + Sync {
    /// The headers of the next request; or why there are none.
    fn headers(&self) -> Soon<'_, Result<HeaderMap, String>>;
    /// The server did not take these; says whether there are others now.
    fn renew<'a>(&'a self, refused: &'a HeaderMap) -> Soon<'a, bool>;
}

/// What a [`Credential`] may have to wait for.
pub type Soon<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why a line came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// It did not reach the server.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// There is nothing by which the server would know who is asking.
    #[error("{0}")]
    NoCredential(String),
    /// It was sent, and then the connection failed.
    #[error("the connection failed: {0}")]
    Broken(String),
    /// The server refused it.
    #[error("it answered with HTTP status {status}{}", text(.body))]
    Refused {
        /// The status.
        status: u16,
        /// What it said, cut.
        body: String,
    },
    /// The answer is over the limit.
    #[error("the answer has over {0} bytes")]
    TooLong(usize),
    /// The server accepted it, and then gave no answer.
    #[error("it accepted the request and closed the stream without an answer")]
    NoAnswer,
}

fn text(body: &str) -> String {
    let body = body.trim();
    if body.is_empty() { String::new() } else { format!(": {body}") }
}

/// Takes what a server sends, one message a time, in order; says whether the stream is read on.
pub trait Deliver: Send {
    /// Takes one message.
    fn deliver(&mut self, message: Vec<u8>) -> impl Future<Output = bool> + Send;
}

/// What the headers of a line depend on, and whether it wants an answer.
#[derive(Debug, Clone, Default)]
pub struct Outline {
    method: Option<String>,
    name: Option<String>,
    version: Option<String>,
    params: Vec<(String, String)>,
    is_request: bool,
}

impl HttpClient {
    /// Makes a client; nothing is sent yet.
    ///
    /// # Errors
    /// A header or a certificate cannot be used, with the reason.
    pub fn new(
        endpoint: &Endpoint,
        credential: Option<Arc<dyn Credential>>,
        limit_bytes: usize,
    ) -> Result<Self, String> {
        let mut fixed = HeaderMap::new();
        fixed.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        fixed.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &endpoint.headers {
            let name =
                HeaderName::try_from(name.as_str()).map_err(|_error| format!("header name `{name}` is invalid"))?;
            // The value may be a secret, so it is not repeated.
            let mut value = HeaderValue::try_from(value.as_str())
                .map_err(|_error| format!("the value of header `{name}` is invalid"))?;
            value.set_sensitive(true);
            fixed.insert(name, value);
        }
        let http = plain_client(endpoint.ca_file.as_deref(), endpoint.url.starts_with("https://"))?;
        let url = Url::parse(&endpoint.url).map_err(|error| format!("its address is invalid: {error}"))?;
        let (state, reopening) = (Mutex::default(), tokio::sync::Mutex::new(()));
        Ok(Self { http, url, fixed, credential, limit_bytes, state, reopening })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the server is told who is asking by something that may change.
    pub fn has_credential(&self) -> bool {
        self.credential.is_some()
    }

    /// Sets which arguments of which tools headers repeat.
    pub fn set_params(&self, params: HashMap<String, Vec<ParamHeader>>) {
        self.state().params = params;
    }

    /// Whether the server was asked to open a session.
    pub fn is_legacy(&self) -> bool {
        self.state().greeting.is_some()
    }

    /// Posts a line and hands on what comes back until its answer is among it. A session that the server has forgotten is
    /// opened anew and the line is posted again: it was not served.
    ///
    /// # Errors
    /// See [`HttpError`].
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection, by which a modern server learns that nobody waits any more.
    pub async fn post(&self, line: Bytes, outline: Outline, deliver: &mut impl Deliver) -> Result<(), HttpError> {
        let used = self.state().session.id.clone();
        let mut response = self.send(line.clone(), self.headers(&outline)).await?;
        if response.status() == StatusCode::NOT_FOUND
            && used.is_some()
            && outline.method.as_deref() != Some("initialize")
        {
            self.reopen(used.as_ref()).await?;
            response = self.send(line.clone(), self.headers(&outline)).await?;
        }
        if outline.method.as_deref() != Some("initialize") {
            return self.receive(response, &outline, deliver).await;
        }
        self.greeted(line, &response);
        self.receive(response, &outline, &mut Greeting { client: self, deliver }).await
    }

    async fn send(&self, line: Bytes, headers: HeaderMap) -> Result<Response, HttpError> {
        self.execute(self.http.post(self.url.clone()).headers(headers).body(line)).await
    }

    /// Sends a request by the credential that there is. One that the server does not take was not served, so that the
    /// request is sent again by a newer one.
    pub(super) async fn execute(&self, request: RequestBuilder) -> Result<Response, HttpError> {
        let failed = |error: reqwest::Error| match error.is_connect() {
            true => HttpError::Unreachable(reason(&error)),
            false => HttpError::Broken(reason(&error)),
        };
        let Some(credential) = &self.credential else { return request.send().await.map_err(failed) };
        let again = request.try_clone();
        let given = credential.headers().await.map_err(HttpError::NoCredential)?;
        let response = request.headers(given.clone()).send().await.map_err(failed)?;
        match again {
            Some(again) if response.status() == StatusCode::UNAUTHORIZED && credential.renew(&given).await => {
                let given = credential.headers().await.map_err(HttpError::NoCredential)?;
                again.headers(given).send().await.map_err(failed)
            }
            _ => Ok(response),
        }
    }

    fn headers(&self, outline: &Outline) -> HeaderMap {
        let mut all = self.fixed.clone();
        let mut put = |name: &str, value: &str| {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(&*headers::encode(value)))
            {
                all.insert(name, value);
            }
        };
        if let Some(version) = &outline.version {
            put(headers::VERSION, version);
            put(headers::METHOD, outline.method.as_deref().unwrap_or_default());
            if let Some(name) = &outline.name {
                put(headers::NAME, name);
            }
            for (name, value) in &outline.params {
                put(name, value);
            }
            return all;
        }
        // A session begins without one.
        if outline.method.as_deref() != Some("initialize") {
            self.state().session.add_to(&mut all);
        }
        all
    }

    /// Reads what headers repeat. Lines of the legacy era need nothing but the method.
    pub fn outline(&self, envelope: &Envelope<'_>) -> Outline {
        let mut outline = Outline {
            method: envelope.method.as_deref().map(str::to_owned),
            is_request: envelope.method.is_some() && envelope.id.is_some(),
            ..Outline::default()
        };
        if self.is_legacy() {
            return outline;
        }
        let Some(all) = envelope.params.and_then(|params| members(params)) else { return outline };
        let meta = member(&all, "_meta").and_then(|meta| members(meta.value)).unwrap_or_default();
        let text = |raw: &str| as_text(raw).map(|text| text.into_owned());
        outline.version = member(&meta, super::era::META_VERSION).and_then(|found| text(found.value));
        let method = outline.method.as_deref().unwrap_or_default();
        let named = headers::name_member(method).and_then(|key| member(&all, key));
        outline.name = named.and_then(|found| text(found.value));
        if let Some(name) = outline.name.as_ref().filter(|_| method == "tools/call")
            && let Some(annotated) = self.state().params.get(name)
            && let Some(arguments) = member(&all, "arguments")
            && let Ok(arguments) = serde_json::from_str::<Value>(arguments.value)
        {
            let value = |header: &ParamHeader| Some((header.name.clone(), header.value(&arguments)?));
            outline.params = annotated.iter().filter_map(value).collect();
        }
        outline
    }

    /// The answer to `initialize` names the session.
    fn greeted(&self, line: Bytes, response: &Response) {
        let id = response.headers().get(headers::SESSION).filter(|_| response.status().is_success()).cloned();
        let mut state = self.state();
        state.greeting = Some(line);
        state.session = Session { id, version: None };
    }

    /// Opens the session anew, unless another call has done so since `used` was. Until that is done requests go on in the
    /// old one, and come here when they are refused.
    async fn reopen(&self, used: Option<&HeaderValue>) -> Result<(), HttpError> {
        let _turn = self.reopening.lock().await;
        let greeting = {
            let state = self.state();
            if state.session.id.as_ref() != used {
                return Ok(());
            }
            state.greeting.clone()
        };
        let Some(greeting) = greeting else { return Ok(()) };
        let outline = Outline { is_request: true, ..Outline::default() };
        let response = self.send(greeting, self.fixed.clone()).await?;
        let id = response.headers().get(headers::SESSION).cloned();
        let mut answer = LastAnswer::default();
        self.receive(response, &outline, &mut answer).await?;
        let version = version_of(&answer.0);
        if version.is_none() {
            return Err(HttpError::Broken("it has forgotten the session and opens no other one".into()));
        }
        let session = Session { id, version };
        let mut all = self.fixed.clone();
        session.add_to(&mut all);
        let initialized = notification_line("notifications/initialized", None);
        let response = self.send(initialized.into(), all).await?;
        self.receive(response, &Outline::default(), &mut answer).await?;
        self.state().session = session;
        Ok(())
    }

    async fn receive(
        &self,
        response: Response,
        outline: &Outline,
        deliver: &mut impl Deliver,
    ) -> Result<(), HttpError> {
        let status = response.status();
        let is_stream = has_type(&response, "text/event-stream");
        if is_stream && status.is_success() {
            return self.receive_stream(response, outline.is_request, deliver).await;
        }
        let is_json = has_type(&response, "application/json");
        if !status.is_success() && !is_json {
            let body = self.body(response, HTTP_ERROR_BYTES).await.unwrap_or_default();
            let body = String::from_utf8_lossy(&body).chars().take(200).collect();
            return Err(HttpError::Refused { status: status.as_u16(), body });
        }
        if status == StatusCode::ACCEPTED || !is_json {
            return if outline.is_request { Err(HttpError::NoAnswer) } else { Ok(()) };
        }
        let body = self.body(response, self.limit_bytes).await?;
        let messages = one_line_each(body);
        let is_answer =
            |message: &[u8]| Envelope::parse(message).is_ok_and(|found| found.id.is_some() && found.method.is_none());
        // An error that names no request, or a body that is no message, is still why the request came to nothing.
        if !status.is_success() && !messages.iter().any(|message| is_answer(message)) {
            let body = messages.concat();
            let body = String::from_utf8_lossy(&body).chars().take(200).collect();
            return Err(HttpError::Refused { status: status.as_u16(), body });
        }
        for message in messages {
            deliver.deliver(message).await;
        }
        Ok(())
    }

    async fn body(&self, mut response: Response, limit_bytes: usize) -> Result<Vec<u8>, HttpError> {
        let expected = response.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or_default();
        let mut body = Vec::with_capacity(expected.min(limit_bytes));
        while let Some(chunk) = response.chunk().await.map_err(|error| HttpError::Broken(reason(&error)))? {
            if body.len() + chunk.len() > limit_bytes {
                return Err(HttpError::TooLong(limit_bytes));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Tells the server that the session is over. Legacy only.
    ///
    /// # Cancel safety
    /// Can be dropped at any time.
    pub async fn close(&self) {
        if self.state().session.id.is_none() {
            return;
        }
        let mut all = self.fixed.clone();
        self.state().session.add_to(&mut all);
        // Many servers have no use for it; none needs to be waited for.
        drop(self.execute(self.http.delete(self.url.clone()).headers(all)).await);
    }
}

/// A client as all that we ask of servers goes by.
///
/// # Errors
/// The certificates cannot be used, with the reason.
pub fn plain_client(ca_file: Option<&Path>, may_need_tls: bool) -> Result<reqwest::Client, String> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("gatekey/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(HTTP_CONNECT)
        .pool_idle_timeout(HTTP_IDLE)
        .tcp_nodelay(true)
        // A redirect would take headers with secrets, and writes, to another place than the config names.
        .redirect(reqwest::redirect::Policy::none());
    if !may_need_tls && ca_file.is_none() {
        // Without TLS there is nothing to trust, and the system's certificates need not be held in memory.
        builder = builder.tls_certs_only(std::iter::empty());
    }
    if let Some(file) = ca_file {
        let pem =
            std::fs::read(file).map_err(|error| format!("the certificates of `ca-file` cannot be read: {error}"))?;
        let certificates = reqwest::Certificate::from_pem_bundle(&pem)
            .map_err(|error| format!("the certificates of `ca-file` are invalid: {error}"))?;
        builder = builder.tls_certs_merge(certificates);
    }
    use_ring();
    builder.build().map_err(|error| reason(&error))
}

/// Chooses what TLS is made with; before any client that does not choose itself.
pub fn use_ring() {
    // Fails where another client came first, which chose the same.
    rustls::crypto::ring::default_provider().install_default().ok();
}

/// Takes the revision out of the answer to `initialize` before it is handed on; later requests name it.
struct Greeting<'a, D> {
    client: &'a HttpClient,
    deliver: &'a mut D,
}

impl<D: Deliver> Deliver for Greeting<'_, D> {
    async fn deliver(&mut self, message: Vec<u8>) -> bool {
        if let Some(version) = version_of(&message) {
            self.client.state().session.version = Some(version);
        }
        self.deliver.deliver(message).await
    }
}

/// Keeps the answer to what we asked only to open a session anew.
#[derive(Default)]
struct LastAnswer(Vec<u8>);

impl Deliver for LastAnswer {
    async fn deliver(&mut self, message: Vec<u8>) -> bool {
        let is_answer = Envelope::parse(&message).is_ok_and(|envelope| envelope.method.is_none());
        if is_answer {
            self.0 = message;
        }
        !is_answer
    }
}

/// The revision that an answer to `initialize` agrees on.
fn version_of(answer: &[u8]) -> Option<HeaderValue> {
    let envelope = Envelope::parse(answer).ok()?;
    let result = members(envelope.result?)?;
    as_text(member(&result, "protocolVersion")?.value)?.parse().ok()
}

pub(super) fn has_type(response: &Response, wanted: &str) -> bool {
    let given = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    given.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(wanted)
}

/// A body is a message, or (2025-03-26) a list of them.
fn one_line_each(body: Vec<u8>) -> Vec<Vec<u8>> {
    if let Some(batch) = std::str::from_utf8(&body).ok().and_then(items) {
        return batch.into_iter().map(|message| in_one_line(message.into())).collect();
    }
    vec![in_one_line(body)]
}

/// Line ends in JSON stand between tokens only, so that blanks mean the same.
pub(super) fn in_one_line(mut message: Vec<u8>) -> Vec<u8> {
    if memchr::memchr2(b'\n', b'\r', &message).is_some() {
        for byte in message.iter_mut().filter(|byte| matches!(**byte, b'\n' | b'\r')) {
            *byte = b' ';
        }
    }
    message
}

/// The innermost cause, which says what happened; the address is known and may hold secrets.
pub(super) fn reason(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    if innermost.source().is_none() && error.source().is_none() {
        return if error.is_timeout() { "no answer in time".into() } else { "the request failed".into() };
    }
    innermost.to_string()
}
