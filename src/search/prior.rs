//! What is known of an entry before anybody asks: whether it was of use. Pure numbers.

/// What an entry that always was of use counts more than one nobody knows, and one that never was counts less. Beside the
/// scores of [`super::Hit`] that breaks ties and overturns no clear match: two right ones differ by some tenths, a right and a
/// wrong one by more than 1.
const EXPERIENCE: f32 = 0.25;
/// What counts for an entry in use right now.
const RECENT: f32 = 0.1;
/// Uses that are supposed of one that nobody knows, half of them good.
const SUPPOSED: f32 = 2.0;

/// What an entry counts more (or less) that was used `n_uses` times, `n_good` of them with success, and perhaps just now:
/// the mean of a Beta distribution, scaled. Between −0.25 and 0.35.
pub fn prior(n_uses: u32, n_good: u32, is_recent: bool) -> f32 {
    let expected = (n_good as f32 + SUPPOSED / 2.0) / (n_uses as f32 + SUPPOSED);
    EXPERIENCE * (2.0 * expected - 1.0) + if is_recent { RECENT } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experience_counts_the_more_the_more_there_is_and_is_bounded() {
        for (n_uses, n_good, is_recent, expected) in [
            (0, 0, false, 0.0),
            (0, 0, true, 0.1),
            (1, 1, false, 0.25 / 3.0),
            (1, 0, false, -0.25 / 3.0),
            (2, 1, false, 0.0),
            (8, 8, false, 0.2),
        ] {
            assert!((prior(n_uses, n_good, is_recent) - expected).abs() < 1e-6, "{n_uses} {n_good}");
        }
        assert!(prior(u32::MAX, u32::MAX, true) <= 0.3501 && prior(u32::MAX, 0, false) >= -0.2501);
    }
}
