//! An index over entries, in memory, immutable: BM25 over their texts, each kind with its weight.

use std::collections::BTreeMap;

use tantivy::{
    DocId, DocSet as _, Index as Tantivy, IndexReader, ReloadPolicy, TERMINATED, TantivyDocument, Term,
    postings::Postings as _,
    schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions},
    tokenizer::{TextAnalyzer, TokenizerManager, WhitespaceTokenizer},
};

use super::analysis::{Analyzer, is_common, is_pair, neighbours};

/// Kinds of texts of an entry, in the order of [`Entry`], and last the pairs of neighbouring words in all of them: weight,
/// and how much a word in a longer text counts less (b). Chosen on the development sets, see the README.
const KINDS: [(&str, f32, f32); 7] = [
    ("name", 6.0, 0.7),
    ("tags", 2.0, 0.7),
    ("description", 4.0, 0.7),
    ("headings", 1.0, 0.7),
    ("body", 0.5, 0.7),
    ("tools", 1.0, 0.7),
    ("pairs", 0.5, 0.7),
];
/// How soon more of the same word counts no more (k1).
const SATURATION: f32 = 1.2;
/// What a common word counts beside others, and a pair of words beside its words.
const COMMON: f32 = 0.2;
/// See [`COMMON`].
const PAIR: f32 = 0.3;
/// Memory for building, in bytes; a segment that needs more is built all the same.
const BUILD_BYTES: usize = 15_000_000;
/// Characters of a body that count; what a skill is about stands at its beginning.
const BODY_CHARS: usize = 3_000;

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
    /// Names and descriptions of what belongs to it.
    pub tools: String,
}

/// An entry that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Its position among the entries that the index was built of.
    pub position: usize,
    /// Higher is better; comparable within one query only.
    pub score: f32,
}

/// An index; see the module.
pub struct Index {
    reader: IndexReader,
    fields: [Field; KINDS.len()],
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Index")
    }
}

impl Index {
    /// Builds an index of `entries`, which are known by their positions afterwards.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn build(entries: impl IntoIterator<Item = Entry>) -> tantivy::Result<Self> {
        let mut schema = Schema::builder();
        // The texts are terms already.
        let indexing =
            TextFieldIndexing::default().set_tokenizer("terms").set_index_option(IndexRecordOption::WithFreqs);
        let options = TextOptions::default().set_indexing_options(indexing);
        let fields = KINDS.map(|(name, ..)| schema.add_text_field(name, options.clone()));
        let tokenizers = TokenizerManager::new();
        tokenizers.register("terms", TextAnalyzer::from(WhitespaceTokenizer::default()));
        let builder = Tantivy::builder().schema(schema.build()).tokenizers(tokenizers);
        let mut writer =
            builder.single_segment_index_writer(tantivy::directory::RamDirectory::create(), BUILD_BYTES)?;
        let mut analyzer = Analyzer::default();
        for entry in entries {
            let body: String = entry.body.chars().take(BODY_CHARS).collect();
            let texts = [&entry.name, &entry.tags, &entry.description, &entry.headings, &body, &entry.tools];
            let mut document = TantivyDocument::default();
            let mut pairs = Vec::new();
            let [of_texts @ .., of_pairs] = fields;
            for (field, text) in of_texts.into_iter().zip(texts) {
                let terms = analyzer.terms(text);
                document.add_text(field, terms.join(" "));
                pairs.extend(neighbours(&terms));
            }
            document.add_text(of_pairs, pairs.join(" "));
            writer.add_document(document)?;
        }
        let reader = writer.finalize()?.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Self { reader, fields })
    }

    /// The best `limit` entries that have a term of `query`, best first; of equals the first.
    ///
    /// The score is BM25F (Robertson, Zaragoza, Taylor 2004): what all texts of an entry say of a word is added up, by
    /// weight, before it saturates, and a word is as rare as it is in all of them.
    ///
    /// # Errors
    /// The index is damaged.
    pub fn search(&self, query: &str, limit: usize) -> tantivy::Result<Vec<Hit>> {
        let mut terms = Analyzer::default().terms(query);
        let pairs: Vec<String> = neighbours(&terms).collect();
        terms.extend(pairs);
        terms.sort();
        terms.dedup();
        let searcher = self.reader.searcher();
        // Built in one piece; nothing at all where there are no entries.
        let Some(segment) = searcher.segment_readers().first() else { return Ok(Vec::new()) };
        let n_entries = segment.max_doc();
        let mut scores = vec![0.0_f32; n_entries as usize];
        // Whoever has nothing but common words of a query that has others is no hit.
        let says_something = |term: &String| !is_common(term) && !is_pair(term);
        let mut is_hit = vec![!terms.iter().any(says_something); n_entries as usize];
        for term in &terms {
            let mut weighted: BTreeMap<DocId, f32> = BTreeMap::new();
            for (field, (_, weight, b)) in self.fields.iter().zip(KINDS) {
                let inverted = segment.inverted_index(*field)?;
                let lengths = segment.get_fieldnorms_reader(*field)?;
                let mean_length = inverted.total_num_tokens() as f32 / n_entries.max(1) as f32;
                let term = Term::from_field_text(*field, term);
                let Some(mut postings) = inverted.read_postings(&term, IndexRecordOption::WithFreqs)? else { continue };
                while postings.doc() != TERMINATED {
                    let entry = postings.doc();
                    let length = lengths.fieldnorm(entry) as f32 / mean_length.max(f32::MIN_POSITIVE);
                    let frequency = postings.term_freq() as f32 / (1.0 - b + b * length);
                    *weighted.entry(entry).or_default() += weight * frequency;
                    postings.advance();
                }
            }
            let (n_all, n_having) = (n_entries as f32, weighted.len() as f32);
            let share = match term {
                term if is_pair(term) => PAIR,
                term if is_common(term) => COMMON,
                _ => 1.0,
            };
            let rarity = share * (1.0 + (n_all - n_having + 0.5) / (n_having + 0.5)).ln();
            for (entry, frequency) in weighted {
                scores[entry as usize] += rarity * frequency / (SATURATION + frequency);
                is_hit[entry as usize] |= !is_common(term);
            }
        }
        let all = scores.into_iter().enumerate().filter(|(entry, score)| *score > 0.0 && is_hit[*entry]);
        let mut hits: Vec<Hit> = all.map(|(position, score)| Hit { position, score }).collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.position.cmp(&b.position)));
        hits.truncate(limit);
        Ok(hits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, description: &str, body: &str) -> Entry {
        Entry { name: name.into(), description: description.into(), body: body.into(), ..Entry::default() }
    }

    fn found(index: &Index, query: &str) -> Vec<usize> {
        index.search(query, 10).unwrap().into_iter().map(|hit| hit.position).collect()
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
    }

    #[test]
    fn of_equals_the_first_comes_first_and_an_empty_index_has_nothing() {
        let index = Index::build((0..20).map(|_| entry("same", "the same words", ""))).unwrap();
        assert_eq!(found(&index, "words"), (0..10).collect::<Vec<_>>());
        assert_eq!(found(&Index::build([]).unwrap(), "words"), [0_usize; 0]);
    }
}
