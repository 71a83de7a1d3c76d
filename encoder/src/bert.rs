//! The layers: word and place, then twelve times attention and a wider layer.
//! **Source:** BERT (Devlin et al. 2019).
//!
//! Functions that work on many numbers are loops that a compiler does for many numbers together, and are always inlined, so
//! that they are compiled for the processor that is there.
#![allow(unsafe_code, reason = "a function compiled for AVX2 is entered, after the processor was asked")]

use std::ops::Range;

use crate::{
    Error,
    gguf::Gguf,
    math::{add, add_scaled, gelu, normalize, soften},
    q4::{BLOCK, BLOCK_BYTES, Packed, unpack},
};

/// A loaded model.
pub(crate) struct Bert {
    /// Where the rows of the word table lie in the file, which is most of it and never needed as a whole.
    pub(crate) words: Range<usize>,
    /// `[n_places, n_dimensions]`.
    places: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
    n_heads: usize,
    n_dimensions: usize,
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    output_norm: Norm,
    up: Linear,
    down: Linear,
    norm: Norm,
}

/// A product with weights, and what is added to it.
struct Linear {
    weights: Packed,
    bias: Vec<f32>,
}

/// Mean 0 and deviation 1 for each token, then a weight and a bias for each dimension.
struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

impl Norm {
    #[inline(always)]
    fn apply(&self, x: &mut [f32]) {
        for token in x.chunks_exact_mut(self.weight.len()) {
            normalize(token, &self.weight, &self.bias, self.epsilon);
        }
    }
}

/// Takes a model out of a file.
struct Reader<'a> {
    gguf: &'a Gguf<'a>,
    epsilon: f32,
}

impl Reader<'_> {
    fn linear(&self, name: &str, [n_rows, n_columns]: [usize; 2]) -> Result<Linear, Error> {
        let (of_rows, of_columns, bytes) = self.gguf.matrix(&format!("{name}.weight"))?;
        let weights = Packed::new(bytes, n_rows, n_columns).filter(|_| (of_rows, of_columns) == (n_rows, n_columns));
        let weights = weights.ok_or_else(|| Error(format!("`{name}` has an odd size")))?;
        Ok(Linear { weights, bias: self.floats(&format!("{name}.bias"), n_rows)? })
    }

    fn norm(&self, name: &str, n: usize) -> Result<Norm, Error> {
        let part = |part| self.floats(&format!("{name}.{part}"), n);
        Ok(Norm { weight: part("weight")?, bias: part("bias")?, epsilon: self.epsilon })
    }

    fn floats(&self, name: &str, n: usize) -> Result<Vec<f32>, Error> {
        let floats = self.gguf.floats(name)?;
        if floats.len() == n { Ok(floats) } else { Err(Error(format!("`{name}` has an odd size"))) }
    }

    fn layer(&self, index: usize, n: usize, n_wide: usize) -> Result<Layer, Error> {
        let linear = |name, shape| self.linear(&format!("blk.{index}.{name}"), shape);
        let norm = |name| self.norm(&format!("blk.{index}.{name}"), n);
        Ok(Layer {
            query: linear("attn_q", [n, n])?,
            key: linear("attn_k", [n, n])?,
            value: linear("attn_v", [n, n])?,
            output: linear("attn_output", [n, n])?,
            output_norm: norm("attn_output_norm")?,
            up: linear("ffn_up", [n_wide, n])?,
            down: linear("ffn_down", [n, n_wide])?,
            norm: norm("layer_output_norm")?,
        })
    }
}

impl Bert {
    /// Takes the weights out of a file.
    pub(crate) fn read(gguf: &Gguf<'_>) -> Result<Self, Error> {
        let reader = Reader { gguf, epsilon: gguf.number("bert.attention.layer_norm_epsilon")? };
        let count = |name: &str| gguf.whole(&format!("bert.{name}"));
        let (n, n_wide) = (count("embedding_length")?, count("feed_forward_length")?);
        let (_, of_columns, table) = gguf.matrix("token_embd.weight")?;
        let n_heads = count("attention.head_count")?;
        if of_columns != n || n == 0 || n_heads == 0 || n % n_heads != 0 {
            return Err(Error::new("its sizes do not fit each other"));
        }
        let start = table.as_ptr().addr() - gguf.bytes().as_ptr().addr();
        let mut places = reader.floats("position_embd.weight", count("context_length")? * n)?;
        // All texts are of the first kind.
        let kinds = gguf.floats("token_types.weight")?;
        places.chunks_exact_mut(n).for_each(|place| add(place, &kinds));
        let layers = (0..count("block_count")?).map(|index| reader.layer(index, n, n_wide));
        Ok(Self {
            words: start..start + table.len(),
            places,
            norm: reader.norm("token_embd_norm", n)?,
            layers: layers.collect::<Result<_, _>>()?,
            n_heads,
            n_dimensions: n,
        })
    }

