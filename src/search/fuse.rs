//! One ranking of what words and meaning say. Pure numbers.

use super::lexical::Words;

/// What the likeness to the first text of a passage counts beside that to the likest, and to the second.
const ABOUT: f32 = 0.5;
/// See [`ABOUT`].
const BODY: f32 = 0.3;
/// Word pieces that are less rare than this say next to nothing …
const COMMON_RARITY: f32 = 5.0;
/// … which is this much.
const COMMON: f32 = 0.05;
/// Word pieces of a query that count for an entry: of a task with many parts, those that it is for.
const PIECES: usize = 12;
/// What the better of both counts besides: who is sure by words or by meaning alone is not lost in the sum.
const BETTER: f32 = 0.6;
/// Entries whose likes are what was meant too …
const LIKED: usize = 10;
/// … and what that counts.
const LIKES: f32 = 0.3;

/// Who has this share of what a query's words say is meant, whatever they mean: a name, say.
const COVERED: f32 = 0.75;

/// Word pieces of a request as people type it.
const USUAL_PIECES: f32 = 8.0;

/// What a query's word piece counts.
pub(super) fn weight(rarity: f32) -> f32 {
    (rarity - COMMON_RARITY).max(COMMON)
}

/// What meaning says of all entries.
#[derive(Debug)]
pub(super) struct Meaning<'a> {
    /// Per entry; 0 is what the mean of them has.
    pub(super) scores: Vec<f32>,
    /// Word pieces of the query.
    n_pieces: usize,
    /// Per entry: where it lies, `[n_dimensions]`, of length 1, where that is known.
    directions: Vec<Option<&'a [f32]>>,
}

/// How like each entry is: `likeness` has for each entry the best products of the query's pieces with both of its texts, and
/// none where it is not known yet. A piece counts by how much likelier an entry is than others.
pub(super) fn meaning<'a>(
    weights: &[f32],
    likeness: &[Option<[Vec<f32>; 2]>],
    directions: Vec<Option<&'a [f32]>>,
) -> Meaning<'a> {
    let of = |[about, body]: &[Vec<f32>; 2]| -> Vec<f32> {
        about.iter().zip(body).map(|(about, body)| about.max(*body) + ABOUT * about + BODY * body).collect()
    };
    let likeness: Vec<Option<Vec<f32>>> = likeness.iter().map(|likeness| likeness.as_ref().map(of)).collect();
    let n_known = likeness.iter().flatten().count().max(1) as f32;
    let mut means = vec![0.0; weights.len()];
    for likeness in likeness.iter().flatten() {
        means.iter_mut().zip(likeness).for_each(|(mean, likeness)| *mean += likeness / n_known);
    }
    let score = |likeness: &Vec<f32>| {
        let beyond = |((weight, likeness), mean): ((&f32, &f32), &f32)| weight * (likeness - mean);
        let mut parts: Vec<f32> = weights.iter().zip(likeness).zip(&means).map(beyond).collect();
        parts.sort_by(|a, b| b.total_cmp(a));
        parts.iter().take(PIECES).sum::<f32>()
    };
    // What is not known is like the mean.
    let scores = likeness.iter().map(|likeness| likeness.as_ref().map_or(0.0, score)).collect();
    Meaning { scores, n_pieces: weights.len(), directions }
}

/// Whether likely no entry is what was asked for. A logistic regression on requests that no skill of the development set
/// answers, see the README.
pub(super) fn is_doubtful(meaning: &Meaning<'_>, words: &Words) -> bool {
    let best = |scores: &[f32]| scores.iter().copied().fold(0.0, f32::max);
    let covered = if words.most > 0.0 { best(&words.scores) / words.most } else { 0.0 };
    if covered >= COVERED {
        return false;
    }
    // A short query says less, so that less is to be expected.
    let share = (meaning.n_pieces as f32 / USUAL_PIECES).clamp(f32::MIN_POSITIVE, 1.0);
    let likest = (best(&meaning.scores) / share).max(0.5);
    // The bound was lowered from 1.05, so that 10 instead of 9 of the set's 12 are recognised.
    -1.82 * covered - 2.14 * words.known * covered - 4.08 * likest.ln() + 8.07 > 0.8
}

/// Both together, each by how far it is from its mean, the words by the share of them that is known; and then what is like
/// the best of that.
pub(super) fn fused(meaning: &Meaning<'_>, words: &Words, words_weight: f32) -> Vec<f32> {
    let weight = words_weight * words.known;
    let both = standard(&meaning.scores).into_iter().zip(standard(&words.scores));
    let sum = |(meaning, words): (f32, f32)| {
        let words = weight * words;
        meaning + words + BETTER * meaning.max(words)
    };
    let scores: Vec<f32> = both.map(sum).collect();
    let likes = standard(&likes(&scores, &meaning.directions));
    scores.iter().zip(likes).map(|(score, likes)| score + LIKES * likes).collect()
}

/// What the best hits have when a reranker has read them: from the worst of their `scores` upwards, by how many deviations
/// each is above the last of them. So they stay ahead of all others, are in its order, and differ as much as fused scores do:
/// a right one from a wrong one by about 1, two right ones by less than a prior counts.
pub(super) fn reranked(scores: &[f32], answers: &[f32]) -> Vec<f32> {
    let worst = scores.iter().copied().fold(f32::INFINITY, f32::min);
    let answers = standard(answers);
    let least = answers.iter().copied().fold(f32::INFINITY, f32::min);
    answers.iter().map(|answer| worst + answer - least).collect()
}

