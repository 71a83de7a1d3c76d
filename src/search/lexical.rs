//! Finding by words: an index over entries, in memory, immutable, and BM25 over their texts, each kind with its weight.

use tantivy::{
    DocId, DocSet as _, Index as Tantivy, IndexReader, ReloadPolicy, TERMINATED, TantivyDocument, Term,
    postings::Postings as _,
    schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions},
    tokenizer::{Language, TextAnalyzer, TokenizerManager, WhitespaceTokenizer},
};

use super::{
    analysis::{Analyzer, is_common, is_own_stem, is_pair, is_part, language_of, neighbours, own_stems, parts},
    index::{DETAILED_MOST, Entry},
};

/// Kinds of texts of an entry, in the order of [`Entry`], and last the pairs of neighbouring words in all of them: weight,
/// and how much a word in a longer text counts less (b). Chosen on the development sets, see the README.
const KINDS: [(&str, f32, f32); 7] = [
    ("name", 6.0, 0.55),
    ("tags", 2.0, 0.55),
    ("description", 4.0, 0.55),
    ("headings", 1.0, 0.55),
    ("body", 0.5, 0.55),
    ("tools", 0.5, 0.55),
    ("pairs", 0.5, 0.55),
];
/// How soon more of the same word counts no more (k1).
const SATURATION: f32 = 1.2;
/// What a common word counts beside others, and a pair of words beside its words.
const COMMON: f32 = 0.1;
/// See [`COMMON`].
const PAIR: f32 = 0.5;
/// What a part of a word counts beside whole words.
const PART: f32 = 0.25;
/// Memory for building, in bytes; a segment that needs more is built all the same.
const BUILD_BYTES: usize = 15_000_000;
/// Characters of a body that count; what a skill is about stands at its beginning.
const BODY_CHARS: usize = 6_000;

/// What the words of a query say of all entries.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Per entry; 0 for those without any word.
    pub(super) scores: Vec<f32>,
    /// Per entry: the kinds of texts that have a word, as bits in the order of [`KINDS`].
    pub(super) kinds: Vec<u8>,
    /// Share of the query's words that some entry has, by how much they say, 0 to 1.
    pub(super) known: f32,
    /// What an entry's score would be at most.
    pub(super) most: f32,
}

/// An index; see the module.
pub(super) struct Lexical {
    reader: IndexReader,
    fields: [Field; KINDS.len()],
    /// Those of the entries, besides English.
    languages: Vec<Language>,
    /// Whether words are also found by their parts: most of the work, and in a large catalogue every part is everywhere.
    has_parts: bool,
}

impl std::fmt::Debug for Lexical {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lexical")
    }
}

