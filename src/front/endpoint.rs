//! One endpoint: a POST with a message, a GET for what nobody asked for, a DELETE at the end.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, to_bytes},
    http::{
        HeaderMap, Method, Request, Response, StatusCode,
        header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE},
    },
};
use bytes::Bytes;
use serde_json::Value;

use super::{
    body::{Lease, Owner, events},
    checks::{self, Mismatch},
    server::Shared,
    sessions::HttpSession,
    stream::parse_id,
};
use crate::{
    gateway::needs_upstreams,
    model::{
        limits::{BODY_WAIT, STREAM_PAUSE, STREAM_QUEUE_BYTES},
        name::SkillName,
    },
    session::Session,
    wire::{
        envelope::{Envelope, Kind, error_line, id_key},
        era::{INTERNAL_ERROR, INVALID_REQUEST, LEGACY_VERSIONS},
        headers::{LAST_EVENT, SESSION, VERSION},
        outbox::{self, Outbox},
        sse, timer,
    },
};

/// An answer that takes longer than this becomes a stream, so that what stands between sees that we are there.
const SOON: Duration = Duration::from_millis(1_000);
/// In the older era a stream can be taken up again after its connection broke, so an answer that takes its time is one.
const SOON_IN_SESSION: Duration = Duration::from_millis(100);

/// Serves one request; `skill` is the skill whose endpoint it is.
pub(super) async fn serve(shared: &Arc<Shared>, request: Request<Body>, skill: Option<&str>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    match parts.method {
        Method::POST => match timer::timeout(BODY_WAIT, to_bytes(body, shared.body_limit_bytes)).await {
            Some(Ok(body)) => post(shared, &parts.headers, &body, skill).await,
            Some(Err(_too_long)) => plain(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long"),
            None => plain(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"),
        },
        Method::GET => get(shared, &parts.headers, skill),
        Method::DELETE => match named(shared, &parts.headers, skill) {
            Ok(session) => {
                shared.sessions.end(&session.id);
                plain(StatusCode::OK, "")
            }
            Err(refusal) => refusal,
        },
        _ => {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "");
            response.headers_mut().insert(ALLOW, axum::http::HeaderValue::from_static("GET, POST, DELETE"));
            response
        }
    }
}

async fn post(shared: &Arc<Shared>, headers: &HeaderMap, body: &Bytes, skill: Option<&str>) -> Response<Body> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content type must be application/json");
    }
    let line = one_line(body);
    let envelope = match Envelope::parse(&line) {
        Ok(envelope) => envelope,
        Err(error) => {
            return refused(StatusCode::BAD_REQUEST, None, error.code(), &error.to_string(), None);
        }
    };
    let posted = Posted { headers, line: &line, envelope: &envelope, skill };
    if checks::is_modern(headers, &envelope) { modern(shared, posted).await } else { legacy(shared, posted).await }
}

/// A message as it was posted.
#[derive(Clone, Copy)]
struct Posted<'a> {
    headers: &'a HeaderMap,
    line: &'a [u8],
    envelope: &'a Envelope<'a>,
    /// The skill whose endpoint it came to.
    skill: Option<&'a str>,
}

/// Each request stands for itself.
async fn modern(shared: &Arc<Shared>, posted: Posted<'_>) -> Response<Body> {
    let Posted { headers, line, envelope, skill } = posted;
    let Kind::Request { method, .. } = envelope.kind() else {
        let nobody = Arc::new(Outbox::of_kind(outbox::Kind::Request, 0));
        let session = Arc::new(Session::new(Arc::clone(&nobody), shared.principal.clone()));
        shared.gateway.take_parsed(&session, &nobody, line, envelope);
        return plain(StatusCode::ACCEPTED, "");
    };
    if needs_upstreams(method) || skill.is_some() {
        shared.gateway.settled().await;
    }
    if let Err(Mismatch { code, message, data }) = checks::check(headers, envelope, &shared.gateway.snapshot()) {
        return refused(StatusCode::BAD_REQUEST, envelope.id.map(id_key), code, &message, data.as_ref());
    }
    let to = Arc::new(Outbox::of_kind(outbox::Kind::Request, STREAM_QUEUE_BYTES));
    let mut session = Session::new(Arc::clone(&to), shared.principal.clone());
    session.sent = shared.gateway.stateless_sent();
    if let Some(skill) = skill {
        match shared.gateway.skill(skill, &shared.principal) {
            Some(name) => session.own_skill = Some(name),
            None => return plain(StatusCode::NOT_FOUND, "there is no such skill"),
        }
    }
    let session = Arc::new(session);
    if method == "subscriptions/listen" {
        shared.gateway.open(&session);
    }
    let lease = Lease::new(Owner::Request(Arc::clone(&shared.gateway), Arc::clone(&session)), Arc::clone(&to));
    shared.gateway.take_parsed(&session, &to, line, envelope);
    answer(&to, lease, false).await
}

