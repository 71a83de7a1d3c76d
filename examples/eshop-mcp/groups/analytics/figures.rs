//! Numbers as reports show them: compared, as shares, rounded, and never divided by zero.

use schemars::JsonSchema;
use serde::Serialize;

/// Count or amount, compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Figure {
    pub(crate) value: i64,
    pub(crate) previous: Option<i64>,
    /// Absent when there was nothing before.
    pub(crate) change_percent: Option<f64>,
}

/// Percentage, compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Rate {
    /// Absent when there is nothing to divide by.
    pub(crate) percent: Option<f64>,
    pub(crate) previous: Option<f64>,
    /// In percentage points.
    pub(crate) change_points: Option<f64>,
}

impl Figure {
    pub(crate) fn new(value: i64, previous: Option<i64>) -> Self {
        Self {
            value,
            previous,
            change_percent: previous.and_then(|previous| percent(value - previous, previous.abs())),
        }
    }
}

impl Rate {
    /// Makes a rate from parts of wholes, now and before.
    pub(crate) fn new((part, whole): (i64, i64), previous: Option<(i64, i64)>) -> Self {
        let now = percent(part, whole);
        let previous = previous.and_then(|(part, whole)| percent(part, whole));
        Self { percent: now, previous, change_points: now.zip(previous).map(|(now, before)| round2(now - before)) }
    }
}

/// A part in percent of the whole, to two digits; none when the whole is zero.
pub(crate) fn percent(part: i64, whole: i64) -> Option<f64> {
    ratio(part, whole).map(|ratio| round2(ratio * 100.0))
}

/// A quotient; none when the divisor is zero.
pub(crate) fn ratio(part: i64, whole: i64) -> Option<f64> {
    (whole != 0).then(|| part as f64 / whole as f64)
}

/// A quotient to two digits; none when the divisor is zero.
pub(crate) fn per(part: i64, whole: i64) -> Option<f64> {
    ratio(part, whole).map(round2)
}

/// A mean amount in whole hundredths, zero of nothing.
pub(crate) fn mean_cents(sum: i64, n: i64) -> i64 {
    ratio(sum, n).map_or(0, whole)
}

/// Rounds to two digits.
pub(crate) fn round2(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Rounds to an integer.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a shop's amounts are far below the ends of the range, and the cast saturates"
)]
pub(crate) fn whole(value: f64) -> i64 {
    value.round() as i64
}

/// The mean; none of nothing.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    let n = i64::try_from(values.len()).unwrap_or(i64::MAX);
    (n > 0).then(|| values.iter().sum::<f64>() / n as f64)
}

/// The value below which `percent` of the values lie, between neighbors in proportion; none of nothing.
pub(crate) fn quantile(values: &[f64], percent: usize) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let (at, rest) = (last * percent / 100, last * percent % 100);
    let (low, high) = (sorted.get(at)?, sorted.get((at + 1).min(last))?);
    let rest = i32::try_from(rest).unwrap_or(0);
    Some(low + (high - low) * f64::from(rest) / 100.0)
}

/// The middle value; none of nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 50)
}

/// The spread of a sample around its mean; zero of fewer than two values.
pub(crate) fn deviation(values: &[f64]) -> f64 {
    let Some(mean) = mean(values).filter(|_| values.len() > 1) else {
        return 0.0;
    };
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let n = i64::try_from(values.len() - 1).unwrap_or(i64::MAX);
    (squares / n as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_divided_by_zero() {
        assert_eq!(percent(3, 0), None);
        assert_eq!(mean_cents(500, 0), 0);
        assert_eq!((mean(&[]), median(&[])), (None, None));
        assert!(deviation(&[4.0]).abs() < f64::EPSILON);
        let figure = Figure::new(5, Some(0));
        assert_eq!((figure.previous, figure.change_percent), (Some(0), None));
        assert_eq!(Rate::new((1, 4), Some((1, 0))).change_points, None);
    }

    #[test]
    fn quantiles_lie_between_neighbors() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(median(&values), Some(2.5));
        assert_eq!(quantile(&values, 90), Some(3.7));
        assert_eq!(quantile(&[7.0], 90), Some(7.0));
        assert_eq!(round2(deviation(&values)), 1.29);
    }
}
