//! Why a skill will be missed: what in its name, description and body keeps a model from choosing it or from following it.
//! Says it to its author, with place and advice; changes nothing. Read [`lint`] first.

use std::{fs, path::Path};

use super::{
    lint_words::{first_trigger, is_empty_name, is_generic, telling_apart},
    twins::twins,
};
use crate::{
    model::{
        diagnostic::{Diagnostic, Place},
        limits::{HEADING_CHARS, SHORT_DESCRIPTION_CHARS, TRIGGER_CHARS},
    },
    search::Analyzer,
    skill::{Skill, SkillSet},
};

/// What is worth changing in some skills.
#[derive(Debug, Clone, Default)]
pub struct Lint {
    /// With those of loading, by file and place.
    pub findings: Vec<Diagnostic>,
    /// Skills that are nearly the same, by name, with the share of words they have in common.
    pub twins: Vec<(String, String, f64)>,
}

/// Looks at every skill that counts.
pub fn lint(set: &SkillSet) -> Lint {
    let mut analyzer = Analyzer::default();
    let mut reached: Vec<(&Path, &Skill)> = set.reached().collect();
    reached.sort_by(|a, b| a.1.name.cmp(&b.1.name));
    let mut findings: Vec<Diagnostic> = set.findings.iter().cloned().map(with_advice).collect();
    for (file, skill) in &reached {
        let mut found = of_name(skill.name.as_str());
        // What a model does not choose needs no description that makes it choose.
        if !skill.is_hidden {
            found.extend(of_description(&skill.description, skill.name.as_str(), &mut analyzer));
        }
        found.extend(of_body(&skill.body));
        if !found.is_empty() {
            let text = text_of(file);
            findings.extend(found.into_iter().map(|(what, finding)| finding.at(place(file, &text, what))));
        }
    }
    reached.retain(|(_, skill)| !skill.is_hidden);
    let words: Vec<Vec<String>> = reached
        .iter()
        .map(|(_, skill)| telling_apart(&format!("{} {}", skill.name, skill.description), &mut analyzer))
        .collect();
    let mut pairs = Vec::new();
    for twins in twins(&words) {
        let (Some((first_file, first)), Some((file, second))) = (reached.get(twins.first), reached.get(twins.second))
        else {
            continue;
        };
        let message = format!(
            "name and description share {:.0} % of their words with those of `{}` (`{}`)",
            twins.share * 100.0,
            first.name,
            first_file.display()
        );
        let hint = "make one skill of both, or say in each what only it is for";
        let finding = Diagnostic::warning("lint-near-duplicate", message).hint(hint);
        findings.push(finding.at(place(file, &text_of(file), What::Member("description"))));
        pairs.push((first.name.to_string(), second.name.to_string(), twins.share));
    }
    findings.sort_by(|a, b| (&a.at, a.code, &a.message).cmp(&(&b.at, b.code, &b.message)));
    Lint { findings, twins: pairs }
}

/// What of a SKILL.md is meant.
#[derive(Debug, Clone, Copy)]
enum What {
    Member(&'static str),
    Body,
}

type Found = Vec<(What, Diagnostic)>;

fn of_name(name: &str) -> Found {
    let hint = "name what it does and to what, such as `invoice-reminders`";
    let message = format!("the name `{name}` says nothing of what the skill is for");
    let finding = Diagnostic::warning("lint-name-generic", message).hint(hint);
    if is_empty_name(name) { vec![(What::Member("name"), finding)] } else { Vec::new() }
}

fn of_description(text: &str, name: &str, analyzer: &mut Analyzer) -> Found {
    let mut found = Vec::new();
    let mut add = |code, message: String, hint: &str| {
        found.push((What::Member("description"), Diagnostic::warning(code, message).hint(hint)));
    };
    let width = width(text);
    if is_generic(text, name, analyzer) {
        let message = "the description has only words that fit any skill, and the skill's own name";
        add("lint-description-generic", message.into(), "name the things it works on and what it does with them");
    } else if width < SHORT_DESCRIPTION_CHARS {
        let message = format!("the description has {width} characters, too few to be found by");
        add("lint-description-short", message, "say in a sentence or two what it does, to what, and when to use it");
    }
    match first_trigger(text) {
        None => {
            let message = "the description says what the skill does, but never when to use it";
            let hint = "add `Use when …`, and two or three phrases in quotes as people say them";
            add("lint-trigger-missing", message.into(), hint);
        }
        Some(at) if at >= TRIGGER_CHARS => {
            let message = format!(
                "when to use the skill is first said at character {}; some hosts show the first {TRIGGER_CHARS} only",
                at + 1
            );
            add("lint-trigger-late", message, "put when to use it into the first or second sentence");
        }
        Some(_) => {}
    }
    found
}

fn of_body(body: &str) -> Found {
    let n_chars = body.chars().count();
    if body.trim().is_empty() {
        let hint = "write below the header what to do, step by step";
        return vec![(What::Body, Diagnostic::warning("lint-body-empty", "the skill has no body").hint(hint))];
    }
    if n_chars > HEADING_CHARS && !has_heading(body) {
        let message = format!("the body has {n_chars} characters and no heading");
        let hint = "give each part a heading, such as `## Steps`, so that a reader finds it";
        return vec![(What::Body, Diagnostic::warning("lint-body-no-heading", message).hint(hint))];
    }
    Vec::new()
}

/// Whether a Markdown text has a heading outside of code.
fn has_heading(body: &str) -> bool {
    let mut is_code = false;
    let mut before = "";
    for line in body.lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            is_code = !is_code;
        } else if !is_code {
            let is_title = line.starts_with('#') && line.trim_start_matches('#').starts_with(' ');
            let is_rule = line.len() >= 3 && (line.bytes().all(|b| b == b'=') || line.bytes().all(|b| b == b'-'));
            if is_title || (is_rule && !before.is_empty()) {
                return true;
            }
        }
        before = line;
    }
    false
}

