//! What is thought of the skills that were read: how far each is trusted, and which the scan has withheld.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    catalog::scan_files,
    config::{Config, Scan},
    model::{
        diagnostic::{Diagnostic, Place},
        hidden::visible,
        name::SkillName,
        trust::Trust,
    },
    scan::Scanner,
    skill::{SIGNATURE_FILE, SkillSet},
    trust::{Approvals, Signed, check_key, signer, trust_of},
};

/// What is thought of the skills.
#[derive(Debug, Clone)]
pub struct Vetting {
    /// What the user approved.
    approvals: Approvals,
    /// How far each skill is trusted.
    pub trust: Arc<BTreeMap<SkillName, Trust>>,
    /// Why those are withheld that are.
    pub withheld: Arc<BTreeMap<SkillName, String>>,
    /// What texts are looked through for.
    pub scanner: Arc<Scanner>,
    /// The config and the texts that the scanner is of.
    scanner_of: (Scan, Vec<String>),
    /// What is wrong with these texts.
    of_patterns: Vec<Diagnostic>,
    /// By the digests of those skills that were scanned.
    scanned: BTreeMap<String, Option<String>>,
}

impl Vetting {
    /// Looks at `skills`. What cannot be read stays as it was `before`, and is a finding.
    pub(super) fn new(config: &Config, skills: &SkillSet, before: Option<&Self>) -> (Self, Vec<Diagnostic>) {
        let (scanner, scanner_of, of_patterns) = scanner(config, before);
        let mut findings = of_patterns.clone();
        let approvals = config.approvals.as_deref().map_or_else(|| Ok(Approvals::default()), Approvals::read);
        let approvals = approvals.unwrap_or_else(|error| {
            let message = format!("what was approved cannot be read: {error}");
            let file = config.approvals.clone().unwrap_or_default();
            findings.push(Diagnostic::error("trust-unreadable", message).at(Place { file, ..Place::default() }));
            before.map(|before| before.approvals.clone()).unwrap_or_default()
        });
        for (name, text) in &config.keys {
            if let Err(error) = check_key(text) {
                let message = format!("key `{name}` of `trust.keys` cannot be used: {error}");
                findings.push(Diagnostic::error("trust-key", message));
            }
        }
        let mut trust = BTreeMap::new();
        for (name, skill) in &skills.skills {
            let signed = signer(skill, &config.keys);
            trust.insert(name.clone(), trust_of(skill, &approvals, signed.as_ref()));
            if let Some(Signed::Invalid(why)) = signed {
                let message = format!("the signature of skill `{name}` counts for nothing: {why}");
                let place = Place { file: skill.folder.join(SIGNATURE_FILE), ..Place::default() };
                findings.push(Diagnostic::warning("trust-signature", message).at(place));
            }
        }
        let known = before.filter(|before| before.scanner_of == scanner_of).map(|before| &before.scanned);
        let (mut withheld, mut scanned) = (BTreeMap::new(), BTreeMap::new());
        for (name, skill) in &skills.skills {
            let Some(least) = trust.get(name).and_then(|trust| config.trust.of(*trust).withhold) else { continue };
            let digest = skill.set_digest().map(|digest| format!("{least:?} {digest}"));
            let seen = digest.as_ref().and_then(|digest| known?.get(digest).cloned());
            let reason = seen.unwrap_or_else(|| {
                let found = scan_files(skill, &scanner);
                let worst = found.into_iter().find(|(_, _, found)| found.severity <= least);
                worst.map(|(file, line, found)| format!("{} ({file}:{line})", found.reason))
            });
            withheld.extend(reason.clone().map(|reason| (name.clone(), reason)));
            scanned.extend(digest.map(|digest| (digest, reason)));
        }
        let (trust, withheld) = (Arc::new(trust), Arc::new(withheld));
        (Self { approvals, trust, withheld, scanner, scanner_of, of_patterns, scanned }, findings)
    }

    /// Whether a snapshot of `other` would be the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.trust == other.trust && self.withheld == other.withheld && self.scanner_of == other.scanner_of
    }
}

/// The scanner that the config wants; the one before where its patterns cannot be used, or those of the program.
fn scanner(config: &Config, before: Option<&Vetting>) -> (Arc<Scanner>, (Scan, Vec<String>), Vec<Diagnostic>) {
    let mut findings = Vec::new();
    let texts: Vec<String> =
        config.scan.patterns.iter().map(|file| std::fs::read_to_string(file).unwrap_or_default()).collect();
    let of = (config.scan.clone(), texts);
    if let Some(before) = before.filter(|before| before.scanner_of == of) {
        return (Arc::clone(&before.scanner), of, before.of_patterns.clone());
    }
    if config.scan == Scan::default() {
        return (Arc::clone(Scanner::embedded()), of, findings);
    }
    for (file, text) in config.scan.patterns.iter().zip(&of.1) {
        let error = match Scanner::with(std::iter::once(text.as_str()), &[]) {
            Ok(_) if !text.is_empty() => continue,
            Ok(_) => "it is empty, or cannot be read".to_owned(),
            Err(error) => error.to_string(),
        };
        let place = Place { file: file.clone(), ..Place::default() };
        findings.push(Diagnostic::error("scan-patterns", format!("patterns cannot be used: {error}")).at(place));
    }
    let made = Scanner::with(of.1.iter().map(String::as_str), &config.scan.ignored).map(Arc::new);
    if let Ok(all) = Scanner::with(of.1.iter().map(String::as_str), &[])
        && !config.scan.ignored.is_empty()
    {
        let is_unknown = |id: &&String| !all.patterns().any(|(known, _, _)| known == id.as_str());
        for id in config.scan.ignored.iter().filter(is_unknown) {
            let message = format!("`{}` of `scan.ignore` is the id of no pattern", visible(id));
            findings.push(Diagnostic::warning("scan-patterns", message));
        }
    }
    let instead = || before.map_or_else(|| Arc::clone(Scanner::embedded()), |before| Arc::clone(&before.scanner));
    (made.unwrap_or_else(|_| instead()), of, findings)
}
