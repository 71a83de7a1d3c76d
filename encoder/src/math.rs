//! What is done to many numbers between products.

/// Adds `b` to `a`, number by number.
#[inline(always)]
pub(crate) fn add(a: &mut [f32], b: &[f32]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a += b;
    }
}

/// Adds `b` times `factor` to `a`, number by number.
#[inline(always)]
pub(crate) fn add_scaled(a: &mut [f32], b: &[f32], factor: f32) {
    for (a, b) in a.iter_mut().zip(b) {
        *a = b.mul_add(factor, *a);
    }
}

/// Makes mean 0 and deviation 1, then weighs and shifts each number.
#[inline(always)]
pub(crate) fn normalize(x: &mut [f32], weight: &[f32], bias: &[f32], epsilon: f32) {
    let n = x.len() as f32;
    let mean = sum(x, |x| x) / n;
    let variance = sum(x, |x| (x - mean) * (x - mean)) / n;
    let inverse = 1.0 / (variance + epsilon).sqrt();
    for ((x, weight), bias) in x.iter_mut().zip(weight).zip(bias) {
        *x = (*x - mean) * inverse * weight + bias;
    }
}

/// Makes shares of scores: `e^score`, divided by the sum of all.
#[inline(always)]
pub(crate) fn soften(scores: &mut [f32]) {
    let mut largest = f32::MIN;
    for score in &*scores {
        largest = if *score > largest { *score } else { largest };
    }
    for score in &mut *scores {
        *score = exp_of_negative(*score - largest);
    }
    let inverse = 1.0 / sum(scores, |x| x);
    for score in scores {
        *score *= inverse;
    }
}

/// `x · Φ(x)` for each, the error function by Abramowitz and Stegun 7.1.26 (off by 1.5e-7 at most).
#[inline(always)]
pub(crate) fn gelu(values: &mut [f32]) {
    for x in values {
        let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
        let t = 1.0 / (1.0 + 0.327_591_1 * z);
        let series = t * (0.254_829_6 + t * (-0.284_496_74 + t * (1.421_413_7 + t * (-1.453_152 + t * 1.061_405_4))));
        let erf = 1.0 - series * exp_of_negative(-z * z);
        *x *= 0.5 * (1.0 + erf.copysign(*x));
    }
}

/// The nearest whole number, for numbers below 2²² in size: a sum that has no room for a fraction.
#[inline(always)]
pub(crate) fn whole(x: f32) -> i32 {
    const ROOM: f32 = 12_582_912.0;
    (x + ROOM).to_bits().wrapping_sub(ROOM.to_bits()).cast_signed()
}

/// `e^x` for `x ≤ 0`, by a power of two and a series for the rest (off by 1e-7 of itself).
#[inline(always)]
fn exp_of_negative(x: f32) -> f32 {
    let power = x * std::f32::consts::LOG2_E;
    let power = if power > -126.0 { power } else { -126.0 };
    let whole = whole(power);
    let rest = (power - whole as f32) * std::f32::consts::LN_2;
    let series = 1.0
        + rest * (1.0 + rest * (0.5 + rest * (1.0 / 6.0 + rest * (1.0 / 24.0 + rest * (1.0 / 120.0 + rest / 720.0)))));
    series * f32::from_bits((whole.wrapping_add(127) << 23).cast_unsigned())
}

/// A sum in eight lanes, which a compiler may not make of one by itself.
#[inline(always)]
fn sum(numbers: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let (chunks, rest) = numbers.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for chunk in chunks {
        for (lane, number) in lanes.iter_mut().zip(chunk) {
            *lane += of(*number);
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|number| of(*number)).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gelu_is_what_tables_say() {
        let mut values = [-30.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 30.0];
        gelu(&mut values);
        // x · Φ(x), Φ from a table of the normal distribution.
        let expected =
            [0.0, -0.004_049_7, -0.158_655_26, -0.154_268_77, 0.0, 0.345_731_23, 0.841_344_7, 2.995_950_2, 30.0];
        for (found, expected) in values.iter().zip(expected) {
            assert!((found - expected).abs() < 2e-6, "{found} {expected}");
        }
    }

    #[test]
    fn shares_are_those_of_the_exponential_and_add_up() {
        let mut scores = [0.0, -1.0, 2.0, -200.0, 1.5, 0.25, -0.3, 2.0, 1.0];
        let powers = scores.map(|score: f32| f64::from(score).exp());
        soften(&mut scores);
        for (share, power) in scores.iter().zip(powers) {
            assert!((f64::from(*share) - power / powers.iter().sum::<f64>()).abs() < 1e-6, "{share} {power}");
        }
    }

    #[test]
    fn normalized_numbers_have_mean_0_and_deviation_1_before_weight_and_bias() {
        let mut x: Vec<f32> = (0..20).map(|n| n as f32).collect();
        normalize(&mut x, &[2.0; 20], &[1.0; 20], 0.0);
        // 0 to 19: mean 9.5, deviation √33.25.
        for (n, x) in x.iter().enumerate() {
            assert!((x - ((n as f32 - 9.5) / 33.25_f32.sqrt() * 2.0 + 1.0)).abs() < 1e-5, "{n} {x}");
        }
    }
}
