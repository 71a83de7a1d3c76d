//! An index over entries, immutable: found by words and, as far as an encoder knows them, by meaning.

use std::sync::Arc;

use super::{
    fault::Fault,
    fuse,
    lexical::{Lexical, kinds},
    semantic::{Detail, Encoded, Passage, PassageId, Semantic},
    text::{plain, spaced, words},
};

/// What can be found.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    /// What it is called.
    pub name: String,
    /// Words that group it with others.
    pub tags: String,
    /// What it is for.
    pub description: String,
    /// Titles within its text.
    pub headings: String,
    /// Its text.
    pub body: String,
    /// Names and descriptions of what belongs to it, one a line.
    pub tools: String,
}

/// An entry that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its position among the entries that the index was built of.
    pub position: usize,
    /// Higher is better; comparable within one query only.
    pub score: f32,
    /// What its words say, see [`Hit::score`].
    pub words: f32,
    /// What its meaning says, where there is an encoder.
    pub meaning: Option<f32>,
    /// See [`Hit::kinds`].
    kinds: u8,
}

impl Hit {
    /// Kinds of texts that have words of the query.
    pub fn kinds(&self) -> Vec<&'static str> {
        kinds(self.kinds).collect()
    }
}

/// What entries were found by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Basis {
    /// Words; there is no encoder.
    #[default]
    Words,
    /// Words, and the meaning of some entries; others are still being learnt.
    Partly,
    /// Words and meaning.
    Both,
}

impl Basis {
    /// As reports name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Partly => "words, meaning of some",
            Self::Both => "words and meaning",
        }
    }
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// Best first; of equals the first.
    pub hits: Vec<Hit>,
    /// What it was found by.
    pub basis: Basis,
    /// Whether a reranker put the best in order.
    pub is_reranked: bool,
    /// Whether more will be known of the entries, or a reranker be there, so that the same is found better later.
    pub is_passing: bool,
    /// Whether the best is likely none of those who asked like this had in mind.
    pub is_doubtful: bool,
}

impl Found {
    /// What it was found by, as reports name it.
    pub fn by(&self) -> String {
        let reranked = if self.is_reranked { ", reranked" } else { "" };
        format!("{}{reranked}", self.basis.name())
    }
}

/// Up to so many entries words are found by their parts too, and an encoder's vectors of all word pieces are kept (43 KB an
/// entry); of more there are two means for each.
pub(super) const DETAILED_MOST: usize = 2_000;

/// Words of a tool's name and description that stand for it.
const TOOL_WORDS: usize = 9;

/// What an entry is ahead of all others whose name was asked for: more than any prior.
const NAMED: f32 = 1.0;

/// An index; see the module.
#[derive(Debug)]
pub struct Index {
    lexical: Lexical,
    passages: Vec<(PassageId, Passage)>,
    /// Of the entries, as words.
    names: Vec<String>,
}

impl Index {
    /// Builds an index of `entries`, which are known by their positions afterwards.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn build(entries: impl IntoIterator<Item = Entry>) -> tantivy::Result<Self> {
        let entries: Vec<Entry> = entries.into_iter().collect();
        let identified = |passage: Passage| (passage.id(), passage);
        let passages = entries.iter().map(|entry| identified(passage(entry))).collect();
        let names = entries.iter().map(|entry| spaced(&entry.name).to_lowercase()).collect();
        Ok(Self { lexical: Lexical::build(&entries)?, passages, names })
    }

    /// Lets `semantic` know the entries, as long as `is_wanted`. Takes some 60 ms for each that is neither known nor in the
    /// cache.
    pub fn learn(&self, semantic: &Semantic, is_wanted: impl Fn() -> bool) {
        semantic.learn(&self.passages, self.detail(), is_wanted);
    }

    /// What its entries are known by to [`Semantic`].
    pub fn passages(&self) -> impl Iterator<Item = PassageId> {
        self.passages.iter().map(|(id, _)| *id)
    }

    /// Finds entries by words and, as far as `semantic` knows them, by meaning. Words count by the share of them that any
    /// entry has, times `words_weight`.
    ///
    /// # Errors
    /// The index is damaged.
    pub fn search(&self, query: &str, semantic: &Semantic, words_weight: f32) -> tantivy::Result<Found> {
        let words = self.lexical.search(query)?;
        let is_off = semantic.is_off();
        let known = if is_off { Vec::new() } else { semantic.known(self.passages(), self.detail()) };
        let meaning = self.meaning(query, semantic, &known);
        let basis = match known.iter().all(Option::is_some) {
            _ if is_off || meaning.is_err() => Basis::Words,
            false => Basis::Partly,
            true => Basis::Both,
        };
        let meaning = meaning.ok().flatten();
        let scores = match &meaning {
            Some(meaning) => fuse::fused(meaning, &words, words_weight),
            None => words.scores.clone(),
        };
        let is_found = |position: &usize| meaning.is_some() || words.scores[*position] > 0.0;
        let hit = |position: usize| Hit {
            position,
            score: scores[position],
            words: words.scores[position],
            meaning: meaning.as_ref().map(|meaning| meaning.scores[position]),
            kinds: words.kinds[position],
        };
        let mut positions: Vec<usize> = (0..words.scores.len()).filter(is_found).collect();
        positions.sort_unstable_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        let mut hits: Vec<Hit> = positions.into_iter().map(hit).collect();
        let is_reranked = self.rerank(query, semantic, &mut hits);
        self.put_named_first(query, &mut hits);
        let is_doubtful = semantic.has_doubts() && meaning.is_some_and(|meaning| fuse::is_doubtful(&meaning, &words));
        let is_passing = basis == Basis::Partly || semantic.reranker.is_awaited();
        Ok(Found { hits, basis, is_reranked, is_passing, is_doubtful })
    }

    /// Lets a reranker put the best in order, where there is one; whether it did.
    fn rerank(&self, query: &str, semantic: &Semantic, hits: &mut [Hit]) -> bool {
        let n = semantic.reranker.n_hits().min(hits.len());
        if n < 2 || query.trim().is_empty() {
            return false;
        }
        let best = &mut hits[..n];
        let texts: Vec<String> = best.iter().map(|hit| self.passages[hit.position].1.whole()).collect();
        let Some(answers) = semantic.reranker.scores(query, &texts) else { return false };
        let scores: Vec<f32> = best.iter().map(|hit| hit.score).collect();
        let reranked = fuse::reranked(&scores, &answers);
        best.iter_mut().zip(reranked).for_each(|(hit, score)| hit.score = score);
        best.sort_by(|a, b| b.score.total_cmp(&a.score));
        true
    }

    /// Who asks for a name means it.
    fn put_named_first(&self, query: &str, hits: &mut [Hit]) {
        let asked = spaced(query.trim()).to_lowercase();
        let Some(named) = hits.iter().position(|hit| self.names[hit.position] == asked) else { return };
        hits[named].score = NAMED + hits[0].score.max(0.0);
        hits[..=named].rotate_right(1);
    }

    /// How like the entries are; `None` where nothing is known of any, and an error where the encoder failed at the query.
    fn meaning<'a>(
        &self,
        query: &str,
        semantic: &Semantic,
        known: &'a [Option<Arc<Encoded>>],
    ) -> Result<Option<fuse::Meaning<'a>>, Fault> {
        if known.iter().flatten().next().is_none() {
            return Ok(None);
        }
        let Some(query) = semantic.query(query, self.detail())? else { return Ok(None) };
        let weights: Vec<f32> = query.rarities().iter().map(|rarity| fuse::weight(*rarity)).collect();
        let nothing = || vec![0.0; weights.len()];
        let likeness = known.iter().map(|encoded| {
            let [about, body] = encoded.as_deref()?.texts.each_ref().map(|text| query.likeness(text));
            // An entry without a body is all that is said about it.
            let about = about.unwrap_or_else(nothing);
            Some([about.clone(), body.unwrap_or(about)])
        });
        let directions = known.iter().map(|encoded| encoded.as_deref().map(|encoded| encoded.direction.as_slice()));
        Ok(Some(fuse::meaning(&weights, &likeness.collect::<Vec<_>>(), directions.collect())))
    }

    fn detail(&self) -> Detail {
        Detail::of(self.passages.len())
    }
}

