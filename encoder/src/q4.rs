//! Products of activations with 4-bit weights, on 8-bit integers.
//!
//! It is `unsafe` where vectors are read from and written to arrays of their size. [`Packed::product`] says the same in plain
//! numbers; the tests hold one against the other.
#![allow(unsafe_code, reason = "see above")]

use crate::math::whole;

/// Weights that share a scale, as in the file format (Q4_0).
pub(crate) const BLOCK: usize = 32;
/// Bytes of a block in the file: a half-precision scale, then two weights a byte.
pub(crate) const BLOCK_BYTES: usize = 2 + BLOCK / 2;
/// Rows that are multiplied together: as many as 32-bit numbers fit a vector.
const ROWS: usize = 8;
/// Weights of a row that one instruction multiplies.
const STEP: usize = 4;
/// Activations multiplied with the same unpacked weights.
const TOKENS: usize = 4;

/// A matrix of 4-bit weights, in tiles of [`ROWS`] rows by [`BLOCK`] columns.
pub(crate) struct Packed {
    n_rows: usize,
    n_columns: usize,
    /// Per tile: the rows' scales.
    scales: Vec<[f32; ROWS]>,
    /// Per tile: `[step % 4][row][weight]`, the low half of a byte for the first four steps, the high half for the others.
    weights: Vec<[u8; ROWS * BLOCK / 2]>,
}

/// One block of activations of a token.
#[derive(Clone, Copy)]
struct Activations {
    /// Numbers from −127 to 127, those of a step together, the first in the lowest byte.
    steps: [i32; BLOCK / STEP],
    scale: f32,
    /// The sum of the numbers, times 8: what weights are stored too high by.
    excess: i32,
}

impl Packed {
    /// Takes the rows of a Q4_0 tensor, `[n_rows, n_columns]`, as they stand in a file. `None` where its size does not fit.
    pub(crate) fn new(bytes: &[u8], n_rows: usize, n_columns: usize) -> Option<Self> {
        let n_blocks = n_columns / BLOCK;
        let fits = n_rows.is_multiple_of(ROWS)
            && n_columns.is_multiple_of(BLOCK)
            && bytes.len() == n_rows * n_blocks * BLOCK_BYTES;
        if !fits {
            return None;
        }
        let n_tiles = n_rows / ROWS * n_blocks;
        let mut packed = Self {
            n_rows,
            n_columns,
            scales: vec![[0.0; ROWS]; n_tiles],
            weights: vec![[0; ROWS * BLOCK / 2]; n_tiles],
        };
        for (position, block) in bytes.chunks_exact(BLOCK_BYTES).enumerate() {
            let (row, column) = (position / n_blocks, position % n_blocks);
            let tile = row / ROWS * n_blocks + column;
            packed.scales[tile][row % ROWS] = half::f16::from_le_bytes([block[0], block[1]]).to_f32();
            // In the file the low halves are the first 16 weights and the high halves the others: steps 0–3 and 4–7.
            for (index, both) in block[2..].iter().enumerate() {
                let (step, weight) = (index / STEP, index % STEP);
                packed.weights[tile][(step * ROWS + row % ROWS) * STEP + weight] = *both;
            }
        }
        Some(packed)
    }

    /// `input` is `[n_tokens, n_columns]`, the answer `[n_tokens, n_rows]`: each token with each row, plus the row's `bias`.
    #[inline(always)]
    pub(crate) fn product(&self, input: &[f32], bias: &[f32]) -> Vec<f32> {
        self.product_with(input, bias, strip, strip)
    }

