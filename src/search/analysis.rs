//! From a text to its terms: words of texts and identifiers, in lower case, as English stems, and as those of the text's own
//! language besides; words with diacritics also without them; pairs of characters where a script has no blanks.

use std::{collections::HashSet, sync::LazyLock};

use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, TextAnalyzer,
};

/// Longer words are data, not language.
const WORD_BYTES: usize = 60;

/// Characters of a part of a word.
const PART_CHARS: usize = 4;

/// Words that say nothing of what a text is about, and those by which people ask.
const STOPS: &str = "a about after again all also am an and any anything are as at be because been before being but by can could did do \
     does doing don done down for from get getting give go going gonna good got had has have having he her here hers him his how i if \
     in into is it its itself just ll let like make me might more most much must my myself need no not now of off on once one only or \
     other our ours out over own please re really s same she should so some something such t than that the their theirs them then there \
     these they thing things this those through to too up us use using ve very want was we were what when where which while who whom \
     whose why will with without would you your yours yourself";

/// Makes terms; keeps what it needs for that.
pub struct Analyzer {
    words: TextAnalyzer,
    folded: TextAnalyzer,
}

impl Default for Analyzer {
    fn default() -> Self {
        let words = || {
            TextAnalyzer::builder(SimpleTokenizer::default())
                .filter(RemoveLongFilter::limit(WORD_BYTES))
                .filter(LowerCaser)
                .filter(Stemmer::new(Language::English))
        };
        Self { words: words().build(), folded: words().filter(AsciiFoldingFilter).build() }
    }
}

impl std::fmt::Debug for Analyzer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Analyzer")
    }
}

impl Analyzer {
    /// The terms of `text`, in their order; one may stand several times.
    pub fn terms(&mut self, text: &str) -> Vec<String> {
        let text = spread(text);
        let mut terms = Vec::new();
        self.words.token_stream(&text).process(&mut |token| {
            if token.text.chars().any(has_no_blanks) {
                terms.extend(pairs(&token.text));
            } else {
                terms.push(token.text.clone());
            }
        });
        if !text.is_ascii() {
            let plain: HashSet<String> = terms.iter().cloned().collect();
            self.folded.token_stream(&text).process(&mut |token| {
                if token.text.is_ascii() && !plain.contains(&token.text) {
                    terms.push(token.text.clone());
                }
            });
        }
        terms
    }
}

/// Whether a term says nothing of what a text is about.
pub(super) fn is_common(term: &str) -> bool {
    static STEMS: LazyLock<HashSet<String>> = LazyLock::new(|| Analyzer::default().terms(STOPS).into_iter().collect());
    STEMS.contains(term)
}

/// Neighbouring terms as one.
pub(super) fn neighbours(terms: &[String]) -> impl Iterator<Item = String> {
    terms.windows(2).map(|pair| pair.join("_"))
}

/// Whether a term is one of [`neighbours`]; the terms of a text have no such sign in them.
pub(super) fn is_pair(term: &str) -> bool {
    term.contains('_')
}

/// The language of a text that has stems of its own, where it is long enough to tell.
pub(super) fn language_of(text: &str) -> Option<Language> {
    let found = whatlang::detect(text).filter(whatlang::Info::is_reliable)?;
    Some(match found.lang() {
        whatlang::Lang::Ara => Language::Arabic,
        whatlang::Lang::Dan => Language::Danish,
        whatlang::Lang::Nld => Language::Dutch,
        whatlang::Lang::Fin => Language::Finnish,
        whatlang::Lang::Fra => Language::French,
        whatlang::Lang::Deu => Language::German,
        whatlang::Lang::Ell => Language::Greek,
        whatlang::Lang::Hun => Language::Hungarian,
        whatlang::Lang::Ita => Language::Italian,
        whatlang::Lang::Nob => Language::Norwegian,
        whatlang::Lang::Por => Language::Portuguese,
        whatlang::Lang::Ron => Language::Romanian,
        whatlang::Lang::Rus => Language::Russian,
        whatlang::Lang::Spa => Language::Spanish,
        whatlang::Lang::Swe => Language::Swedish,
        whatlang::Lang::Tam => Language::Tamil,
        whatlang::Lang::Tur => Language::Turkish,
        _ => return None,
    })
}

