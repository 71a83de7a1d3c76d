//! Finding by words: an index over entries, in memory, immutable, and BM25 over their texts, each kind with its weight.

use std::sync::Arc;

use tantivy::{
    Index as Tantivy, IndexReader, InvertedIndexReader, ReloadPolicy, SegmentReader, TantivyDocument, Term,
    fieldnorm::FieldNormReader,
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
/// What a pair of words counts beside its words.
const PAIR: f32 = 0.5;
/// What a part of a word counts beside whole words.
const PART: f32 = 0.25;
/// Words at the beginning of each text whose pairs count in a large catalogue: most of an index is pairs of words.
const PAIRED_WORDS: usize = 100;
/// Memory that building starts with, in bytes; it takes more where it needs to.
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
    n_entries: usize,
    /// In the order of [`KINDS`]; none where there are no entries.
    kinds: Vec<Kind>,
    /// Those of the entries, besides English.
    languages: Vec<Language>,
    /// Whether words are also found by their parts: most of the work, and in a large catalogue every part is everywhere.
    has_parts: bool,
}

/// One kind of texts of all entries.
struct Kind {
    field: Field,
    inverted: Arc<InvertedIndexReader>,
    lengths: FieldNormReader,
    /// What a word's frequency counts in a text of each length, by the length's byte in `lengths`.
    shares: [f32; 256],
}

impl Kind {
    fn read(segment: &SegmentReader, field: Field, (_, weight, b): (&str, f32, f32)) -> tantivy::Result<Self> {
        let (inverted, lengths) = (segment.inverted_index(field)?, segment.get_fieldnorms_reader(field)?);
        let mean_length = inverted.total_num_tokens() as f32 / segment.max_doc() as f32;
        let shares = std::array::from_fn(|byte| {
            let length = FieldNormReader::id_to_fieldnorm(u8::try_from(byte).unwrap_or(u8::MAX)) as f32;
            weight / (1.0 - b + b * length / mean_length.max(f32::MIN_POSITIVE))
        });
        Ok(Self { field, inverted, lengths, shares })
    }

    /// Calls `take` with each entry that has `term`, and what that counts.
    fn each(&self, term: &str, mut take: impl FnMut(usize, f32)) -> tantivy::Result<()> {
        let term = Term::from_field_text(self.field, term);
        let Some(mut postings) = self.inverted.read_block_postings(&term, IndexRecordOption::WithFreqs)? else {
            return Ok(());
        };
        while !postings.docs().is_empty() {
            for (entry, frequency) in postings.docs().iter().zip(postings.freqs()) {
                let share = self.shares[usize::from(self.lengths.fieldnorm_id(*entry))];
                take(*entry as usize, *frequency as f32 * share);
            }
            postings.advance();
        }
        Ok(())
    }
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
                let n_paired = if has_parts { terms.len() } else { terms.len().min(PAIRED_WORDS) };
                pairs.extend(neighbours(&terms[..n_paired]));
            }
            document.add_text(of_pairs, pairs.join(" "));
            writer.add_document(document)?;
        }
        let reader: IndexReader = writer.finalize()?.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        // Built in one piece; nothing at all where there are no entries.
        let mut kinds = Vec::new();
        for segment in reader.searcher().segment_readers() {
            for (field, kind) in fields.into_iter().zip(KINDS) {
                kinds.push(Kind::read(segment, field, kind)?);
            }
        }
        Ok(Self { n_entries: entries.len(), kinds, languages, has_parts })
    }

    /// Looks for the words of `query` in all entries.
    ///
    /// The score is BM25F (Robertson, Zaragoza, Taylor 2004): what all texts of an entry say of a word is added up, by
    /// weight, before it saturates, and a word is as rare as it is in all of them.
    ///
    /// # Errors
    /// The index is damaged.
    pub(super) fn search(&self, query: &str) -> tantivy::Result<Words> {
        let n = self.n_entries;
        let mut words = Words { scores: vec![0.0; n], kinds: vec![0; n], ..Words::default() };
        let (mut is_hit, mut weighted, mut known) = (vec![false; n], vec![0.0_f32; n], 0.0);
        let mut having = Vec::new();
        for term in self.terms(query) {
            for (kind, texts) in self.kinds.iter().enumerate() {
                texts.each(&term, |entry, counts| {
                    if weighted[entry] == 0.0 {
                        having.push(entry);
                    }
                    weighted[entry] += counts;
                    words.kinds[entry] |= 1 << kind;
                })?;
            }
            let share = if is_part(&term) {
                PART
            } else if is_pair(&term) {
                PAIR
            } else {
                1.0
            };
            let (n_all, n_having) = (n as f32, having.len() as f32);
            let rarity = share * (1.0 + (n_all - n_having + 0.5) / (n_having + 0.5)).ln();
            if !is_pair(&term) && !is_part(&term) && !is_own_stem(&term) {
                words.most += rarity;
                known += if having.is_empty() { 0.0 } else { rarity };
            }
            for entry in having.drain(..) {
                let frequency = std::mem::take(&mut weighted[entry]);
                words.scores[entry] += rarity * frequency / (SATURATION + frequency);
                // Whoever has nothing but parts of words is no hit.
                is_hit[entry] |= !is_part(&term);
            }
        }
        for (score, is_hit) in words.scores.iter_mut().zip(is_hit) {
            *score = if is_hit { *score } else { 0.0 };
        }
        words.known = if words.most > 0.0 { known / words.most } else { 0.0 };
        Ok(words)
    }

    /// What is looked for, sorted: common words only where there are no others.
    fn terms(&self, query: &str) -> Vec<String> {
        let words = Analyzer::default().terms(query);
        let pairs: Vec<String> = neighbours(&words).collect();
        let telling: Vec<String> = words.iter().filter(|word| !is_common(word)).cloned().collect();
        let mut terms = if telling.is_empty() { words } else { telling };
        if self.has_parts {
            terms.extend(parts(&terms).collect::<Vec<_>>());
        }
        terms.extend(pairs);
        terms.extend(self.languages.iter().flat_map(|language| own_stems(query, *language)));
        terms.sort();
        terms.dedup();
        terms
    }
}

/// Names of the kinds of texts in a set of bits.
pub(super) fn kinds(bits: u8) -> impl Iterator<Item = &'static str> {
    KINDS.iter().enumerate().filter(move |(kind, _)| bits >> kind & 1 == 1).map(|(_, (name, ..))| *name)
}
