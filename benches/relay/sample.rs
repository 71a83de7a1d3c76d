//! From single latencies to the figures of one measurement.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::{Result, usage::Usage};

/// What `load` reports.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Outcome {
    Measured(Sample),
    /// It answered and then no more.
    Failed(String),
    /// It did not get as far as its first answers.
    NotMeasured(String),
}

/// One measurement.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) n_calls: u64,
    pub(crate) n_errors: u64,
    pub(crate) first_error: Option<String>,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) per_second: Option<f64>,
    /// Per call, of the proxy alone; none where there is no proxy.
    pub(crate) cpu_us: Option<f64>,
    pub(crate) peak_rss_mb: f64,
    /// Before and after the calls.
    pub(crate) rss_mb: (f64, f64),
    /// p50 and p99 without the slow neighbor.
    pub(crate) quiet_us: Option<(f64, f64)>,
}

impl Sample {
    /// Of something that was done once.
    pub(crate) fn once(took: Duration, used: Usage) -> Self {
        let p50_us = took.as_secs_f64() * 1e6;
        Self { n_calls: 1, p50_us, peak_rss_mb: used.peak_rss_mb, ..Self::default() }
    }

    /// Of `tally`, which took from `before` to `after` and so long.
    pub(crate) fn new(mut tally: Tally, took: Duration, before: Usage, after: Usage) -> Self {
        let n_calls = tally.latencies.len() as u64;
        let used_us = (after.cpu_us - before.cpu_us) / n_calls as f64;
        let (p50_us, p99_us) = tally.p50_and_p99();
        Self {
            n_calls,
            n_errors: tally.n_errors,
            first_error: tally.first_error,
            p50_us,
            p99_us,
            per_second: Some(n_calls as f64 / took.as_secs_f64()),
            cpu_us: Some(used_us).filter(|used_us| *used_us > 0.0),
            peak_rss_mb: after.peak_rss_mb,
            rss_mb: (before.rss_mb, after.rss_mb),
            quiet_us: None,
        }
    }
}

/// Until when a phase goes on; shared by its lanes.
pub(crate) struct Limit {
    left: AtomicU64,
    until: Instant,
}

impl Limit {
    pub(crate) fn new(most_calls: u64, most: Duration) -> Self {
        Self { left: most_calls.into(), until: Instant::now() + most }
    }

    /// Whether one more call may begin.
    pub(crate) fn take(&self) -> bool {
        let less = |left: u64| left.checked_sub(1);
        Instant::now() < self.until && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

/// The calls of a phase.
#[derive(Default)]
pub(crate) struct Tally {
    latencies: Vec<Duration>,
    n_errors: u64,
    first_error: Option<String>,
}

impl Tally {
    pub(crate) fn add(&mut self, latency: Duration, outcome: Result<()>) {
        self.latencies.push(latency);
        if let Err(error) = outcome {
            self.n_errors += 1;
            self.first_error.get_or_insert_with(|| error.to_string());
        }
    }

    pub(crate) fn join(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.n_errors += other.n_errors;
        self.first_error = self.first_error.take().or(other.first_error);
    }

    pub(crate) fn p50_and_p99(&mut self) -> (f64, f64) {
        self.latencies.sort_unstable();
        let last = self.latencies.len().saturating_sub(1);
        let at = |percent: usize| self.latencies.get(last * percent / 100).map_or(0.0, |it| it.as_secs_f64() * 1e6);
        (at(50), at(99))
    }
}