/// The words of a text as stems of `language`, marked as such.
pub(super) fn own_stems(text: &str, language: Language) -> Vec<String> {
    let words = TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(WORD_BYTES))
        .filter(LowerCaser)
        .filter(Stemmer::new(language));
    let mut stems = Vec::new();
    words.build().token_stream(&spread(text)).process(&mut |token| stems.push(format!("{}|", token.text)));
    stems
}

/// Whether a term is one of [`own_stems`]; other terms have no such sign in them.
pub(super) fn is_own_stem(term: &str) -> bool {
    term.ends_with('|')
}

/// Parts of the words that say something, of four characters, which inflected and misspelt forms share.
pub(super) fn parts(terms: &[String]) -> impl Iterator<Item = String> {
    terms.iter().filter(|term| !is_common(term)).flat_map(|term| {
        let ends: Vec<char> = format!("^{term}$").chars().collect();
        let part = |part: &[char]| part.iter().chain(&['~']).collect();
        ends.windows(PART_CHARS).map(part).collect::<Vec<String>>()
    })
}

/// Whether a term is one of [`parts`]; other terms have no such sign in them.
pub(super) fn is_part(term: &str) -> bool {
    term.ends_with('~')
}

/// Puts a blank between the words of `camelCase`.
fn spread(text: &str) -> String {
    let mut spread = String::with_capacity(text.len() + 8);
    let mut was_lower = false;
    for c in text.chars() {
        if was_lower && c.is_uppercase() {
            spread.push(' ');
        }
        was_lower = c.is_lowercase();
        spread.push(c);
    }
    spread
}

/// Whether words of this character's script stand together without blanks.
fn has_no_blanks(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' | '\u{0e00}'..='\u{0e7f}')
}

/// Pairs of neighbouring characters; other scripts' parts as they are.
fn pairs(word: &str) -> Vec<String> {
    let mut pairs = Vec::new();
    let chars: Vec<char> = word.chars().collect();
    for part in chars.chunk_by(|a, b| has_no_blanks(*a) == has_no_blanks(*b)) {
        if part.len() == 1 || !part.first().is_some_and(|c| has_no_blanks(*c)) {
            pairs.push(part.iter().collect());
        } else {
            pairs.extend(part.windows(2).map(|pair| pair.iter().collect::<String>()));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_stems_of_words_and_pairs_of_characters() {
        let mut analyzer = Analyzer::default();
        for (text, expected) in [
            ("Cancels the orders!", "cancel the order"),
            ("getOrderStatus orders_list", "get order status order list"),
            ("Faktury za zamówienia", "fakturi za zamówienia zamowienia"),
            ("přehled", "přehl prehl"),
            ("检索发票", "检索 索发 发票"),
            ("用PDF导出", "用 pdf 导出"),
            ("", ""),
        ] {
            assert_eq!(analyzer.terms(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn a_text_has_the_stems_of_its_own_language_too() {
        let text =
            "Dieser Helfer schreibt Rechnungen und erinnert Kunden an ausstehende Zahlungen für gelieferte Waren.";
        assert_eq!(language_of(text), Some(Language::German));
        assert!(own_stems(text, Language::German).contains(&"rechnung|".to_owned()));
        assert_eq!(own_stems("Rechnung", Language::German), ["rechnung|"]);
        assert_eq!(
            language_of("Writes invoices and reminds customers of payments that are still due."),
            None,
            "English"
        );
        assert_eq!(language_of("pdf"), None);
    }

    #[test]
    fn parts_are_shared_by_forms_of_a_word() {
        let parts = |term: &str| parts(&[term.to_owned()]).collect::<Vec<_>>();
        assert_eq!(parts("order"), ["^ord~", "orde~", "rder~", "der$~"]);
        assert_eq!(parts("the"), [""; 0], "a common word");
        assert!(parts("ordre").contains(&"^ord~".to_owned()));
    }
}