/// How like each entry is to the best of all, as far as it differs from what all have in common.
fn likes(scores: &[f32], directions: &[Option<&[f32]>]) -> Vec<f32> {
    let known = || directions.iter().enumerate().filter_map(|(position, direction)| Some((position, (*direction)?)));
    let n_known = known().count().max(1) as f32;
    let mut common = vec![0.0; known().next().map_or(0, |(_, direction)| direction.len())];
    for (_, direction) in known() {
        common.iter_mut().zip(direction).for_each(|(common, number)| *common += number / n_known);
    }
    let own =
        |direction: &[f32]| -> Vec<f32> { direction.iter().zip(&common).map(|(own, common)| own - common).collect() };
    let mut best: Vec<(usize, &[f32])> = known().collect();
    let by_score = |a: &(usize, &[f32]), b: &(usize, &[f32])| scores[b.0].total_cmp(&scores[a.0]).then(a.0.cmp(&b.0));
    if best.len() > LIKED {
        best.select_nth_unstable_by(LIKED, by_score);
        best.truncate(LIKED);
    }
    let highest = best.iter().map(|(position, _)| scores[*position]).fold(f32::MIN, f32::max);
    let mut meant = vec![0.0; common.len()];
    for (position, direction) in best {
        let own = own(direction);
        let share = (scores[position] - highest).exp() / length(&own);
        meant.iter_mut().zip(own).for_each(|(meant, number)| *meant += share * number);
    }
    let like = |direction: &[f32]| {
        let own = own(direction);
        product(&own, &meant) / length(&own)
    };
    directions.iter().map(|direction| direction.map_or(0.0, like)).collect()
}

/// How far each is from the mean of all, in deviations.
fn standard(scores: &[f32]) -> Vec<f32> {
    let n = scores.len().max(1) as f32;
    let mean = scores.iter().sum::<f32>() / n;
    let deviation = (scores.iter().map(|score| (score - mean) * (score - mean)).sum::<f32>() / n).sqrt();
    scores.iter().map(|score| (score - mean) / deviation.max(1e-6)).collect()
}

/// The sum of products, eight at once: in one sum each would wait for the one before.
fn product(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; 8];
    for (a, b) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest = a.as_chunks::<8>().1.iter().zip(b.as_chunks::<8>().1).map(|(a, b)| a * b);
    sums.into_iter().chain(rest).sum()
}

fn length(vector: &[f32]) -> f32 {
    product(vector, vector).sqrt().max(f32::MIN_POSITIVE)
}

/// A vector divided by its length.
pub(super) fn of_length_1(mut vector: Vec<f32>) -> Vec<f32> {
    let length = length(&vector);
    vector.iter_mut().for_each(|number| *number /= length);
    vector
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(scores: &[f32], known: f32) -> Words {
        Words { scores: scores.to_vec(), known, most: 4.0, ..Words::default() }
    }

    #[test]
    fn an_entry_counts_by_how_much_likelier_than_others_it_is() {
        let likeness = [Some([vec![0.9, 0.7], vec![0.7, 0.7]]), None, Some([vec![0.7, 0.7], vec![0.7, 0.7]])];
        let meaning = meaning(&[2.0, 1.0], &likeness, vec![None; 3]);
        // The first piece: 0.9 + 0.45 + 0.21 = 1.56 and 0.7 + 0.35 + 0.21 = 1.26, whose mean is 1.41; the second says nothing.
        for (found, expected) in meaning.scores.iter().zip([0.3, 0.0, -0.3]) {
            assert!((found - expected).abs() < 1e-5, "{:?}", meaning.scores);
        }
    }

    #[test]
    fn words_count_by_the_share_of_them_that_is_known_and_likes_break_ties() {
        let directions = vec![Some(&[1.0, 0.0][..]), Some(&[0.9, 0.1]), Some(&[0.0, 1.0])];
        let meaning = Meaning { scores: vec![1.0, 0.0, 0.0], n_pieces: 3, directions };
        let first = |scores: Vec<f32>| (0..3).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap();
        assert_eq!(first(fused(&meaning, &words(&[0.0, 0.0, 3.0], 0.1), 1.0)), 0);
        assert_eq!(first(fused(&meaning, &words(&[0.0, 0.0, 3.0], 1.0), 2.0)), 2);
        let fused = fused(&meaning, &words(&[0.0; 3], 0.0), 1.0);
        assert!(fused[0] > fused[1] && fused[1] > fused[2], "{fused:?}");
    }

    #[test]
    fn what_is_reranked_starts_at_its_worst_and_goes_up_by_deviations() {
        let best = reranked(&[3.0, 2.5, 1.0], &[-4.0, 8.0, -4.0])[1];
        assert!((best - (1.0 + 1.5 * 2.0_f32.sqrt())).abs() < 1e-5, "{best}");
        assert_eq!(reranked(&[3.0, 2.5, 1.0], &[-4.0, 8.0, -4.0])[2], 1.0);
        assert_eq!(reranked(&[3.0, 1.0], &[0.5, 0.5]), [1.0, 1.0], "who says nothing changes no order");
        assert_eq!(reranked(&[], &[]), [0.0; 0]);
    }

    #[test]
    fn whoever_has_neither_words_nor_meaning_is_doubtful() {
        let meaning = |best| Meaning { scores: vec![0.0, best], n_pieces: 12, directions: vec![None; 2] };
        assert!(is_doubtful(&meaning(2.0), &words(&[0.1, 0.0], 0.3)));
        assert!(!is_doubtful(&meaning(2.0), &words(&[3.5, 0.0], 1.0)));
        assert!(!is_doubtful(&meaning(9.0), &words(&[0.1, 0.0], 0.3)));
        let short = Meaning { n_pieces: 3, ..meaning(4.0) };
        assert!(is_doubtful(&meaning(4.0), &words(&[0.1, 0.0], 0.3)) && !is_doubtful(&short, &words(&[0.1, 0.0], 0.3)));
    }
}