async fn legacy(shared: &Arc<Shared>, posted: Posted<'_>) -> Response<Body> {
    let Posted { headers, line, envelope, skill } = posted;
    if let Some(version) = headers.get(VERSION)
        && !version.to_str().is_ok_and(|version| LEGACY_VERSIONS.contains(&version))
    {
        let id = envelope.id.map(id_key);
        return refused(StatusCode::BAD_REQUEST, id, INVALID_REQUEST, "unsupported protocol version", None);
    }
    let is_greeting = matches!(envelope.kind(), Kind::Request { method: "initialize", .. });
    let session = if is_greeting {
        match open(shared, skill).await {
            Ok(session) => session,
            Err(response) => return response,
        }
    } else {
        match named(shared, headers, skill) {
            Ok(session) => session,
            Err(refusal) => return refusal,
        }
    };
    let Kind::Request { method, .. } = envelope.kind() else {
        shared.gateway.take_parsed(&session.session, session.session.outbox(), line, envelope);
        return plain(StatusCode::ACCEPTED, "");
    };
    if needs_upstreams(method) {
        shared.gateway.settled().await;
    }
    let to = Arc::new(Outbox::of_kind(outbox::Kind::Request, STREAM_QUEUE_BYTES));
    let lease = Lease::new(Owner::Session(Arc::clone(&session)), Arc::clone(&to));
    shared.gateway.take_parsed(&session.session, &to, line, envelope);
    let mut response = answer(&to, lease, true).await;
    if is_greeting && let Ok(id) = session.id.parse() {
        response.headers_mut().insert(SESSION, id);
    }
    response
}

async fn open(shared: &Arc<Shared>, skill: Option<&str>) -> Result<Arc<HttpSession>, Response<Body>> {
    let mut own_skill = None;
    if let Some(skill) = skill {
        shared.gateway.settled().await;
        own_skill = shared.gateway.skill(skill, &shared.principal);
        if own_skill.is_none() {
            return Err(plain(StatusCode::NOT_FOUND, "there is no such skill"));
        }
    }
    let opened = shared.sessions.open(shared.principal.clone(), own_skill);
    opened.ok_or_else(|| refused(StatusCode::SERVICE_UNAVAILABLE, None, INTERNAL_ERROR, "too many sessions", None))
}

/// The session that a request names, at the endpoint where it was opened.
fn named(shared: &Shared, headers: &HeaderMap, skill: Option<&str>) -> Result<Arc<HttpSession>, Response<Body>> {
    let Some(id) = headers.get(SESSION).and_then(|id| id.to_str().ok()) else {
        return Err(refused(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, "the session id is missing", None));
    };
    let is_here = |session: &Arc<HttpSession>| session.session.own_skill.as_ref().map(SkillName::as_str) == skill;
    let found = shared.sessions.find(id).filter(is_here);
    found.ok_or_else(|| refused(StatusCode::NOT_FOUND, None, INVALID_REQUEST, "there is no such session", None))
}

/// What nobody asked for, or the rest of a stream that broke.
fn get(shared: &Shared, headers: &HeaderMap, skill: Option<&str>) -> Response<Body> {
    if headers.get(SESSION).is_none() {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only a session has a stream");
        response.headers_mut().insert(ALLOW, axum::http::HeaderValue::from_static("POST"));
        return response;
    }
    let session = match named(shared, headers, skill) {
        Ok(session) => session,
        Err(refusal) => return refusal,
    };
    let last = headers.get(LAST_EVENT).and_then(|id| id.to_str().ok()).and_then(parse_id);
    let (number, event) = last.unwrap_or((0, u64::MAX));
    let Some(stream) = session.stream(number) else {
        return refused(StatusCode::NOT_FOUND, None, INVALID_REQUEST, "this stream is over", None);
    };
    let mut lease = Lease::new(Owner::Session(Arc::clone(&session)), Arc::clone(&stream.outbox));
    let mut first = stream.after(event);
    if first.is_empty() {
        // Sent at once, so that the client knows that the stream is open.
        first.push(Bytes::from_static(b": open\n\n"));
    }
    lease.attach(stream);
    stream_of(lease, first)
}

/// Waits for the first message: where it is the answer it is the whole body.
async fn answer(to: &Arc<Outbox>, mut lease: Lease, is_legacy: bool) -> Response<Body> {
    let first = timer::timeout(if is_legacy { SOON_IN_SESSION } else { SOON }, to.next()).await;
    match first {
        Some(Some(message)) if to.is_done() => {
            let status = if is_legacy { StatusCode::OK } else { checks::status(&message) };
            json(status, message)
        }
        // A queue that nobody read was given up; that can be no answer's.
        Some(None) => refused(StatusCode::INTERNAL_SERVER_ERROR, None, INTERNAL_ERROR, "there is no answer", None),
        first => {
            let mut events = Vec::new();
            if let Some(session) = lease.session().cloned() {
                let stream = session.open_stream(to);
                let pause = u64::try_from(STREAM_PAUSE.as_millis()).unwrap_or_default();
                events.push(sse::priming_event(&stream.id(0), pause));
                lease.attach(stream);
            }
            if let Some(Some(message)) = first {
                events.push(lease.event(&message));
            }
            stream_of(lease, events)
        }
    }
}

fn stream_of(lease: Lease, first: Vec<Bytes>) -> Response<Body> {
    let mut response = Response::new(events(lease, first));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, axum::http::HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, axum::http::HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", axum::http::HeaderValue::from_static("no"));
    response
}

fn json(status: StatusCode, mut message: Vec<u8>) -> Response<Body> {
    message.pop();
    let mut response = Response::new(Body::from(message));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, axum::http::HeaderValue::from_static("application/json"));
    response
}

/// An error of ours about the transport.
fn refused(status: StatusCode, id: Option<Box<str>>, code: i64, message: &str, data: Option<&Value>) -> Response<Body> {
    let data = data.map(Value::to_string);
    let mut line = error_line(id.as_deref().unwrap_or("null"), code, message, data.as_deref());
    line.push(b'\n');
    json(status, line)
}

/// A status with a word for people.
pub(super) fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response
}

/// A body in one line, as everything behind takes it; line ends in JSON stand between tokens only.
fn one_line(body: &Bytes) -> std::borrow::Cow<'_, [u8]> {
    let body = body.trim_ascii();
    if memchr::memchr2(b'\n', b'\r', body).is_none() {
        return body.into();
    }
    body.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect::<Vec<u8>>().into()
}