impl Lexical {
    /// Builds an index of `entries`, which are known by their positions afterwards.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn build(entries: &[Entry]) -> tantivy::Result<Self> {
        let has_parts = entries.len() <= DETAILED_MOST;
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
        let mut languages = Vec::new();
        for entry in entries {
            let language = language_of(&entry.description);
            languages.extend(language.filter(|language| !languages.contains(language)));
            let body: String = entry.body.chars().take(BODY_CHARS).collect();
            let texts = [&entry.name, &entry.tags, &entry.description, &entry.headings, &body, &entry.tools];
            let mut document = TantivyDocument::default();
            let mut pairs = Vec::new();
            let [of_texts @ .., of_pairs] = fields;
            for (field, text) in of_texts.into_iter().zip(texts) {
                let terms = analyzer.terms(text);
                let mut all = terms.clone();
                if has_parts {
                    all.extend(parts(&terms));
                }
                all.extend(language.into_iter().flat_map(|language| own_stems(text, language)));
                document.add_text(field, all.join(" "));
                pairs.extend(neighbours(&terms));
            }
            document.add_text(of_pairs, pairs.join(" "));
            writer.add_document(document)?;
        }
        let reader = writer.finalize()?.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Self { reader, fields, languages, has_parts })
    }

    /// Looks for the words of `query` in all entries.
    ///
    /// The score is BM25F (Robertson, Zaragoza, Taylor 2004): what all texts of an entry say of a word is added up, by
    /// weight, before it saturates, and a word is as rare as it is in all of them.
    ///
    /// # Errors
    /// The index is damaged.
    pub(super) fn search(&self, query: &str) -> tantivy::Result<Words> {
        let mut terms = Analyzer::default().terms(query);
        let own = self.languages.iter().flat_map(|language| own_stems(query, *language));
        let of_words = parts(&terms).filter(|_| self.has_parts);
        let more: Vec<String> = neighbours(&terms).chain(of_words).chain(own).collect();
        terms.extend(more);
        terms.sort();
        terms.dedup();
        let searcher = self.reader.searcher();
        // Built in one piece; nothing at all where there are no entries.
        let Some(segment) = searcher.segment_readers().first() else { return Ok(Words::default()) };
        let n_entries = segment.max_doc();
        let mut words =
            Words { scores: vec![0.0; n_entries as usize], kinds: vec![0; n_entries as usize], ..Words::default() };
        // Whoever has nothing but common words of a query that has others is no hit.
        let says_something = |term: &String| !is_common(term) && !is_pair(term) && !is_part(term) && !is_own_stem(term);
        let mut is_hit = vec![!terms.iter().any(says_something); n_entries as usize];
        let mut weighted = vec![0.0_f32; n_entries as usize];
        let mut known = 0.0;
        for term in &terms {
            let mut having: Vec<DocId> = Vec::new();
            for (kind, (field, (_, weight, b))) in self.fields.iter().zip(KINDS).enumerate() {
                let inverted = segment.inverted_index(*field)?;
                let lengths = segment.get_fieldnorms_reader(*field)?;
                let mean_length = inverted.total_num_tokens() as f32 / n_entries.max(1) as f32;
                let term = Term::from_field_text(*field, term);
                let Some(mut postings) = inverted.read_postings(&term, IndexRecordOption::WithFreqs)? else { continue };
                while postings.doc() != TERMINATED {
                    let entry = postings.doc();
                    let length = lengths.fieldnorm(entry) as f32 / mean_length.max(f32::MIN_POSITIVE);
                    let frequency = postings.term_freq() as f32 / (1.0 - b + b * length);
                    if weighted[entry as usize] == 0.0 {
                        having.push(entry);
                    }
                    weighted[entry as usize] += weight * frequency;
                    words.kinds[entry as usize] |= 1 << kind;
                    postings.advance();
                }
            }
            let (n_all, n_having) = (n_entries as f32, having.len() as f32);
            let share = match term {
                term if is_part(term) => PART,
                term if is_pair(term) => PAIR,
                term if is_common(term) => COMMON,
                _ => 1.0,
            };
            let rarity = share * (1.0 + (n_all - n_having + 0.5) / (n_having + 0.5)).ln();
            if !is_pair(term) && !is_part(term) && !is_own_stem(term) {
                words.most += rarity;
                known += if having.is_empty() { 0.0 } else { rarity };
            }
            for entry in having {
                let frequency = std::mem::take(&mut weighted[entry as usize]);
                words.scores[entry as usize] += rarity * frequency / (SATURATION + frequency);
                is_hit[entry as usize] |= !is_common(term) && !is_part(term);
            }
        }
        for (score, is_hit) in words.scores.iter_mut().zip(is_hit) {
            *score = if is_hit { *score } else { 0.0 };
        }
        words.known = if words.most > 0.0 { known / words.most } else { 0.0 };
        Ok(words)
    }
}

/// Names of the kinds of texts in a set of bits.
pub(super) fn kinds(bits: u8) -> impl Iterator<Item = &'static str> {
    KINDS.iter().enumerate().filter(move |(kind, _)| bits >> kind & 1 == 1).map(|(_, (name, ..))| *name)
}
