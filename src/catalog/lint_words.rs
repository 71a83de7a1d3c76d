//! What words of a description tell: when to use a skill, or nothing at all. Loose on purpose, in several languages: a
//! finding costs its author a minute, so what may be meant as a trigger is one.

use std::{collections::HashSet, sync::LazyLock};

use crate::search::Analyzer;

/// Phrases that say when, in lower case; each begins with a word, and ends with one where a blank stands behind it.
const PHRASES: &[&str] = &[
    // English.
    " when ",
    " whenever ",
    " use for ",
    " use this ",
    " use it ",
    " use to ",
    " use if ",
    " use before ",
    " use after ",
    " use proactively ",
    " used for ",
    " useful for ",
    " useful if ",
    " ideal for ",
    " should be used ",
    " must be used ",
    " if the user ",
    " if a user ",
    " if someone ",
    " if somebody ",
    " if you ",
    " if asked ",
    " user asks ",
    " users ask ",
    " user wants ",
    " user mentions ",
    " user says ",
    " asks for ",
    " asks to ",
    " asks about ",
    " asked to ",
    " asking ",
    " trigger",
    " invoke",
    " activate",
    " applies to ",
    " for requests ",
    " for questions ",
    " in case ",
    // Czech and Slovak.
    " když ",
    " kdykoli",
    " pokud ",
    " použij",
    " použít ",
    " použi",
    " hodí se ",
    " keď ",
    " ak používateľ ",
    // Polish.
    " gdy ",
    " kiedy ",
    " jeśli ",
    " użyj ",
    " używaj ",
    " stosuj ",
    // German and Dutch.
    " wenn ",
    " sobald ",
    " falls ",
    " verwende",
    " nutze ",
    " benutze ",
    " wanneer ",
    " als de gebruiker ",
    " gebruik ",
    // French.
    " quand ",
    " lorsque ",
    " lorsqu ",
    " utilise",
    " utilisez ",
    " si l utilisateur ",
    " à utiliser ",
    // Spanish, Portuguese, Italian, Romanian.
    " cuando ",
    " usa ",
    " usar ",
    " úsalo ",
    " úsala ",
    " utiliza ",
    " si el usuario ",
    " quando ",
    " use quando ",
    " se o usuário ",
    " se l utente ",
    " când ",
    " folosește ",
    // Nordic.
    " når ",
    " när ",
    " använd",
    " bruk ",
    " brug ",
    " kun ",
    " käytä ",
    // Hungarian and Turkish.
    " amikor ",
    " használd ",
    " olduğunda ",
    " istediğinde ",
    " kullan",
    // Russian, Ukrainian, Bulgarian.
    " когда ",
    " если ",
    " используй",
    " при запрос",
    " коли ",
    " якщо ",
    " використовуй",
    " когато ",
    " използвай",
    // Vietnamese and Indonesian.
    " khi ",
    " sử dụng ",
    " saat ",
    " ketika ",
    " gunakan ",
];

/// Signs of the same in scripts whose words are not told apart by blanks, or whose marks are no letters.
const SIGNS: &[&str] = &[
    "当用户",
    "當用戶",
    "当你",
    "当需要",
    "时使用",
    "時使用",
    "使用时",
    "用于",
    "用於",
    "适用",
    "適用",
    "触发",
    "觸發",
    "如果用户",
    "场景",
    "とき",
    "場合",
    "際に",
    "時に",
    "トリガー",
    "경우",
    "때 ",
    "할 때",
    "요청",
    "เมื่อ",
    "जब",
    "عند",
    "إذا",
    "כאשר",
    "όταν",
];

/// What opens a quoted phrase, and what closes it.
const QUOTES: &[(char, &[char])] = &[
    ('"', &['"']),
    ('\'', &['\'']),
    ('“', &['”', '“']),
    ('„', &['“', '”']),
    ('‘', &['’']),
    ('‚', &['‘', '’']),
    ('«', &['»']),
    ('»', &['«']),
    ('「', &['」']),
    ('『', &['』']),
];
/// A longer quotation is no phrase that somebody says.
const QUOTE_CHARS: usize = 160;

/// Words that tell no skill from another: small ones, those by which skills speak of themselves, and those that fit all.
const COMMON: &str = "a about add advanced agent agents ai all also allow an and any app application applications are as \
     asks asked asking assist assistance assistant at automate automation basic be best better by can capabilities common complex \
     comprehensive content create creating data deal different do document documents does easy easily efficient etc everything \
     expert file files for from functionality general get good great guide handle handling help helper helpful helps how \
     improve in information into is it its kinds knowledge like make making manage management many more multiple my need needed \
     needs new of on one operation operations or other our practices powerful process processing professional project \
     projects provide provides quality related request requests say says service services several should simple skill skills solution some \
     something stuff such support supports system systems task tasks text that the their them these they thing things this \
     to tool tools trigger triggers types use used useful user users uses using utilities utility various want wants ways what when whenever \
     which will with work workflow workflows working works you your \
     pomáhá pomoc práce práci s se pro při na a i o v z dokumenty dokumentů soubory data různé věci když použij \
     hilft bei mit und der die das den dem für von zu dokumenten dateien aufgaben verschiedene wenn verwende \
     aide avec les des le la de du et pour fichiers tâches divers quand utilise \
     ayuda con los las el y para documentos archivos tareas varias cuando usa aiuta con documenti file per e il di";

