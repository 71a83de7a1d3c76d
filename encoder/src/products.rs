//! Products of 8-bit vectors, some of them together.
//!
//! It is `unsafe` where vectors are read from arrays of their size. [`products`] says the same in plain numbers; the tests hold
//! one against the other.
#![allow(unsafe_code, reason = "see above")]

/// Vectors multiplied with the same other one.
pub(crate) const TOGETHER: usize = 4;

/// The product of each of `own`, `[TOGETHER, n_dimensions]` (of 8-bit numbers), with `theirs`, `[n_dimensions]`.
#[inline(always)]
pub(crate) fn products(own: &[i16], theirs: &[i8]) -> [i32; TOGETHER] {
    let mut products = [0; TOGETHER];
    for (product, own) in products.iter_mut().zip(own.chunks_exact(theirs.len())) {
        for (own, theirs) in own.iter().zip(theirs) {
            *product += i32::from(*own) * i32::from(*theirs);
        }
    }
    products
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2 {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_add_epi32, _mm_loadu_si128, _mm_storeu_si128, _mm256_add_epi32, _mm256_castsi256_si128,
        _mm256_cvtepi8_epi16, _mm256_extracti128_si256, _mm256_hadd_epi32, _mm256_loadu_si256, _mm256_madd_epi16,
        _mm256_setzero_si256,
    };

    use super::TOGETHER;

    /// Numbers that one instruction multiplies.
    pub(crate) const WIDTH: usize = 16;

    /// [`super::products`] for a multiple of [`WIDTH`] dimensions.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn products(own: &[i16], theirs: &[i8]) -> [i32; TOGETHER] {
        let (theirs, n_dimensions) = (theirs.as_chunks::<WIDTH>().0, theirs.len());
        let own: [&[[i16; WIDTH]]; TOGETHER] =
            std::array::from_fn(|vector| own[vector * n_dimensions..][..n_dimensions].as_chunks().0);
        let mut sums = [_mm256_setzero_si256(); TOGETHER];
        for (position, theirs) in theirs.iter().enumerate() {
            // SAFETY: 16 bytes are read of an array of 16.
            let theirs = _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(theirs.as_ptr().cast::<__m128i>()) });
            for (sum, own) in sums.iter_mut().zip(own) {
                // SAFETY: 32 bytes are read of an array of 16 two-byte numbers.
                let own = unsafe { _mm256_loadu_si256(own[position].as_ptr().cast::<__m256i>()) };
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(own, theirs));
            }
        }
        let [a, b, c, d] = sums;
        let halves = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
        let whole = _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves));
        let mut products = [0; TOGETHER];
        // SAFETY: 16 bytes are written to an array of four four-byte numbers.
        unsafe { _mm_storeu_si128(products.as_mut_ptr().cast::<__m128i>(), whole) };
        products
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_plain_numbers() {
        for n_dimensions in [16, 384, 400] {
            // Bytes that look like chance.
            let number = |i: usize| ((i * 2_654_435_761) >> 7).to_le_bytes()[0].cast_signed();
            let own: Vec<i16> = (0..TOGETHER * n_dimensions).map(|i| i16::from(number(i))).collect();
            let theirs: Vec<i8> = (0..n_dimensions).map(|i| number(i + 77)).collect();
            let plain = products(&own, &theirs);
            let exact = |vector: usize| -> i32 {
                (0..n_dimensions).map(|i| i32::from(own[vector * n_dimensions + i]) * i32::from(theirs[i])).sum()
            };
            assert_eq!(plain, std::array::from_fn(exact));
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has what the function is compiled for.
                assert_eq!(unsafe { avx2::products(&own, &theirs) }, plain);
            }
        }
        let (own, theirs) = ([i16::from(i8::MIN); TOGETHER * 384], [i8::MIN; 384]);
        assert_eq!(products(&own, &theirs), [384 * 128 * 128; TOGETHER], "the largest");
    }
}