    /// Numbers in a vector.
    pub(crate) fn n_dimensions(&self) -> usize {
        self.n_dimensions
    }

    /// Longest text.
    pub(crate) fn most_tokens(&self) -> usize {
        self.places.len() / self.n_dimensions
    }

    /// A vector for each token of all texts, `[n_tokens, n_dimensions]`. `file` is the one that this was read of.
    pub(crate) fn encode(&self, file: &[u8], texts: &[Vec<u32>]) -> Vec<f32> {
        let words = file.get(self.words.clone()).unwrap_or_default();
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has what the function is compiled for.
            return unsafe { self.encode_avx2(words, texts) };
        }
        self.encode_plain(words, texts)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn encode_avx2(&self, words: &[u8], texts: &[Vec<u32>]) -> Vec<f32> {
        self.encode_with(words, texts, |linear, x| linear.weights.product_avx2(x, &linear.bias))
    }

    /// The same for any processor.
    pub(crate) fn encode_plain(&self, words: &[u8], texts: &[Vec<u32>]) -> Vec<f32> {
        self.encode_with(words, texts, |linear, x| linear.weights.product(x, &linear.bias))
    }

    #[inline(always)]
    fn encode_with(&self, words: &[u8], texts: &[Vec<u32>], product: impl Fn(&Linear, &[f32]) -> Vec<f32>) -> Vec<f32> {
        let n = self.n_dimensions;
        let mut x: Vec<f32> = texts.iter().flatten().flat_map(|word| self.word(words, *word)).collect();
        let places = texts.iter().flat_map(|text| self.places.chunks_exact(n).take(text.len()));
        for (x, place) in x.chunks_exact_mut(n).zip(places) {
            add(x, place);
        }
        self.norm.apply(&mut x);
        for layer in &self.layers {
            let [query, key, value] = [&layer.query, &layer.key, &layer.value].map(|linear| product(linear, &x));
            let mut seen = vec![0.0; x.len()];
            let mut start = 0;
            for text in texts {
                // A token looks at those of its own text.
                let range = start..start + text.len() * n;
                start = range.end;
                self.attend([&query, &key, &value].map(|x| &x[range.clone()]), &mut seen[range]);
            }
            add(&mut x, &product(&layer.output, &seen));
            layer.output_norm.apply(&mut x);
            let mut wide = product(&layer.up, &x);
            gelu(&mut wide);
            add(&mut x, &product(&layer.down, &wide));
            layer.norm.apply(&mut x);
        }
        x
    }

    /// What the table says of a word.
    fn word<'a>(&self, table: &'a [u8], word: u32) -> impl Iterator<Item = f32> + use<'a> {
        let n_blocks = self.n_dimensions / BLOCK;
        table.as_chunks::<BLOCK_BYTES>().0.iter().skip(word as usize * n_blocks).take(n_blocks).flat_map(unpack)
    }

    /// One text: each token's mean of all values, by how much its query is like their keys; `[n_tokens, n_dimensions]` each.
    #[inline(always)]
    fn attend(&self, [query, key, value]: [&[f32]; 3], seen: &mut [f32]) {
        let n = self.n_dimensions;
        let width = n / self.n_heads;
        let scale = 1.0 / (width as f32).sqrt();
        let n_tokens = query.len() / n;
        let (mut keys, mut scores) = (vec![0.0; width * n_tokens], vec![0.0; n_tokens]);
        for head in (0..n).step_by(width) {
            // The keys by dimension, so that all tokens' scores grow together.
            for (token, key) in key.chunks_exact(n).enumerate() {
                for (dimension, number) in key[head..head + width].iter().enumerate() {
                    keys[dimension * n_tokens + token] = *number * scale;
                }
            }
            for (query, seen) in query.chunks_exact(n).zip(seen.chunks_exact_mut(n)) {
                scores.fill(0.0);
                for (number, keys) in query[head..head + width].iter().zip(keys.chunks_exact(n_tokens)) {
                    add_scaled(&mut scores, keys, *number);
                }
                soften(&mut scores);
                for (share, value) in scores.iter().zip(value.chunks_exact(n)) {
                    add_scaled(&mut seen[head..head + width], &value[head..head + width], *share);
                }
            }
        }
    }
}