/// How long a text is in letters: a character of a script that has one for a word or syllable counts as three.
fn width(text: &str) -> usize {
    text.chars().map(|c| if matches!(c, '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}') { 3 } else { 1 }).sum()
}

/// The file once more: skills do not keep the lines of their headers.
fn text_of(file: &Path) -> String {
    fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Where in a SKILL.md something stands; the whole file where that is not found.
fn place(file: &Path, text: &str, what: What) -> Place {
    let (line, column) = find(text, what).unwrap_or_default();
    Place { file: file.into(), line, column }
}

fn find(text: &str, what: What) -> Option<(usize, usize)> {
    let mut lines = text.lines().zip(1..).skip_while(|(line, _)| !is_fence(line));
    let (_, first) = lines.next()?;
    let mut last = first;
    for (line, number) in lines.by_ref() {
        last = number;
        if is_fence(line) || line.trim_end() == "..." {
            break;
        }
        if let What::Member(name) = what
            && let Some(value) = line.strip_prefix(name).and_then(|rest| rest.trim_start().strip_prefix(':'))
        {
            let before = line.chars().count() - value.trim_start().chars().count();
            return Some((number, before.min(line.chars().count().saturating_sub(1)) + 1));
        }
    }
    match what {
        // A member that is not there belongs into the header.
        What::Member(_) => Some((first, 1)),
        What::Body => Some((lines.find(|(line, _)| !line.trim().is_empty()).map_or(last, |(_, number)| number), 1)),
    }
}

fn is_fence(line: &str) -> bool {
    line.trim_start_matches('\u{feff}').trim_end() == "---"
}

/// A finding of loading, with a place in the header and with what to write instead.
fn with_advice(mut finding: Diagnostic) -> Diagnostic {
    let (member, advice) = match finding.code {
        "skill-control-character" => (Some("description"), "type the description anew, without what was pasted"),
        "skill-description-cut" => {
            (Some("description"), "keep what it does and when to use it; the rest belongs below")
        }
        "skill-description-missing" => (Some("description"), "add `description:` with what it does and when to use it"),
        "skill-duplicate" => (Some("name"), "give it a name of its own, or keep copies outside of the skills folder"),
        "skill-extra-member" => (None, "put it into `metadata`"),
        "skill-file-case" => (None, "rename it"),
        "skill-frontmatter-invalid" => (None, "mend that line, or put the whole value in double quotes"),
        "skill-frontmatter-missing" => (None, "begin the file with `---`, `name:`, `description:` and `---`"),
        "skill-frontmatter-quoted" => (None, "put values with `: `, brackets or quotes in double quotes"),
        "skill-frontmatter-unclosed" => (None, "end the header with a line `---`"),
        "skill-name-differs" => (Some("name"), "give the folder and the skill the same name"),
        "skill-name-invalid" => (Some("name"), "write it in lower case with `-` between words"),
        "skill-name-missing" => (Some("name"), "add `name:` with the name of the folder"),
        "skill-member-type" => (None, "write it in the form that the Agent Skills standard gives it"),
        "skills-folder" => (None, "make it readable, or leave it out"),
        "skill-encoding" | "skill-binary" => (None, "save it as UTF-8 text"),
        "skill-too-large" | "skill-too-many" => {
            (None, "move what is seldom needed into files of their own, or elsewhere")
        }
        _ => return finding,
    };
    if let Some(at) = finding.at.as_mut().filter(|at| at.line == 0)
        && let Some(member) = member
    {
        *at = place(&at.file, &text_of(&at.file), What::Member(member));
    }
    finding.hint(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes of a skill's name and description.
    fn codes(name: &str, description: &str) -> String {
        let mut found = of_name(name);
        found.extend(of_description(description, name, &mut Analyzer::default()));
        found.iter().map(|(_, finding)| finding.code).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn descriptions_have_their_findings() {
        let late = format!("Writes reports on {}. Use when a report is due.", "sales and returns, ".repeat(14));
        for (name, description, expected) in [
            // Good ones, in several languages.
            ("invoices", "Issues invoices and credit notes. Use when a customer asks for an invoice.", ""),
            ("invoices", r#"Issues invoices and credit notes. For "send the invoice again", "make out a bill"."#, ""),
            ("invoices", "Issues invoices and credit notes: 'send the invoice again', 'make out a bill'.", ""),
            ("faktury", "Vystavuje faktury a dobropisy. Použij, když zákazník chce fakturu.", ""),
            ("rechnungen", "Stellt Rechnungen und Gutschriften aus. Verwende es, wenn jemand mahnt.", ""),
            ("factures", "Établit les factures et les avoirs, lorsqu’un client en demande une.", ""),
            ("facturas", "Emite facturas y abonos. Úsala cuando un cliente pida una factura.", ""),
            ("faktury", "Wystawia faktury i korekty. Gdy klient prosi o fakturę za zamówienie.", ""),
            ("scheta", "Выставляет счета и кредит-ноты. Когда клиент просит прислать счёт.", ""),
            ("fapiao", "开具发票和贷项通知单。当用户要求重新发送发票时使用。", ""),
            ("seikyu", "請求書とクレジットノートを発行します。ユーザーが請求書を求めたときに使います。", ""),
            // What, but never when.
            ("invoices", "Issues invoices and credit notes for customers and firms abroad.", "lint-trigger-missing"),
            ("invoices", "Issues the shop's invoices, and the customers' credit notes too.", "lint-trigger-missing"),
            ("invoices", "Issues the \"best\" invoices and credit notes of all the shops.", "lint-trigger-missing"),
            ("faktury", "Vystavuje faktury a dobropisy pro zákazníky doma i v zahraničí.", "lint-trigger-missing"),
            ("fapiao", "开具发票和贷项通知单，并把它们发送给国内外的客户。", "lint-trigger-missing"),
            ("reports", &late, "lint-trigger-late"),
            // Too little.
            ("invoices", "Issues invoices.", "lint-description-short lint-trigger-missing"),
            ("invoices", "Use for invoices and bills.", "lint-description-short"),
            ("pdf", "Helps with documents", "lint-description-generic lint-trigger-missing"),
            (
                "pdf",
                "A powerful tool that helps the user with PDF files, documents and more.",
                "lint-description-generic lint-trigger-missing",
            ),
            ("git-helper", "Use when you need help with git tasks.", "lint-description-generic"),
            // Names.
            ("utils", "Issues invoices and credit notes. Use when a customer asks for one.", "lint-name-generic"),
            ("my-skill-2", "Issues invoices and credit notes. Use when a customer asks for one.", "lint-name-generic"),
            ("test", "Issues invoices and credit notes. Use when a customer asks for one.", "lint-name-generic"),
            ("test-plans", "Issues invoices and credit notes. Use when a customer asks for one.", ""),
        ] {
            assert_eq!(codes(name, description), expected, "{name}: {description}");
        }
    }

    #[test]
    fn bodies_are_there_and_long_ones_have_headings() {
        let long = "Do this, then that.\n".repeat(150);
        for (body, expected) in [
            ("", "lint-body-empty"),
            (" \n\n", "lint-body-empty"),
            ("Do this.", ""),
            (&long, "lint-body-no-heading"),
            (&format!("{long}## Then\n"), ""),
            (&format!("Then\n====\n{long}"), ""),
            (&format!("```\n# a comment\n```\n{long}"), "lint-body-no-heading"),
            (&format!("#tag\n{long}"), "lint-body-no-heading"),
        ] {
            let found = of_body(body);
            let codes: Vec<_> = found.iter().map(|(_, finding)| finding.code).collect();
            assert_eq!(codes.join(" "), expected, "{body:.20}");
        }
    }

    #[test]
    fn places_are_those_of_values() {
        let text = "\n---\nname: a\ndescription:  Says it.\nmetadata:\n---\n\n\nBody\n";
        assert_eq!(find(text, What::Member("name")), Some((3, 7)));
        assert_eq!(find(text, What::Member("description")), Some((4, 15)));
        assert_eq!(find(text, What::Member("license")), Some((2, 1)));
        assert_eq!(find(text, What::Body), Some((9, 1)));
        assert_eq!(find("---\nname: a\n---\n", What::Body), Some((3, 1)));
        assert_eq!(find("no header", What::Body), None);
    }
}