/// What stands for an entry where meaning counts.
fn passage(entry: &Entry) -> Passage {
    let tools = entry.tools.lines().map(|tool| tool.split_whitespace().take(TOOL_WORDS).collect::<Vec<_>>().join(" "));
    Passage {
        about: format!("{}. {}", spaced(&entry.name), words(&entry.description)),
        body: match plain(&entry.body) {
            body if body.is_empty() => tools.collect::<Vec<_>>().join(" . "),
            body => body,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, description: &str, body: &str) -> Entry {
        Entry { name: name.into(), description: description.into(), body: body.into(), ..Entry::default() }
    }

    fn found(index: &Index, query: &str) -> Vec<usize> {
        index.search(query, &Semantic::off(), 1.0).unwrap().hits.into_iter().map(|hit| hit.position).collect()
    }

    #[test]
    fn entries_are_found_by_stems_of_any_of_their_texts_best_first() {
        let index = Index::build([
            entry("orders", "Look up and cancel customers' orders.", "Refunds need a reason."),
            entry("mail", "Send letters.", "Ask before an order is mentioned."),
            entry("faktury", "Vystavení faktur.", ""),
        ])
        .unwrap();
        assert_eq!(found(&index, "cancelling an order"), [0, 1]);
        assert_eq!(found(&index, "refund"), [0]);
        assert_eq!(found(&index, "vystaveni"), [2]);
        assert_eq!(found(&index, "the refund"), [0], "a common word alone makes no hit");
        assert_eq!(found(&index, "before"), [1], "unless there is no other");
        assert_eq!(found(&index, "nothing of it"), [0_usize; 0]);
        let named =
            Index::build([entry("wiper", "Wipe refunds.", "refunds"), entry("get-refunds", "Money.", "")]).unwrap();
        let hits = named.search("Get refunds", &Semantic::off(), 1.0).unwrap().hits;
        assert_eq!((hits[0].position, hits[1].position), (1, 0), "a name that is asked for comes first");
        assert!(hits[0].score >= hits[1].score + 1.0, "whatever was of use before");
    }

    #[test]
    fn entries_in_another_language_are_found_by_its_forms() {
        let index = Index::build([
            entry(
                "rechnungen",
                "Dieser Helfer schreibt Häuserlisten und erinnert Kunden an ausstehende Zahlungen für Waren.",
                "",
            ),
            entry("orders", "Look up orders.", ""),
        ])
        .unwrap();
        assert_eq!(found(&index, "ausstehender Zahlung"), [0]);
        assert_eq!(found(&index, "order"), [1]);
    }

    #[test]
    fn of_equals_the_first_comes_first_and_an_empty_index_has_nothing() {
        let index = Index::build((0..20).map(|_| entry("same", "the same words", ""))).unwrap();
        assert_eq!(found(&index, "words"), (0..20).collect::<Vec<_>>());
        assert_eq!(found(&Index::build([]).unwrap(), "words"), [0_usize; 0]);
    }
}
