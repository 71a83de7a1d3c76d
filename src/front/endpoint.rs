//! One endpoint: a POST with a message, a GET for what nobody asked for, a DELETE at the end.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    body::{Body, to_bytes},
    http::{
        HeaderMap, HeaderName, Method, Request, Response, StatusCode,
        header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
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
    auth::{Caller, Credential, TooMany},
    config::CallLimits,
    gateway::{NoSkill, needs_upstreams},
    model::{
        limits::{BODY_WAIT, STREAM_PAUSE, STREAM_QUEUE_BYTES},
        name::SkillName,
    },
    session::Session,
    wire::{
        envelope::{Envelope, Kind, error_line, id_key},
        era::{INTERNAL_ERROR, INVALID_REQUEST, LEGACY_VERSIONS},
        headers::{LAST_EVENT, SESSION, VERSION},
        outbox::{self, Held, Outbox},
        sse, timer,
    },
};

/// An answer that takes longer than this becomes a stream, so that what stands between sees that we are there.
const SOON: Duration = Duration::from_millis(1_000);
/// In the older era a stream can be taken up again after its connection broke, so an answer that takes its time is one.
const SOON_IN_SESSION: Duration = Duration::from_millis(100);

/// Serves one request of `caller`; `skill` is the skill whose endpoint it is.
pub(super) async fn serve(
    shared: &Arc<Shared>,
    request: Request<Body>,
    skill: Option<&str>,
    caller: Caller,
) -> Response<Body> {
    let at = At { skill, caller: &caller };
    let (parts, body) = request.into_parts();
    match parts.method {
        Method::POST => match timer::timeout(BODY_WAIT, to_bytes(body, shared.body_limit_bytes)).await {
            Some(Ok(body)) => post(shared, &parts.headers, &body, at).await,
            Some(Err(_too_long)) => plain(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long"),
            None => plain(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"),
        },
        Method::GET => get(shared, &parts.headers, at),
        Method::DELETE => match named(shared, &parts.headers, at) {
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

/// Where a request came to, and whose it is.
#[derive(Clone, Copy)]
struct At<'a> {
    /// The skill whose endpoint it is.
    skill: Option<&'a str>,
    caller: &'a Caller,
}

async fn post(shared: &Arc<Shared>, headers: &HeaderMap, body: &Bytes, at: At<'_>) -> Response<Body> {
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
    let held = match counted(shared, &envelope, at.caller) {
        Ok(held) => held,
        Err(refusal) => return refusal,
    };
    let posted = Posted { headers, line: &line, envelope: &envelope, at, held };
    if checks::is_modern(headers, &envelope) { modern(shared, posted).await } else { legacy(shared, posted).await }
}

/// Counts a request of a caller of whom not all are taken. What is none passes: a call that is given up makes room.
fn counted(shared: &Shared, envelope: &Envelope<'_>, caller: &Caller) -> Result<Option<Held>, Response<Body>> {
    let Kind::Request { method, .. } = envelope.kind() else { return Ok(None) };
    let (name, of_all) = (&caller.principal.name, shared.options.limits);
    let own = shared.gateway.snapshot().config.principals.get(name).map(|known| known.limits).unwrap_or_default();
    let is_stream = method == "subscriptions/listen";
    let limits = CallLimits {
        per_minute: own.per_minute.or(of_all.per_minute),
        // It waits for no answer.
        at_once: own.at_once.or(of_all.at_once).filter(|_| !is_stream),
    };
    match shared.limiter.take(name, limits, Instant::now()) {
        Ok(permit) => Ok(permit.filter(|_| !is_stream).map(|permit| Arc::new(permit) as Held)),
        Err(TooMany { retry_after }) => {
            tracing::info!(principal = %caller.principal, "a request over the caller's measure is refused");
            shared.gateway.record_turned_away(&caller.principal, "too_many");
            let id = envelope.id.map(id_key);
            let mut response = refused(
                StatusCode::TOO_MANY_REQUESTS,
                id,
                INTERNAL_ERROR,
                "too many requests at once or a minute",
                None,
            );
            let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, seconds.max(1).into());
            Err(response)
        }
    }
}

/// A message as it was posted.
struct Posted<'a> {
    headers: &'a HeaderMap,
    line: &'a [u8],
    envelope: &'a Envelope<'a>,
    at: At<'a>,
    /// Kept until it is answered.
    held: Option<Held>,
}

/// Each request stands for itself.
async fn modern(shared: &Arc<Shared>, posted: Posted<'_>) -> Response<Body> {
    let Posted { headers, line, envelope, at: At { skill, caller }, held } = posted;
    let new_session = |outbox: &Arc<Outbox>| {
        let mut session = Session::new(Arc::clone(outbox), caller.principal.clone());
        session.is_one_of_many = caller.credential != Credential::None;
        bring(shared, &session, headers);
        session
    };
    let Kind::Request { method, .. } = envelope.kind() else {
        let nobody = Arc::new(Outbox::of_kind(outbox::Kind::Request, 0));
        let session = Arc::new(new_session(&nobody));
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
    let mut session = new_session(&to);
    session.sent = shared.gateway.stateless_sent();
    if let Some(skill) = skill {
        match shared.gateway.skill(skill, &caller.principal) {
            Ok(name) => session.own_skill = Some(name),
            Err(why) => return no_skill(why),
        }
    }
    let session = Arc::new(session);
    if method == "subscriptions/listen" {
        shared.gateway.open(&session);
    }
    let owner = Owner::Request(Arc::clone(&shared.gateway), Arc::clone(&session));
    let lease = Lease::new(owner, Arc::clone(&to), shared.grants.begin(caller), held);
    shared.gateway.take_parsed(&session, &to, line, envelope);
    answer(&to, lease, false).await
}

async fn legacy(shared: &Arc<Shared>, posted: Posted<'_>) -> Response<Body> {
    let Posted { headers, line, envelope, at, held } = posted;
    if let Some(version) = headers.get(VERSION)
        && !version.to_str().is_ok_and(|version| LEGACY_VERSIONS.contains(&version))
    {
        let id = envelope.id.map(id_key);
        return refused(StatusCode::BAD_REQUEST, id, INVALID_REQUEST, "unsupported protocol version", None);
    }
    let is_greeting = matches!(envelope.kind(), Kind::Request { method: "initialize", .. });
    let session = if is_greeting {
        match open(shared, at).await {
            Ok(session) => session,
            Err(response) => return response,
        }
    } else {
        match named(shared, headers, at) {
            Ok(session) => session,
            Err(refusal) => return refusal,
        }
    };
    bring(shared, &session.session, headers);
    let Kind::Request { method, .. } = envelope.kind() else {
        shared.gateway.take_parsed(&session.session, session.session.outbox(), line, envelope);
        return plain(StatusCode::ACCEPTED, "");
    };
    if needs_upstreams(method) {
        shared.gateway.settled().await;
    }
    let to = Arc::new(Outbox::of_kind(outbox::Kind::Request, STREAM_QUEUE_BYTES));
    let grant = shared.grants.begin(at.caller);
    let lease = Lease::new(Owner::Session(Arc::clone(&session)), Arc::clone(&to), grant, held);
    shared.gateway.take_parsed(&session.session, &to, line, envelope);
    let mut response = answer(&to, lease, true).await;
    if is_greeting && let Ok(id) = session.id.parse() {
        response.headers_mut().insert(SESSION, id);
    }
    response
}

/// Keeps the headers that upstreams want of callers, and no others.
fn bring(shared: &Shared, session: &Session, headers: &HeaderMap) {
    let snapshot = shared.gateway.snapshot();
    let mut wanted = snapshot.config.caller_headers().peekable();
    if wanted.peek().is_none() {
        return;
    }
    // One that came twice says nothing.
    let only = |name: &str| {
        let mut values = headers.get_all(name).iter();
        values.next().filter(|_| values.next().is_none()).cloned()
    };
    let brought = wanted.filter_map(|name| Some((HeaderName::try_from(name).ok()?, only(name)?)));
    session.bring(brought.collect());
}

async fn open(shared: &Arc<Shared>, at: At<'_>) -> Result<Arc<HttpSession>, Response<Body>> {
    let own_skill = match at.skill {
        Some(skill) => {
            shared.gateway.settled().await;
            Some(shared.gateway.skill(skill, &at.caller.principal).map_err(no_skill)?)
        }
        None => None,
    };
    let opened = shared.sessions.open(at.caller, own_skill);
    opened.ok_or_else(|| refused(StatusCode::SERVICE_UNAVAILABLE, None, INTERNAL_ERROR, "too many sessions", None))
}

/// Why there is no such endpoint for a caller.
fn no_skill(why: NoSkill) -> Response<Body> {
    match why {
        NoSkill::Forbidden => plain(StatusCode::FORBIDDEN, "you have no right to use this skill"),
        NoSkill::Unknown => plain(StatusCode::NOT_FOUND, "there is no such skill"),
    }
}

/// The session that a request names, at the endpoint where it was opened.
fn named(shared: &Shared, headers: &HeaderMap, at: At<'_>) -> Result<Arc<HttpSession>, Response<Body>> {
    let Some(id) = headers.get(SESSION).and_then(|id| id.to_str().ok()) else {
        return Err(refused(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, "the session id is missing", None));
    };
    let is_here = |session: &Arc<HttpSession>| session.session.own_skill.as_ref().map(SkillName::as_str) == at.skill;
    let found = shared.sessions.find(id, at.caller).filter(is_here);
    found.ok_or_else(|| refused(StatusCode::NOT_FOUND, None, INVALID_REQUEST, "there is no such session", None))
}

/// What nobody asked for, or the rest of a stream that broke.
fn get(shared: &Shared, headers: &HeaderMap, at: At<'_>) -> Response<Body> {
    if headers.get(SESSION).is_none() {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only a session has a stream");
        response.headers_mut().insert(ALLOW, axum::http::HeaderValue::from_static("POST"));
        return response;
    }
    let session = match named(shared, headers, at) {
        Ok(session) => session,
        Err(refusal) => return refusal,
    };
    let last = headers.get(LAST_EVENT).and_then(|id| id.to_str().ok()).and_then(parse_id);
    let (number, event) = last.unwrap_or((0, u64::MAX));
    let Some(stream) = session.stream(number) else {
        return refused(StatusCode::NOT_FOUND, None, INVALID_REQUEST, "this stream is over", None);
    };
    let grant = shared.grants.begin(at.caller);
    let mut lease = Lease::new(Owner::Session(Arc::clone(&session)), Arc::clone(&stream.outbox), grant, None);
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
