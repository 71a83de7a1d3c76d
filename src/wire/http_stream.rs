//! Streams of events from a server over HTTP: read to the answer, taken up again where they broke, and listened to for what
//! nobody asked for.

use std::time::Duration;

use reqwest::{
    Response,
    header::{ACCEPT, HeaderName, HeaderValue},
};

use super::{
    headers,
    http_client::{Deliver, HttpClient, HttpError, has_type, in_one_line, reason},
    sse::Decoder,
    timer,
};
use crate::model::limits::{STREAM_END, STREAM_PAUSE, STREAM_PAUSE_MOST, STREAM_RESUMES};

/// Where a stream is.
#[derive(Debug, Default)]
struct Place {
    last_id: Option<String>,
    retry_ms: Option<u64>,
    n_events: usize,
}

impl Place {
    fn pause(&self) -> Duration {
        self.retry_ms.map_or(STREAM_PAUSE, Duration::from_millis).min(STREAM_PAUSE_MOST)
    }
}

impl HttpClient {
    /// Reads a stream to its end or to the answer. One that ends before is taken up again where the server lets us.
    pub(super) async fn receive_stream(
        &self,
        first: Response,
        wants_answer: bool,
        deliver: &mut impl Deliver,
    ) -> Result<(), HttpError> {
        let mut place = Place::default();
        let mut response = first;
        let mut n_empty = 0;
        loop {
            let n_before = place.n_events;
            match self.read_stream(response, &mut place, deliver).await {
                Ok(false) => return Ok(()),
                Ok(true) if !wants_answer => return Ok(()),
                Ok(true) if place.last_id.is_none() => return Err(HttpError::NoAnswer),
                Err(error) if place.last_id.is_none() => return Err(error),
                Ok(true) | Err(_) => {}
            }
            n_empty = if place.n_events > n_before { 0 } else { n_empty + 1 };
            if n_empty > STREAM_RESUMES {
                return Err(HttpError::NoAnswer);
            }
            tokio::time::sleep(place.pause()).await;
            response = self.open_stream(&place).await?;
        }
    }

    /// Hands on the events of one connection; says whether it ended before whoever takes them had enough.
    async fn read_stream(
        &self,
        mut response: Response,
        place: &mut Place,
        deliver: &mut impl Deliver,
    ) -> Result<bool, HttpError> {
        let mut decoder = Decoder::new(self.limit_bytes);
        while let Some(chunk) = response.chunk().await.map_err(|error| HttpError::Broken(reason(&error)))? {
            for event in decoder.feed(&chunk) {
                place.n_events += 1;
                place.last_id = event.id.or(place.last_id.take());
                place.retry_ms = event.retry_ms.or(place.retry_ms);
                if !event.data.is_empty() && !deliver.deliver(in_one_line(event.data)).await {
                    // The end of the stream is on its way; once it was read, the connection can be used again.
                    let to_end = async { while matches!(response.chunk().await, Ok(Some(_))) {} };
                    timer::timeout(STREAM_END, to_end).await;
                    return Ok(false);
                }
            }
            if let Some(size_bytes) = decoder.too_long.pop() {
                return Err(HttpError::TooLong(size_bytes));
            }
        }
        Ok(true)
    }

    async fn open_stream(&self, place: &Place) -> Result<Response, HttpError> {
        let mut all = self.fixed.clone();
        all.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        self.state().session.add_to(&mut all);
        if let Some(last) = place.last_id.as_deref().and_then(|id| HeaderValue::try_from(id).ok()) {
            all.insert(HeaderName::from_static(headers::LAST_EVENT), last);
        }
        let sent = self.execute(self.http.get(self.url.clone()).headers(all)).await;
        let response = sent.map_err(|error| match error {
            HttpError::Broken(reason) => HttpError::Unreachable(reason),
            other => other,
        })?;
        if response.status().is_success() && has_type(&response, "text/event-stream") {
            return Ok(response);
        }
        Err(HttpError::Refused { status: response.status().as_u16(), body: String::new() })
    }

    /// Hands on what the server sends unasked, for as long as it offers a stream for that. Legacy only.
    ///
    /// # Errors
    /// The server has no such stream, or has no more.
    ///
    /// # Cancel safety
    /// Dropping the future closes the stream.
    pub async fn listen(&self, deliver: &mut impl Deliver) -> Result<(), HttpError> {
        let mut place = Place::default();
        let mut n_failures = 0;
        loop {
            let used = self.state().session.id.clone();
            match self.open_stream(&place).await {
                Ok(response) => {
                    n_failures = 0;
                    // A stream that breaks is opened anew all the same.
                    self.read_stream(response, &mut place, deliver).await.ok();
                }
                // The session may be opened anew by the next call; the stream belongs to it.
                Err(HttpError::Refused { status: 404, .. }) if used.is_some() => n_failures += 1,
                Err(HttpError::Unreachable(_)) => n_failures += 1,
                Err(error) => return Err(error),
            }
            if self.state().session.id != used {
                place = Place::default();
            }
            let pause = place.pause().saturating_mul(1 << n_failures.min(6));
            tokio::time::sleep(pause.min(STREAM_PAUSE_MOST)).await;
        }
    }
}
