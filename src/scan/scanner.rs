//! The scan itself: every pattern over one text, with places.

use std::sync::{Arc, LazyLock};

use super::{
    pattern::{Class, EMBEDDED, Kind, Pattern, PatternError, parse},
    script::mixed_word,
};
use crate::model::{
    diagnostic::Severity,
    hidden::{Hidden, hidden, visible},
    tool::cut,
};

/// Soft hyphens of a text that somebody typeset are few.
const SOFT_HYPHENS: usize = 3;
/// As many hidden characters of a kind could carry a text.
const PAYLOAD: usize = 6;
/// Characters of a text in a finding.
const EXCERPT: usize = 80;
/// Places that are told of one pattern in one text.
const PLACES: usize = 3;

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The pattern's.
    pub id: String,
    /// What it is about.
    pub class: Class,
    /// How much it matters.
    pub severity: Severity,
    /// Why it is looked for: a fragment.
    pub reason: String,
    /// Where, in bytes.
    pub at: usize,
    /// What stands there, in one line, with hidden characters as numbers.
    pub excerpt: String,
}

/// The patterns that come with the program. They take some ten megabytes once they are compiled, so that is done when the
/// first text is looked through.
static EMBEDDED_PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "a test reads the file that is part of the program")]
    parse(EMBEDDED).expect("the patterns that come with the program can be read")
});

/// Looks through texts.
#[derive(Debug, Clone, Default)]
pub struct Scanner {
    /// Besides those that come with the program.
    own: Vec<Pattern>,
    /// Ids that are left out.
    ignored: Vec<String>,
}

impl Scanner {
    /// With the patterns that come with the program.
    pub fn embedded() -> &'static Arc<Self> {
        static EMBEDDED_SCANNER: LazyLock<Arc<Scanner>> = LazyLock::new(Arc::default);
        &EMBEDDED_SCANNER
    }

    /// With these files of patterns besides, less those of these ids.
    ///
    /// # Errors
    /// A text is no file of patterns.
    pub fn with<'a>(files: impl Iterator<Item = &'a str>, ignored: &[String]) -> Result<Self, PatternError> {
        let mut own = Vec::new();
        for text in files {
            own.extend(parse(text)?);
        }
        Ok(Self { own, ignored: ignored.to_vec() })
    }

    fn all(&self) -> impl Iterator<Item = &Pattern> {
        let all = EMBEDDED_PATTERNS.iter().chain(&self.own);
        all.filter(|pattern| !self.ignored.contains(&pattern.id))
    }

    /// Every pattern there is: id, reason and source.
    pub fn patterns(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.all().map(|pattern| (pattern.id.as_str(), pattern.reason.as_str(), pattern.source.as_str()))
    }

    /// What a text has, the gravest first, then by place.
    pub fn scan(&self, text: &str, kind: Kind) -> Vec<Found> {
        let mut found = hidden_in(text);
        if let Some((at, word)) = mixed_word(text) {
            let reason = "a word has letters of another script that look like its own";
            found.push(of_own("look-alike-word", Severity::Warning, reason, at, word));
        }
        let mut soft = text.match_indices('\u{ad}').map(|(at, _)| at);
        if let Some(at) = soft.next().filter(|_| soft.count() + 1 >= SOFT_HYPHENS) {
            let reason = "soft hyphens, which nobody sees and which take words apart";
            found.push(of_own("soft-hyphens", Severity::Warning, reason, at, text.get(at..).unwrap_or_default()));
        }
        for pattern in self.all().filter(|pattern| pattern.is_for(kind)) {
            let is_meant = |matched: &regex::bytes::Match<'_>| {
                pattern.unless.as_ref().is_none_or(|unless| !unless.is_match(matched.as_bytes()))
            };
            let matches = pattern.regex.find_iter(text.as_bytes()).filter(is_meant).take(PLACES);
            found.extend(matches.map(|matched| {
                let bytes = matched.as_bytes();
                let at = matched.start() + (bytes.len() - bytes.trim_ascii_start().len());
                Found {
                    id: pattern.id.clone(),
                    class: pattern.class,
                    severity: pattern.severity,
                    reason: pattern.reason.clone(),
                    at: text.floor_char_boundary(at),
                    excerpt: excerpt(&String::from_utf8_lossy(bytes)),
                }
            }));
        }
        found.sort_by(|a, b| (a.severity, a.at, &a.id).cmp(&(b.severity, b.at, &b.id)));
        found
    }
}

/// One finding for each kind of hidden characters; runs that could carry a text are errors.
fn hidden_in(text: &str) -> Vec<Found> {
    let mut kinds: Vec<(Hidden, usize)> = Vec::new();
    for found in hidden(text) {
        match kinds.iter_mut().find(|(known, _)| known.kind() == found.kind()) {
            Some((_, n_found)) => *n_found += 1,
            None => kinds.push((found, 1)),
        }
    }
    let found = kinds.into_iter().map(|(first, n_found)| {
        let is_payload = n_found >= PAYLOAD || first.is_never_needed();
        let severity = if is_payload { Severity::Error } else { Severity::Warning };
        let times = if n_found == 1 { String::new() } else { format!(", {n_found} such") };
        let text = text.get(first.at..).unwrap_or_default();
        of_own("hidden-characters", severity, &format!("{first}{times}, which nobody sees"), first.at, text)
    });
    found.collect()
}

fn of_own(id: &str, severity: Severity, reason: &str, at: usize, text: &str) -> Found {
    let (id, reason) = (id.to_owned(), reason.to_owned());
    Found { id, class: Class::Hidden, severity, reason, at, excerpt: excerpt(text) }
}

/// The beginning of a text in one line.
fn excerpt(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    visible(&cut(line.trim(), EXCERPT))
}
