//! Counts of many texts that repeat: each is counted once, on all cores, and a list of them from the counts of its parts,
//! exactly. Must not know what the texts are.

use std::{
    collections::HashMap,
    num::NonZero,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use indexmap::IndexSet;
use sha2::{Digest as _, Sha256};

use super::Tokenizer;

/// Of a text: half of its SHA-256.
type Key = [u8; 16];

/// Counts by one tokenizer, each distinct text once.
#[derive(Debug)]
pub struct Counter {
    tokenizer: Tokenizer,
    known: HashMap<Key, usize>,
    /// Beginnings and ends of texts, by number; there are few different ones.
    ends: IndexSet<String>,
    /// Tokens that a comma adds, by the end before it and the beginning behind it; fewer than none where they merge.
    joints: HashMap<(usize, usize), isize>,
}

/// A counted text that is to stand in lists.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Of the text alone.
    pub tokens: usize,
    /// Of the text.
    pub bytes: usize,
    head: usize,
    tail: usize,
}

/// Texts that one core takes at a time.
const BATCH: usize = 16;

impl Counter {
    /// Has counted nothing yet.
    pub fn new(tokenizer: Tokenizer) -> Self {
        Self { tokenizer, known: HashMap::new(), ends: IndexSet::new(), joints: HashMap::new() }
    }

    /// Which tokenizer counts.
    pub fn tokenizer(&self) -> Tokenizer {
        self.tokenizer
    }

    /// Counts `texts` on all cores, so that counting them later costs nothing. `on_progress` is told now and then how many
    /// are done, and of how many.
    pub fn learn(&mut self, texts: &[&str], on_progress: &(dyn Fn(usize, usize) + Sync)) {
        let mut new: HashMap<Key, &str> = HashMap::new();
        for text in texts {
            let key = key(text);
            if !self.known.contains_key(&key) {
                new.insert(key, text);
            }
        }
        let new: Vec<(Key, &str)> = new.into_iter().collect();
        let n_threads = thread::available_parallelism().map_or(1, NonZero::get).min(new.len().div_ceil(BATCH));
        let (next, n_done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let counted = Mutex::new(Vec::with_capacity(new.len()));
        let work = || {
            loop {
                let start = next.fetch_add(BATCH, Ordering::Relaxed);
                let Some(batch) = new.get(start..new.len().min(start + BATCH)).filter(|batch| !batch.is_empty()) else {
                    return;
                };
                let counts: Vec<(Key, usize)> =
                    batch.iter().map(|(key, text)| (*key, self.tokenizer.count(text))).collect();
                counted.lock().unwrap_or_else(PoisonError::into_inner).extend(counts);
                on_progress(n_done.fetch_add(batch.len(), Ordering::Relaxed) + batch.len(), new.len());
            }
        };
        thread::scope(|scope| {
            for _ in 1..n_threads {
                scope.spawn(work);
            }
            work();
        });
        self.known.extend(counted.into_inner().unwrap_or_else(PoisonError::into_inner));
    }

    /// Tokens of `text`.
    pub fn count(&mut self, text: &str) -> usize {
        let tokenizer = self.tokenizer;
        *self.known.entry(key(text)).or_insert_with(|| tokenizer.count(text))
    }

    /// Counts a text that is to stand in lists.
    pub fn part(&mut self, text: &str) -> Part {
        let (head, tail) = ends(text);
        Part { tokens: self.count(text), bytes: text.len(), head: self.end(head), tail: self.end(tail) }
    }

    /// Tokens of `parts` with commas between them, as in a JSON array without its brackets: what counting the whole text
    /// gives, though only what stands around the commas is counted anew.
    pub fn join(&mut self, parts: impl IntoIterator<Item = Part>) -> usize {
        let (mut n_tokens, mut n_bytes, mut before) = (0_usize, 0, None);
        for part in parts {
            if let Some(tail) = before.replace(part.tail) {
                n_tokens = n_tokens.saturating_add_signed(self.joint(tail, part.head));
                n_bytes += 1;
            }
            n_tokens += part.tokens;
            n_bytes += part.bytes;
        }
        if self.tokenizer == Tokenizer::Bytes { Tokenizer::Bytes.count_bytes(n_bytes) } else { n_tokens }
    }

    /// As [`Counter::join`], of texts.
    pub fn count_list(&mut self, texts: &[&str]) -> usize {
        let parts: Vec<Part> = texts.iter().map(|text| self.part(text)).collect();
        self.join(parts)
    }

    /// What a comma between two texts adds: nothing or less where it merges with what stands around it.
    fn joint(&mut self, tail: usize, head: usize) -> isize {
        if let Some(known) = self.joints.get(&(tail, head)) {
            return *known;
        }
        let text = |number: usize| self.ends.get_index(number).map_or("", String::as_str);
        let (tail_text, head_text) = (text(tail), text(head));
        let count = |text: &str| self.tokenizer.count(text);
        let apart = count(tail_text) + count(head_text);
        let together = count(&format!("{tail_text},{head_text}"));
        let added = isize::try_from(together).unwrap_or_default() - isize::try_from(apart).unwrap_or_default();
        self.joints.insert((tail, head), added);
        added
    }

    fn end(&mut self, text: &str) -> usize {
        match self.ends.get_index_of(text) {
            Some(known) => known,
            None => self.ends.insert_full(text.to_owned()).0,
        }
    }
}

fn key(text: &str) -> Key {
    let mut key = Key::default();
    let digest = Sha256::digest(text.as_bytes());
    key.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
    key
}

/// The beginning of `text` up to the first place where it can be cut without changing any token, and its end from the last
/// such place on; the whole text where there is none.
///
/// Both tokenizers first split a text into pieces by a regular expression, and no piece with a letter or digit in it goes on
/// into punctuation, but for an apostrophe.
fn ends(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let is_cut = |at: &usize| {
        let (Some(before), Some(after)) = (bytes.get(at.wrapping_sub(1)), bytes.get(*at)) else { return false };
        before.is_ascii_alphanumeric() && after.is_ascii_punctuation() && *after != b'\''
    };
    let first = (1..bytes.len()).find(is_cut).and_then(|at| text.get(..at));
    let last = (1..bytes.len()).rev().find(is_cut).and_then(|at| text.get(at..));
    (first.unwrap_or(text), last.unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_is_counted_once_and_as_the_tokenizer_counts_it() {
        let mut counter = Counter::new(Tokenizer::O200kBase);
        let texts: Vec<String> = (0..100).map(|number| format!("{{\"name\":\"tool {}\"}}", number % 40)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let last = AtomicUsize::new(0);
        counter.learn(&texts, &|n_done, n_all| {
            assert_eq!(n_all, 40);
            last.fetch_max(n_done, Ordering::Relaxed);
        });
        assert_eq!((last.into_inner(), counter.known.len()), (40, 40));
        assert_eq!(counter.count(texts[7]), Tokenizer::O200kBase.count(texts[7]));
        assert_eq!(counter.known.len(), 40);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn a_list_has_the_tokens_of_the_joined_text(
            parts in prop::collection::vec(r#"\{"[a-z]{1,9}": ?("[a-zA-Z0-9 .'čř→😀…日本-]{0,30}"|[0-9]{1,12}|\{\}|\[" ?[a-z'](",")?"?\])\}{1,3}"#, 0..6)
        ) {
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            for tokenizer in [Tokenizer::O200kBase, Tokenizer::Cl100kBase, Tokenizer::Bytes] {
                prop_assert_eq!(Counter::new(tokenizer).count_list(&parts), tokenizer.count(&parts.join(",")));
            }
        }
    }
}
