//! How much each caller asks for: so many requests within a minute, and so many at once. Must not know what they are.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{config::CallLimits, model::limits::COUNTED_CALLERS};

const MINUTE: Duration = Duration::from_secs(60);

/// The callers of now, by name.
#[derive(Debug, Default)]
pub struct Limiter(Mutex<HashMap<String, Counted>>);

/// One caller's requests.
#[derive(Debug)]
struct Counted {
    /// Requests that may come now.
    left: f64,
    at: Instant,
    /// Each open request holds one more.
    open: Arc<()>,
}

/// An open request; dropped, it makes room for another one.
#[derive(Debug, Clone)]
pub struct Permit {
    _open: Arc<()>,
}

/// A caller asks for more than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany {
    /// After this long one more may come.
    pub retry_after: Duration,
}

impl Counted {
    fn new(now: Instant, limits: CallLimits) -> Self {
        Self { left: f64::from(limits.per_minute.unwrap_or_default()), at: now, open: Arc::new(()) }
    }

    fn n_open(&self) -> usize {
        Arc::strong_count(&self.open) - 1
    }

    /// Whether it is as one that was never seen: nothing is open, and a minute brings back all that it may ask for.
    fn is_new(&self, now: Instant) -> bool {
        self.n_open() == 0 && now.duration_since(self.at) >= MINUTE
    }

    fn take(&mut self, now: Instant, limits: CallLimits) -> Result<Permit, TooMany> {
        if limits.at_once.is_some_and(|most| self.n_open() >= usize::try_from(most).unwrap_or(usize::MAX)) {
            return Err(TooMany { retry_after: Duration::from_secs(1) });
        }
        if let Some(most) = limits.per_minute.map(f64::from) {
            let per_second = most / MINUTE.as_secs_f64();
            self.left = (self.left + now.duration_since(self.at).as_secs_f64() * per_second).min(most);
            self.at = now;
            if self.left < 1.0 {
                return Err(TooMany { retry_after: Duration::from_secs_f64((1.0 - self.left) / per_second) });
            }
            self.left -= 1.0;
        }
        self.at = now;
        Ok(Permit { _open: Arc::clone(&self.open) })
    }
}

impl Limiter {
    fn callers(&self) -> MutexGuard<'_, HashMap<String, Counted>> {
        // Nothing in here can panic half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request of this caller; `None` where nothing is counted.
    ///
    /// # Errors
    /// It is one too many.
    pub fn take(&self, name: &str, limits: CallLimits, now: Instant) -> Result<Option<Permit>, TooMany> {
        if limits == CallLimits::default() {
            return Ok(None);
        }
        let mut callers = self.callers();
        if callers.len() >= COUNTED_CALLERS && !callers.contains_key(name) {
            callers.retain(|_, counted| !counted.is_new(now));
            if callers.len() >= COUNTED_CALLERS {
                return Err(TooMany { retry_after: MINUTE });
            }
        }
        let counted = callers.entry(name.to_owned()).or_insert_with(|| Counted::new(now, limits));
        counted.take(now, limits).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(per_minute: Option<u32>, at_once: Option<u32>) -> CallLimits {
        CallLimits { per_minute, at_once }
    }

    #[test]
    fn a_minute_brings_back_what_was_taken_for_each_caller_apart() {
        let (limiter, start, limits) = (Limiter::default(), Instant::now(), limits(Some(6), None));
        let take = |name: &str, after: u64| limiter.take(name, limits, start + Duration::from_secs(after)).map(drop);
        for _ in 0..6 {
            assert_eq!(take("ann", 0), Ok(()));
        }
        assert_eq!(take("ann", 0), Err(TooMany { retry_after: Duration::from_secs(10) }));
        assert_eq!(take("bob", 0), Ok(()));
        assert_eq!((take("ann", 11), take("ann", 11).is_err()), (Ok(()), true));
        assert_eq!(take("ann", 1_000), Ok(()));
    }

    #[test]
    fn requests_at_once_make_room_when_they_end() {
        let (limiter, now) = (Limiter::default(), Instant::now());
        let take = || limiter.take("ann", limits(None, Some(2)), now);
        let (first, second) = (take().unwrap(), take().unwrap());
        let copy = first.clone();
        drop(first);
        assert!(take().is_err(), "a copy holds it");
        drop(copy);
        assert!(take().is_ok());
        drop(second);
    }

    #[test]
    fn callers_that_are_as_new_are_forgotten() {
        let (limiter, start, limits) = (Limiter::default(), Instant::now(), limits(Some(6), None));
        for number in 0..COUNTED_CALLERS {
            limiter.take(&number.to_string(), limits, start).unwrap();
        }
        assert!(limiter.take("ann", limits, start).is_err());
        assert!(limiter.take("ann", limits, start + MINUTE).is_ok());
        assert_eq!(limiter.callers().len(), 1);
    }
}
