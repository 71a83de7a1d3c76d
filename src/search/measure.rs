//! How good rankings are against labels. Pure numbers.

/// What is measured of each answered query, in this order.
pub const MEASURES: [&str; 6] = ["hit_1", "hit_5", "recall_5", "recall_10", "mrr_10", "ndcg_10"];

/// Resamples of an interval.
const RESAMPLES: usize = 1_000;

/// The measures of one ranking: `ranks` are the places of the right ones that were found, from 0, ascending; `n_right` is
/// how many there are, at least 1.
pub fn measures(ranks: &[usize], n_right: usize) -> [f64; MEASURES.len()] {
    let within = |most: usize| ranks.iter().filter(|rank| **rank < most).count();
    let share = |n: usize, of: usize| n as f64 / of.max(1) as f64;
    let hit = |most: usize| f64::from(u8::from(within(most) > 0));
    let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
    let ideal: f64 = (0..n_right.min(10)).map(gain).sum();
    let gained: f64 = ranks.iter().filter(|rank| **rank < 10).map(|rank| gain(*rank)).sum();
    let first = ranks.first().filter(|rank| **rank < 10).map_or(0.0, |rank| 1.0 / (*rank as f64 + 1.0));
    [hit(1), hit(5), share(within(5), n_right), share(within(10), n_right), first, gained / ideal]
}

/// The mean, and the 95 % interval of means of resamples, which are the same in each run.
pub fn mean(values: &[f64]) -> (f64, [f64; 2]) {
    // The sum of nothing is -0.0.
    let of = |sum: f64| sum / values.len().max(1) as f64 + 0.0;
    let mut random = Random(values.len() as u64);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| of((0..values.len()).filter_map(|_| values.get(random.below(values.len()))).sum()))
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: usize| means.get(RESAMPLES * share / 1_000).copied().unwrap_or_default();
    (of(values.iter().sum()), [at(25), at(975)])
}

/// Numbers by chance, the same for the same seed (SplitMix64; Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((bits ^ (bits >> 31)) % limit.max(1) as u64).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ranking_is_worth_what_its_places_say() {
        for (ranks, n_right, expected) in [
            (&[0][..], 1, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
            (&[], 1, [0.0; 6]),
            (&[1], 1, [0.0, 1.0, 1.0, 1.0, 0.5, 1.0 / 3.0_f64.log2()]),
            (&[0, 6], 2, [1.0, 1.0, 0.5, 1.0, 1.0, (1.0 + 1.0 / 3.0) / (1.0 + 1.0 / 3.0_f64.log2())]),
            (&[10], 1, [0.0; 6]),
        ] {
            let found = measures(ranks, n_right);
            let is_close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12);
            assert!(is_close, "{ranks:?}: {found:?}");
        }
    }

    #[test]
    fn an_interval_lies_around_its_mean() {
        let values: Vec<f64> = (0..200).map(|n| f64::from(n % 4 / 3)).collect();
        let (mean, [low, high]) = super::mean(&values);
        assert!((mean - 0.25).abs() < 1e-12);
        // Two standard errors of such a mean are 0.061.
        assert!(low > 0.17 && low < 0.21 && high > 0.29 && high < 0.33, "{low} {high}");
        assert_eq!(super::mean(&[]).0, 0.0);
    }
}