    /// [`Packed::product`] for processors with AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    pub(crate) fn product_avx2(&self, input: &[f32], bias: &[f32]) -> Vec<f32> {
        self.product_with(input, bias, |strip, bias| avx2::strip(strip, bias), |strip, bias| avx2::strip(strip, bias))
    }

    /// Tile by tile, some tokens together.
    #[inline(always)]
    fn product_with(
        &self,
        input: &[f32],
        bias: &[f32],
        several: impl Fn(Strip<'_, TOKENS>, &[f32; ROWS]) -> [[f32; ROWS]; TOKENS],
        single: impl Fn(Strip<'_, 1>, &[f32; ROWS]) -> [[f32; ROWS]; 1],
    ) -> Vec<f32> {
        let n_blocks = self.n_columns / BLOCK;
        let activations = quantized(input);
        let mut output = vec![0.0; input.len() / self.n_columns * self.n_rows];
        let n_rows = self.n_rows;
        for (first, bias) in (0..n_rows).step_by(ROWS).zip(bias.as_chunks::<ROWS>().0) {
            let tiles = first / ROWS * n_blocks..(first / ROWS + 1) * n_blocks;
            let (scales, weights) = (&self.scales[tiles.clone()], &self.weights[tiles]);
            let (groups, rest) =
                activations.as_slice().split_at(activations.len() / n_blocks / TOKENS * TOKENS * n_blocks);
            let mut rows = output.chunks_exact_mut(n_rows).map(|token| &mut token[first..first + ROWS]);
            for group in groups.chunks_exact(TOKENS * n_blocks) {
                let tokens = std::array::from_fn(|token| &group[token * n_blocks..][..n_blocks]);
                for sums in several(Strip { scales, weights, tokens }, bias) {
                    rows.next().map(|row| row.copy_from_slice(&sums)).unwrap_or_default();
                }
            }
            for token in rest.chunks_exact(n_blocks) {
                let [sums] = single(Strip { scales, weights, tokens: [token] }, bias);
                rows.next().map(|row| row.copy_from_slice(&sums)).unwrap_or_default();
            }
        }
        output
    }
}

/// [`ROWS`] rows, block by block, and the blocks of `N` tokens.
#[derive(Clone, Copy)]
struct Strip<'a, const N: usize> {
    scales: &'a [[f32; ROWS]],
    weights: &'a [[u8; ROWS * BLOCK / 2]],
    tokens: [&'a [Activations]; N],
}

/// The sums of a strip in plain numbers.
#[inline(always)]
fn strip<const N: usize>(strip: Strip<'_, N>, bias: &[f32; ROWS]) -> [[f32; ROWS]; N] {
    let mut sums = [*bias; N];
    for (block, (scales, weights)) in strip.scales.iter().zip(strip.weights).enumerate() {
        for (sums, blocks) in sums.iter_mut().zip(strip.tokens) {
            let activations = &blocks[block];
            let mut dots = [-activations.excess; ROWS];
            let (low, high) = activations.steps.split_at(BLOCK / STEP / 2);
            for (step, rows) in weights.as_chunks::<{ ROWS * STEP }>().0.iter().enumerate() {
                let [low, high] = [low[step], high[step]].map(i32::to_le_bytes);
                for (dot, row) in dots.iter_mut().zip(rows.as_chunks::<STEP>().0) {
                    for weight in 0..STEP {
                        *dot += i32::from(row[weight] & 0x0f) * i32::from(low[weight].cast_signed());
                        *dot += i32::from(row[weight] >> 4) * i32::from(high[weight].cast_signed());
                    }
                }
            }
            for ((sum, dot), scale) in sums.iter_mut().zip(dots).zip(scales) {
                *sum += scale * activations.scale * dot as f32;
            }
        }
    }
    sums
}

/// The 32 weights of a block as it stands in a file.
pub(crate) fn unpack(block: &[u8; BLOCK_BYTES]) -> [f32; BLOCK] {
    let [low, high, halves @ ..] = block;
    let scale = half::f16::from_le_bytes([*low, *high]).to_f32();
    std::array::from_fn(|index| {
        let both = halves[index % (BLOCK / 2)];
        let weight = if index < BLOCK / 2 { both & 0x0f } else { both >> 4 };
        (f32::from(weight) - 8.0) * scale
    })
}

/// Activations as 8-bit numbers with a scale for each block. Always inlined, so that it is compiled for what calls it.
#[inline(always)]
fn quantized(input: &[f32]) -> Vec<Activations> {
    let mut blocks = Vec::with_capacity(input.len() / BLOCK);
    for block in input.as_chunks::<BLOCK>().0 {
        let mut largest = 0.0_f32;
        for value in block {
            largest = largest.max(value.abs());
        }
        let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
        let mut values = [0; BLOCK];
        let mut excess = 0;
        for (to, from) in values.iter_mut().zip(block) {
            *to = whole(from * inverse);
            excess += *to * 8;
        }
        let mut steps = [0; BLOCK / STEP];
        for (step, values) in steps.iter_mut().zip(values.as_chunks::<STEP>().0) {
            let [a, b, c, d] = values.map(|value| value & 0xff);
            *step = a | b << 8 | c << 16 | d << 24;
        }
        blocks.push(Activations { steps, scale: largest / 127.0, excess });
    }
    blocks
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256, __m256i, _mm256_add_epi16, _mm256_and_si256, _mm256_cvtepi32_ps, _mm256_fmadd_ps, _mm256_loadu_ps,
        _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_mul_ps, _mm256_set1_epi8,
        _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setzero_si256, _mm256_srli_epi16,
        _mm256_storeu_ps, _mm256_sub_epi32,
    };

    use super::{BLOCK, ROWS, STEP, Strip};

    /// The sums of a strip.
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn strip<const N: usize>(strip: Strip<'_, N>, bias: &[f32; ROWS]) -> [[f32; ROWS]; N] {
        let low = _mm256_set1_epi8(0x0f);
        let ones = _mm256_set1_epi16(1);
        let mut sums: [__m256; N] = [load(bias); N];
        for (block, (scales, weights)) in strip.scales.iter().zip(strip.weights).enumerate() {
            let mut steps = [_mm256_setzero_si256(); BLOCK / STEP];
            for (step, bytes) in weights.as_chunks::<32>().0.iter().enumerate() {
                // SAFETY: 32 bytes are read of an array of 32.
                let both = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast::<__m256i>()) };
                steps[step] = _mm256_and_si256(both, low);
                steps[step + 4] = _mm256_and_si256(_mm256_srli_epi16::<4>(both), low);
            }
            let scales = load(scales);
            for (sum, blocks) in sums.iter_mut().zip(strip.tokens) {
                let activations = &blocks[block];
                // Two products of at most 15 × 127 in each of 8 steps: 30,480 fits 16 bits.
                let mut dots = _mm256_setzero_si256();
                for (weights, values) in steps.iter().zip(activations.steps) {
                    dots = _mm256_add_epi16(dots, _mm256_maddubs_epi16(*weights, _mm256_set1_epi32(values)));
                }
                let dots = _mm256_sub_epi32(_mm256_madd_epi16(dots, ones), _mm256_set1_epi32(activations.excess));
                let scale = _mm256_mul_ps(scales, _mm256_set1_ps(activations.scale));
                *sum = _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(dots), *sum);
            }
        }
        let mut output = [[0.0; ROWS]; N];
        for (to, from) in output.iter_mut().zip(sums) {
            // SAFETY: 8 numbers are written to an array of 8.
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), from) };
        }
        output
    }

    #[target_feature(enable = "avx2,fma")]
    fn load(numbers: &[f32; ROWS]) -> __m256 {
        // SAFETY: 8 numbers are read of an array of 8.
        unsafe { _mm256_loadu_ps(numbers.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers between −1 and 1 that look like chance.
    fn numbers(n: usize) -> Vec<f32> {
        (0_u32..).map(|i| f32::from((i.wrapping_mul(2_654_435_761) >> 16) as u16) / 32_768.0 - 1.0).take(n).collect()
    }

    /// The product as this processor does it best.
    fn fast(packed: &Packed, input: &[f32], bias: &[f32]) -> Vec<f32> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has what the function is compiled for.
            return unsafe { packed.product_avx2(input, bias) };
        }
        packed.product(input, bias)
    }

    /// A matrix in the file's form, and its numbers.
    fn matrix(n_rows: usize, n_columns: usize) -> (Vec<u8>, Vec<f32>) {
        let (mut bytes, mut plain) = (Vec::new(), Vec::new());
        for (index, block) in numbers(n_rows * n_columns).chunks(BLOCK).enumerate() {
            let scale = half::f16::from_f32(0.01 * (index % 7 + 1) as f32);
            let weights: Vec<u8> =
                block.iter().map(|x| whole(x * 7.5 + 7.5).cast_unsigned().to_le_bytes()[0]).collect();
            bytes.extend(scale.to_le_bytes());
            bytes.extend((0..BLOCK / 2).map(|i| weights[i] | weights[i + BLOCK / 2] << 4));
            plain.extend(weights.iter().map(|weight| (f32::from(*weight) - 8.0) * scale.to_f32()));
        }
        (bytes, plain)
    }

    #[test]
    fn products_are_those_of_plain_numbers_for_any_number_of_tokens() {
        for (n_rows, n_columns) in [(8, 32), (384, 384), (16, 1536)] {
            let (bytes, plain) = matrix(n_rows, n_columns);
            let packed = Packed::new(&bytes, n_rows, n_columns).unwrap();
            let bias = numbers(n_rows);
            for n_tokens in [1, 3, 4, 5, 9] {
                let input = numbers(n_tokens * n_columns);
                let (fast, twin) = (fast(&packed, &input, &bias), packed.product(&input, &bias));
                assert_eq!(fast.len(), n_tokens * n_rows);
                for (position, (fast, twin)) in fast.iter().zip(&twin).enumerate() {
                    let (token, row) = (position / n_rows, position % n_rows);
                    assert!((fast - twin).abs() <= 1e-4 * twin.abs().max(1.0), "{token} {row}: {fast} {twin}");
                    let exact: f32 =
                        (0..n_columns).map(|k| input[token * n_columns + k] * plain[row * n_columns + k]).sum();
                    // Half a step of the activations (1/254) in each of the products, which add up like chance.
                    let off = 0.56 / 254.0 * (n_columns as f32).sqrt() * 6.0;
                    assert!((fast - bias[row] - exact).abs() < off, "{token} {row}: {fast} {exact}");
                }
            }
        }
    }

    #[test]
    fn the_largest_products_do_not_overflow() {
        // All weights 15 (stored; 7 in truth), all activations the same.
        let bytes: Vec<u8> = [half::f16::ONE.to_le_bytes().to_vec(), vec![0xff; 16]].concat().repeat(8);
        let packed = Packed::new(&bytes, 8, 32).unwrap();
        for value in [1.0, -1.0] {
            let product = fast(&packed, &[value; 32], &[0.0; 8]);
            assert!(product.iter().all(|x| (x - value * 7.0 * 32.0).abs() < 1e-3), "{product:?}");
        }
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused_and_zeros_stay_zeros() {
        assert!(Packed::new(&[0; 18], 1, 32).is_none());
        assert!(Packed::new(&[0; 18 * 8 - 1], 8, 32).is_none());
        let packed = Packed::new(&[0x11; 18 * 8], 8, 32).unwrap();
        assert_eq!(fast(&packed, &[0.0; 32], &[0.5; 8]), [0.5; 8]);
    }
}
