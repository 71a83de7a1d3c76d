//! Waits that stand while messages come and go. A timer of the runtime's own makes each of its sleeps set a timer of the
//! system, which costs a relayed call a sixth of its CPU; these are kept by a thread that sleeps until the first is due.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

static CLOCK: Clock = Clock { due: Mutex::new(Due::new()), earlier: Condvar::new() };

struct Clock {
    due: Mutex<Due>,
    /// Something is due before the thread wants to look.
    earlier: Condvar,
}

struct Due {
    wakers: BTreeMap<Key, Waker>,
    last: u64,
    /// When the thread looks next; `None` while it waits for anything at all.
    looks_at: Option<Instant>,
    has_thread: bool,
}

/// When, and a number that tells waits apart.
type Key = (Instant, u64);

/// A wait for a moment.
#[derive(Debug)]
pub struct Sleep {
    at: Instant,
    /// Set once it is known to the thread.
    key: Option<Key>,
}

/// Waits for `time`.
pub fn sleep(time: Duration) -> Sleep {
    Sleep { at: Instant::now() + time, key: None }
}

/// Waits until the next of the moments that come each `period`, the same for all who wait.
pub fn tick(period: Duration) -> Sleep {
    static FIRST: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let (first, now) = (*FIRST.get_or_init(Instant::now), Instant::now());
    let since = now.duration_since(first).as_nanos() % period.as_nanos().max(1);
    sleep(period.saturating_sub(Duration::from_nanos(u64::try_from(since).unwrap_or_default())))
}

/// What `future` gives, or `None` where it takes longer than `most`.
///
/// # Cancel safety
/// That of `future`.
pub async fn timeout<T>(most: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        value = future => Some(value),
        () = sleep(most) => None,
    }
}

impl Clock {
    fn due(&self) -> MutexGuard<'_, Due> {
        // Nothing in here can panic half-way through a change.
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whoever is due, for ever.
    fn run(&self) {
        let mut due = self.due();
        loop {
            let now = Instant::now();
            while let Some(first) = due.wakers.first_entry().filter(|first| first.key().0 <= now) {
                let waker = first.remove();
                drop(due);
                waker.wake();
                due = self.due();
            }
            due.looks_at = due.wakers.first_key_value().map(|((at, _), _)| *at);
            due = match due.looks_at {
                None => self.earlier.wait(due).unwrap_or_else(PoisonError::into_inner),
                Some(at) => {
                    let most = at.saturating_duration_since(now);
                    self.earlier.wait_timeout(due, most).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl Due {
    const fn new() -> Self {
        Self { wakers: BTreeMap::new(), last: 0, looks_at: None, has_thread: false }
    }

    fn add(&mut self, at: Instant, waker: Waker) -> Key {
        self.last += 1;
        let key = (at, self.last);
        self.wakers.insert(key, waker);
        if !self.has_thread {
            let thread = std::thread::Builder::new().name("timer".into()).stack_size(64 << 10);
            // Without one nothing is ever over; the next who waits tries again.
            self.has_thread = thread.spawn(|| CLOCK.run()).is_ok();
        } else if self.looks_at.is_none_or(|looks_at| at < looks_at) {
            self.looks_at = Some(at);
            CLOCK.earlier.notify_one();
        }
        key
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut due = CLOCK.due();
        match self.key {
            None => self.key = Some(due.add(self.at, context.waker().clone())),
            Some(key) => match due.wakers.get_mut(&key) {
                Some(waker) if waker.will_wake(context.waker()) => {}
                Some(waker) => {
                    let other = std::mem::replace(waker, context.waker().clone());
                    // The last waker of a task may end it, and with it other waits.
                    drop(due);
                    drop(other);
                }
                None => return Poll::Ready(()),
            },
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            let waker = CLOCK.due().wakers.remove(&key);
            // As above: not while the lock is held.
            drop(waker);
        }
    }
}

/// For hyper.
#[derive(Debug, Clone, Copy)]
pub struct Timer;

impl hyper::rt::Timer for Timer {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(sleep(time))
    }

    fn sleep_until(&self, at: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(Sleep { at, key: None })
    }
}

impl hyper::rt::Sleep for Sleep {}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(20);
    const LATE: Duration = Duration::from_secs(3_600);

    #[tokio::test]
    async fn waits_end_in_the_order_of_their_moments() {
        let started = Instant::now();
        let order = Mutex::new(Vec::new());
        let note = |number: u32, wait: Sleep| {
            let order = &order;
            async move {
                wait.await;
                order.lock().unwrap().push(number);
            }
        };
        tokio::join!(note(3, sleep(SOON * 3)), note(1, sleep(SOON)), note(2, sleep(SOON * 2)));
        assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
        assert!(started.elapsed() >= SOON * 3);
    }

    #[tokio::test]
    async fn a_wait_that_begins_later_may_end_sooner() {
        let mut late = tokio::task::JoinSet::new();
        late.spawn(sleep(LATE));
        tokio::task::yield_now().await;
        sleep(SOON).await;
        assert!(late.try_join_next().is_none());
    }

    #[tokio::test]
    async fn a_timeout_gives_what_comes_in_time() {
        assert_eq!(timeout(LATE, async { 7 }).await, Some(7));
        assert_eq!(timeout(SOON, std::future::pending::<()>()).await, None);
    }

    #[tokio::test]
    async fn a_wait_that_is_dropped_leaves_nothing() {
        let mut dropped = Box::pin(sleep(LATE));
        assert!(timeout(SOON, &mut dropped).await.is_none());
        let key = dropped.key.unwrap();
        assert!(CLOCK.due().wakers.contains_key(&key));
        drop(dropped);
        assert!(!CLOCK.due().wakers.contains_key(&key));
    }

    #[tokio::test]
    async fn ticks_come_together() {
        let both = async { tokio::join!(tick(SOON), tick(SOON)) };
        assert!(timeout(Duration::from_secs(30), both).await.is_some());
        assert!(tick(SOON).at.duration_since(Instant::now()) <= SOON);
    }
}
