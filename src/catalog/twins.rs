//! Which of many sets of words are nearly the same, without comparing all with all.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap},
};

use crate::model::limits::{TWIN_CANDIDATES, TWIN_SHARE, TWINS_COMPARED};

/// Two sets that are nearly the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Twins {
    pub(super) first: usize,
    pub(super) second: usize,
    /// Words that both have, of those that either has.
    pub(super) share: f64,
}

/// For each set the one before it that is most like it, where they are nearly the same; of hundreds that are, one of the
/// likest. No set has a word twice.
///
/// **Source:** Bayardo, Ma, Srikant, "Scaling up all pairs similarity search" (WWW 2007): two sets that share most of
/// their words share one of their rarest, so only those are looked up. Empty sets are like nothing.
pub(super) fn twins(sets: &[Vec<String>]) -> Vec<Twins> {
    let sets = by_rarity(sets);
    let mut known: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut found = Vec::new();
    // For each set the last one that was compared with it.
    let mut compared = vec![usize::MAX; sets.len()];
    for (second, set) in sets.iter().enumerate() {
        let rarest = set.get(..set.len() - least(set.len()) + usize::from(!set.is_empty())).unwrap_or_default();
        let mut nearest: Option<Twins> = None;
        let (mut n_compared, mut n_more) = (0, 0);
        for first in rarest.iter().filter_map(|word| known.get(word)).flatten().copied() {
            if n_compared == TWIN_CANDIDATES || n_more == TWINS_COMPARED {
                break;
            }
            if compared.get(first) == Some(&second) {
                continue;
            }
            let (Some(other), Some(mark)) = (sets.get(first), compared.get_mut(first)) else { continue };
            *mark = second;
            n_compared += 1;
            n_more += usize::from(nearest.is_some());
            let (short, long) = (set.len().min(other.len()), set.len().max(other.len()));
            let share = if short >= least(long) { share(set, other) } else { 0.0 };
            let is_nearer = nearest.is_none_or(|known| (share, known.first) > (known.share, first));
            if share >= TWIN_SHARE && is_nearer {
                nearest = Some(Twins { first, second, share });
            }
        }
        found.extend(nearest);
        for word in rarest {
            known.entry(*word).or_default().push(second);
        }
    }
    found
}

/// How many words a set of this many must share at least.
fn least(n_words: usize) -> usize {
    // In whole numbers: 0.6 of 5 words is 3, not 3.0000000000000004.
    let is_enough = |shared: &usize| *shared as f64 >= TWIN_SHARE * n_words as f64 - 1e-9;
    (n_words / 2..=n_words).find(is_enough).unwrap_or(n_words)
}

/// The words as numbers, rare ones small, each set sorted.
fn by_rarity(sets: &[Vec<String>]) -> Vec<Vec<usize>> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for word in sets.iter().flatten() {
        *counts.entry(word).or_default() += 1;
    }
    let mut words: Vec<(usize, &str)> = counts.into_iter().map(|(word, count)| (count, word)).collect();
    words.sort_unstable();
    let numbers: HashMap<&str, usize> = words.iter().enumerate().map(|(number, (_, word))| (*word, number)).collect();
    let numbered = |set: &Vec<String>| {
        let mut set: Vec<usize> = set.iter().filter_map(|word| numbers.get(word.as_str()).copied()).collect();
        set.sort_unstable();
        set
    };
    sets.iter().map(numbered).collect()
}

fn share(a: &[usize], b: &[usize]) -> f64 {
    let (mut left, mut right, mut shared) = (a.iter().peekable(), b.iter().peekable(), 0_usize);
    while let (Some(x), Some(y)) = (left.peek(), right.peek()) {
        match x.cmp(y) {
            Ordering::Less => {}
            Ordering::Greater => {
                right.next();
                continue;
            }
            Ordering::Equal => {
                shared += 1;
                right.next();
            }
        }
        left.next();
    }
    shared as f64 / (a.len() + b.len() - shared).max(1) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(words: &str) -> Vec<String> {
        let mut words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        words.sort();
        words.dedup();
        words
    }

    #[test]
    fn each_names_the_nearest_before_it() {
        let sets = ["a b c d e", "x y z", "a b c d f", "a b c d e", "", "", "a"].map(set);
        let found: Vec<_> = twins(&sets).into_iter().map(|twins| (twins.second, twins.first, twins.share)).collect();
        assert_eq!(found, [(2, 0, 4.0 / 6.0), (3, 0, 1.0)]);
    }

    proptest! {
        #[test]
        fn they_are_those_that_comparing_all_with_all_finds(
            words in proptest::collection::vec(proptest::collection::btree_set(0_usize..12, 0..9), 0..30)
        ) {
            let sets: Vec<Vec<String>> =
                words.iter().map(|set| set.iter().map(|word| format!("{word:02}")).collect()).collect();
            let plain: Vec<Vec<usize>> = words.iter().map(|set| set.iter().copied().collect()).collect();
            let nearest = |second: usize| {
                let like = (0..second).map(|first| share(&plain[first], &plain[second]));
                like.fold(0.0, f64::max)
            };
            let expected: Vec<(usize, f64)> =
                (0..sets.len()).map(|second| (second, nearest(second))).filter(|(_, share)| *share >= TWIN_SHARE).collect();
            let found: Vec<(usize, f64)> = twins(&sets).iter().map(|twins| (twins.second, twins.share)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
