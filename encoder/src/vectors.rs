//! What a text is to the search: a vector for each of its word pieces, in 8-bit numbers, and how two texts compare.
#![allow(unsafe_code, reason = "a function compiled for AVX2 is entered, after the processor was asked")]

#[cfg(target_arch = "x86_64")]
use crate::products::avx2;
use crate::products::{TOGETHER, products};

/// Vectors of a text's word pieces, in their order, each of length 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vectors {
    /// How rare each piece is: the negative logarithm of its share among all pieces of texts.
    rarities: Vec<f32>,
    /// Of each vector, what its numbers are multiples of.
    steps: Vec<f32>,
    /// `[n_pieces, n_dimensions]`.
    numbers: Vec<i8>,
}

impl Vectors {
    /// Takes vectors of any length, `[n_pieces, n_dimensions]`.
    pub fn new(rarities: Vec<f32>, vectors: &[f32]) -> Self {
        let n_dimensions = vectors.len().checked_div(rarities.len()).unwrap_or_default();
        let (mut steps, mut numbers) = (Vec::with_capacity(rarities.len()), Vec::with_capacity(vectors.len()));
        for vector in vectors.chunks_exact(n_dimensions.max(1)) {
            let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
            let largest = vector.iter().fold(f32::MIN_POSITIVE, |largest, number| largest.max(number.abs()));
            steps.push(largest / length / 127.0);
            #[expect(clippy::cast_possible_truncation, reason = "within ±127, as the largest is 127")]
            numbers.extend(vector.iter().map(|number| (number / largest * 127.0).round() as i8));
        }
        Self { rarities, steps, numbers }
    }

    /// How rare each piece is, in their order.
    pub fn rarities(&self) -> &[f32] {
        &self.rarities
    }

    /// The first `n` pieces' vectors.
    #[must_use]
    pub fn first(mut self, n: usize) -> Self {
        let n_dimensions = self.numbers.len().checked_div(self.steps.len()).unwrap_or_default();
        self.rarities.truncate(n);
        self.steps.truncate(n);
        self.numbers.truncate(n * n_dimensions);
        self
    }

    /// The mean of all vectors as the only one; none of none.
    #[must_use]
    pub fn mean(&self) -> Self {
        let rarity = self.rarities.iter().sum::<f32>() / self.rarities.len().max(1) as f32;
        if self.steps.is_empty() { Self::default() } else { Self::new(vec![rarity], &self.sum()) }
    }

    /// All vectors together, `[n_dimensions]`; empty of none.
    pub fn sum(&self) -> Vec<f32> {
        let n_dimensions = self.numbers.len().checked_div(self.steps.len()).unwrap_or_default();
        let mut sum = vec![0.0; n_dimensions];
        for (vector, step) in self.numbers.chunks_exact(n_dimensions.max(1)).zip(&self.steps) {
            for (sum, number) in sum.iter_mut().zip(vector) {
                *sum += f32::from(*number) * step;
            }
        }
        sum
    }

    /// For each piece of `self` the product with that piece of `passage` which is likest, −1 to 1; `None` of an empty passage,
    /// or one of another encoder.
    pub fn likeness(&self, passage: &Self) -> Option<Vec<f32>> {
        let n_dimensions = self.numbers.len().checked_div(self.steps.len())?;
        if passage.steps.is_empty() || passage.numbers.len() != passage.steps.len() * n_dimensions {
            return None;
        }
        #[cfg(target_arch = "x86_64")]
        if n_dimensions.is_multiple_of(avx2::WIDTH) && is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has what the function is compiled for.
            return Some(unsafe { self.likeness_avx2(passage, n_dimensions) });
        }
        Some(self.likeness_with(passage, n_dimensions, products))
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn likeness_avx2(&self, passage: &Self, n_dimensions: usize) -> Vec<f32> {
        self.likeness_with(passage, n_dimensions, |own, theirs| avx2::products(own, theirs))
    }

