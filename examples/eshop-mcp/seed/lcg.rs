//! The fixed number sequence behind all seeded data.

/// A linear congruential generator; the high bits are used, the low ones are poor.
///
/// **Source:** Knuth's MMIX constants.
#[derive(Debug)]
pub(crate) struct Lcg(u64);

impl Lcg {
    /// Starts a sequence of its own for each table, so that a change to one leaves the others alone.
    pub(crate) fn new(seed: u64) -> Self {
        let mut lcg = Self(seed);
        lcg.next();
        lcg
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn range(&mut self, low: i64, high: i64) -> i64 {
        let n = high.abs_diff(low) + 1;
        low.saturating_add_unsigned(self.next() % n)
    }

    /// True in `percent` of 100 cases.
    pub(crate) fn chance(&mut self, percent: i64) -> bool {
        self.range(1, 100) <= percent
    }

    /// One of the items; they must not be empty.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let last = i64::try_from(items.len()).unwrap_or(1) - 1;
        let at = self.range(0, last.max(0));
        &items[usize::try_from(at).unwrap_or(0)]
    }
}
