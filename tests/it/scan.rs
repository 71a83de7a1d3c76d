//! The scan, measured: inert texts of each class of attack, and honest ones that look like them.

use std::{collections::BTreeMap, fs};

use gatekey::{
    model::diagnostic::Severity,
    scan::{Class, Kind, Scanner},
};
use serde::Deserialize;

use crate::support::root;

#[derive(Deserialize)]
struct Texts {
    #[serde(default)]
    skill: Vec<String>,
    #[serde(default)]
    tool: Vec<String>,
}

fn fixture(name: &str) -> String {
    fs::read_to_string(root().join("tests/fixtures/scan").join(name)).unwrap()
}

#[test]
fn each_class_of_attack_is_found() {
    let scanner = Scanner::embedded();
    let hostile: BTreeMap<String, Texts> = toml::from_str(&fixture("hostile.toml")).unwrap();
    assert_eq!(hostile.len(), 9);
    let (mut n_texts, mut missed, mut too_few) = (0, Vec::<String>::new(), Vec::<String>::new());
    for (class, Texts { skill, tool }) in &hostile {
        let mut of_class = (0, 0);
        for (kind, texts) in [(Kind::Skill, skill), (Kind::Tool, tool)] {
            for text in texts {
                // Secrets stand in two parts there.
                let text = if class == "secret" { text.replacen('+', "", 1) } else { text.clone() };
                let found = scanner.scan(&text, kind);
                of_class.0 += 1;
                if found.is_empty() {
                    missed.push(format!("{class}: {text:?}"));
                } else {
                    of_class.1 += 1;
                }
                for found in &found {
                    assert!(text.is_char_boundary(found.at) && !found.excerpt.is_empty(), "{found:?}");
                }
            }
        }
        n_texts += of_class.0;
        if of_class.1 * 100 < of_class.0 * 95 {
            too_few.push(format!("{class}: {} of {}", of_class.1, of_class.0));
        }
    }
    assert!(too_few.is_empty(), "{too_few:#?}; missed {missed:#?}");
    assert!(n_texts >= 100, "{n_texts}");
}

#[derive(Deserialize)]
struct Others {
    text: Vec<Other>,
}

#[derive(Deserialize)]
struct Other {
    class: String,
    r#where: String,
    set: String,
    text: String,
}

/// Of texts that the patterns were not made for, fewer are found: a scan is no gate. What matters is that it is known.
#[test]
fn texts_of_somebody_who_had_not_seen_the_patterns_are_found_as_far_as_is_said() {
    let others: Others = toml::from_str(&fixture("others.toml")).unwrap();
    let mut found: BTreeMap<(bool, bool), (usize, usize)> = BTreeMap::new();
    for Other { class, r#where, set, text } in &others.text {
        let text = if class == "secret" { text.replacen('¦', "", 1) } else { text.clone() };
        let kind = if r#where == "tool" { Kind::Tool } else { Kind::Skill };
        let is_clean = class == "clean";
        let mut all = Scanner::embedded().scan(&text, kind).into_iter();
        let is_found = if is_clean { all.any(|found| found.severity < Severity::Note) } else { all.next().is_some() };
        let count = found.entry((is_clean, set == "held")).or_default();
        *count = (count.0 + usize::from(is_found), count.1 + 1);
    }
    assert_eq!(found[&(false, false)], (90, 90), "hostile, made for");
    assert_eq!(found[&(false, true)], (51, 90), "hostile, held back: README says it");
    assert_eq!(found[&(true, false)], (0, 30), "honest, made for");
    assert_eq!(found[&(true, true)], (1, 30), "honest, held back: README says it");
}

#[test]
fn honest_texts_have_no_finding_above_a_note() {
    #[derive(Deserialize)]
    struct Honest {
        texts: Vec<String>,
    }
    let scanner = Scanner::embedded();
    let honest: Honest = toml::from_str(&fixture("honest.toml")).unwrap();
    assert!(honest.texts.len() >= 40);
    let mut wrong = Vec::new();
    for text in &honest.texts {
        for kind in [Kind::Skill, Kind::Tool] {
            let found = scanner.scan(text, kind).into_iter().filter(|found| found.severity < Severity::Note);
            wrong.extend(found.map(|found| format!("{kind:?} {}: {text}", found.id)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_pattern_says_why_and_whence_and_ids_are_unique() {
    let mut ids = Vec::new();
    for (id, reason, source) in Scanner::embedded().patterns() {
        assert!(!reason.is_empty() && !source.is_empty(), "{id}");
        ids.push(id);
    }
    let n_ids = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), n_ids);
    assert_eq!(Class::Injection.code(), "scan-injection");
}

#[test]
fn texts_of_any_length_are_looked_through_in_linear_time() {
    // Each of these would take a backtracking engine forever.
    for text in ["ignore ".repeat(100_000), "![".repeat(100_000), "curl ".repeat(100_000), "A".repeat(1_000_000)] {
        Scanner::embedded().scan(&text, Kind::Skill);
        Scanner::embedded().scan(&text, Kind::Tool);
    }
}