/// Names that say nothing of what is behind them, in parts.
const EMPTY_NAMES: &[&str] = &[
    "a",
    "agent",
    "assistant",
    "bar",
    "common",
    "core",
    "custom",
    "default",
    "demo",
    "example",
    "examples",
    "foo",
    "general",
    "generic",
    "help",
    "helper",
    "helpers",
    "main",
    "misc",
    "my",
    "new",
    "other",
    "sample",
    "skill",
    "skills",
    "stuff",
    "temp",
    "template",
    "test",
    "tests",
    "the",
    "thing",
    "things",
    "tmp",
    "tool",
    "tools",
    "untitled",
    "util",
    "utilities",
    "utility",
    "utils",
];

/// Where a description first says when its skill is to be used: in characters from its start.
pub(super) fn first_trigger(description: &str) -> Option<usize> {
    let mut words = String::from(" ");
    let mut places = vec![0];
    for (place, c) in description.chars().enumerate() {
        let before = words.len();
        if c.is_alphanumeric() {
            words.extend(c.to_lowercase());
        } else if !words.ends_with(' ') {
            words.push(' ');
        }
        places.resize(places.len() + words.len() - before, place);
    }
    words.push(' ');
    let phrase = PHRASES.iter().filter_map(|phrase| words.find(phrase)).min();
    let phrase = phrase.map(|at| places.get(at + 1).copied().unwrap_or_default());
    let sign = SIGNS.iter().filter_map(|sign| Some(description.split_once(sign)?.0.chars().count())).min();
    [phrase, sign, first_quoted(description)].into_iter().flatten().min()
}

/// Where the first quotation of several words stands.
fn first_quoted(text: &str) -> Option<usize> {
    let chars: Vec<char> = text.chars().collect();
    let is_letter = |at: usize| chars.get(at).is_some_and(|c| c.is_alphanumeric());
    (0..chars.len()).find(|start| {
        let Some((_, closing)) = QUOTES.iter().find(|(open, _)| chars.get(*start) == Some(open)) else { return false };
        if start.checked_sub(1).is_some_and(is_letter) {
            return false;
        }
        let inner: String = chars.iter().skip(start + 1).take(QUOTE_CHARS).collect();
        // A sign within a word is an apostrophe.
        let is_end = |(at, c): &(usize, char)| closing.contains(c) && !is_letter(start + 2 + at);
        let Some((end, _)) = inner.chars().enumerate().find(is_end) else { return false };
        let phrase: String = inner.chars().take(end).collect();
        phrase.trim().contains(' ') || (!phrase.is_ascii() && end >= 3)
    })
}

/// Whether a description has nothing but words that fit every skill, and the name of this one.
pub(super) fn is_generic(description: &str, name: &str, analyzer: &mut Analyzer) -> bool {
    let own: HashSet<String> = analyzer.terms(name).into_iter().collect();
    telling(description, analyzer).iter().all(|term| own.contains(term))
}

/// The terms of a text that tell it from others, sorted, each once.
pub(super) fn telling(text: &str, analyzer: &mut Analyzer) -> Vec<String> {
    static STEMS: LazyLock<HashSet<String>> = LazyLock::new(|| Analyzer::default().terms(COMMON).into_iter().collect());
    let mut terms = analyzer.terms(text);
    terms.retain(|term| !STEMS.contains(term));
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// What tools of all kinds do to their things: it tells what a skill is for, and not from another one.
const DOING: &str = "add adding change changing delete deleting fetch find finding list listing read reading remove removing return set \
     show update updating write writing";

/// The terms of a text by which it can be told from others of its kind, sorted, each once.
pub(super) fn telling_apart(text: &str, analyzer: &mut Analyzer) -> Vec<String> {
    static STEMS: LazyLock<HashSet<String>> = LazyLock::new(|| Analyzer::default().terms(DOING).into_iter().collect());
    let mut terms = telling(text, analyzer);
    terms.retain(|term| !STEMS.contains(term));
    terms
}

/// Whether a name says nothing of what its skill is for.
pub(super) fn is_empty_name(name: &str) -> bool {
    let lower = name.to_lowercase();
    let mut parts = lower.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.all(|part| EMPTY_NAMES.contains(&part) || part.chars().all(|c| c.is_ascii_digit()))
}