    #[inline(always)]
    fn likeness_with(
        &self,
        passage: &Self,
        n_dimensions: usize,
        products: impl Fn(&[i16], &[i8]) -> [i32; TOGETHER],
    ) -> Vec<f32> {
        let n_padded = self.steps.len().next_multiple_of(TOGETHER);
        let mut own: Vec<i16> = self.numbers.iter().map(|number| i16::from(*number)).collect();
        own.resize(n_padded * n_dimensions, 0);
        let mut best = vec![f32::MIN; n_padded];
        for (theirs, step) in passage.numbers.chunks_exact(n_dimensions).zip(&passage.steps) {
            for (own, best) in own.chunks_exact(TOGETHER * n_dimensions).zip(best.chunks_exact_mut(TOGETHER)) {
                for (best, product) in best.iter_mut().zip(products(own, theirs)) {
                    *best = best.max(product as f32 * step);
                }
            }
        }
        best.iter().zip(&self.steps).map(|(best, step)| best * step).collect()
    }

    /// As bytes, for files: the numbers of pieces and of dimensions, then everything little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let n_dimensions = self.numbers.len().checked_div(self.steps.len()).unwrap_or_default();
        let sizes = [self.steps.len(), n_dimensions].map(|n| u32::try_from(n).unwrap_or_default().to_le_bytes());
        let floats = self.rarities.iter().chain(&self.steps).flat_map(|number| number.to_le_bytes());
        let numbers = self.numbers.iter().map(|number| number.cast_unsigned());
        sizes.into_iter().flatten().chain(floats).chain(numbers).collect()
    }

    /// The other way round; `None` of something else.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (n, rest) = bytes.split_first_chunk()?;
        let (n_dimensions, rest) = rest.split_first_chunk()?;
        let [n, n_dimensions] = [u32::from_le_bytes(*n) as usize, u32::from_le_bytes(*n_dimensions) as usize];
        let (floats, numbers) = rest.split_at_checked(n.checked_mul(8)?)?;
        let mut floats = floats.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        let rarities: Vec<f32> = floats.by_ref().take(n).collect();
        let steps: Vec<f32> = floats.collect();
        let is_whole = n.checked_mul(n_dimensions) == Some(numbers.len());
        let numbers = numbers.iter().map(|number| number.cast_signed()).collect();
        is_whole.then_some(Self { rarities, steps, numbers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors(of: &[[f32; 4]]) -> Vectors {
        Vectors::new(vec![5.0; of.len()], of.as_flattened())
    }

    #[test]
    fn likeness_is_the_largest_product_of_directions() {
        let passage = vectors(&[[1.0, 0.0, 0.0, 0.0], [0.0, 3.0, 4.0, 0.0]]);
        let likeness =
            vectors(&[[2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 9.0, 0.0], [0.0, -1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
                .likeness(&passage)
                .unwrap();
        for (found, expected) in likeness.iter().zip([1.0, 0.8, 0.0, std::f32::consts::FRAC_1_SQRT_2]) {
            assert!((found - expected).abs() < 0.01, "{likeness:?}");
        }
        assert_eq!(passage.likeness(&Vectors::default()), None);
        assert_eq!(passage.likeness(&Vectors::new(vec![1.0], &[1.0; 5])), None, "of another size");
        assert_eq!(Vectors::default().likeness(&passage), None);
    }

    #[test]
    fn the_mean_has_the_direction_of_the_sum() {
        let mean = vectors(&[[1.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]]).mean();
        let likeness = mean.likeness(&vectors(&[[1.0, 1.0, 0.0, 0.0]])).unwrap();
        assert!((likeness[0] - 1.0).abs() < 0.01, "{likeness:?}");
        assert_eq!(Vectors::default().mean(), Vectors::default());
        let both = vectors(&[[1.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]]);
        assert_eq!(both.clone().first(1), vectors(&[[1.0, 0.0, 0.0, 0.0]]));
        assert_eq!(both.clone().first(9), both);
    }

    #[test]
    fn bytes_come_back_as_they_were_and_others_are_refused() {
        for of in [&[][..], &[[0.1, -0.2, 0.3, 1.0]], &[[1.0; 4], [-2.0, 0.5, 0.0, 0.0]]] {
            let vectors = vectors(of);
            let bytes = vectors.to_bytes();
            assert_eq!(Vectors::parse(&bytes), Some(vectors));
            assert_eq!(Vectors::parse(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(Vectors::parse(&[0xff; 20]), None);
    }
}
