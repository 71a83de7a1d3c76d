//! Findings for other programs: SARIF 2.1.0, GitHub's annotations, JUnit's XML. Shapes only; what is found is `check`'s.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::model::diagnostic::{CODES, Diagnostic, Place, Severity};

/// One log of one run, for code scanning.
///
/// **Source:** OASIS SARIF 2.1.0, sections 3.13, 3.14, 3.27, 3.28, 3.30.
pub(super) fn sarif(findings: &[Diagnostic]) -> Value {
    let rules: Vec<Value> = CODES.iter().map(|code| json!({"id": code})).collect();
    let result = |finding: &Diagnostic| {
        let level = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let mut result = json!({"ruleId": finding.code, "level": level, "message": {"text": whole(finding)}});
        if let Ok(index) = CODES.binary_search(&finding.code) {
            result["ruleIndex"] = json!(index);
        }
        if let Some(place) = &finding.at {
            result["locations"] = json!([location(place)]);
        }
        result
    };
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "gatekey", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "columnKind": "unicodeCodePoints",
            "results": findings.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

fn location(place: &Place) -> Value {
    let mut physical = json!({"artifactLocation": {"uri": uri(place)}});
    if place.line > 0 {
        physical["region"] = json!({"startLine": place.line});
        if place.column > 0 {
            physical["region"]["startColumn"] = json!(place.column);
        }
    }
    json!({"physicalLocation": physical})
}

/// A path as a relative reference, or an absolute one as `file:`; `/` between its parts.
fn uri(place: &Place) -> String {
    let path = place.file.to_string_lossy().replace('\\', "/");
    let mut uri = String::from(if place.file.is_absolute() { "file://" } else { "" });
    for byte in path.trim_start_matches("./").bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a text never fails.
            write!(uri, "%{byte:02X}").ok();
        }
    }
    uri
}

/// One workflow command a line, which GitHub shows beside the lines of a pull request.
///
/// **Source:** docs.github.com, "Workflow commands for GitHub Actions".
pub(super) fn github(findings: &[Diagnostic]) -> String {
    let text = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |value: &str| text(value).replace(':', "%3A").replace(',', "%2C");
    let line = |finding: &Diagnostic| {
        let command = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let mut properties = Vec::new();
        if let Some(Place { file, line, column }) = &finding.at {
            properties.push(format!("file={}", property(&file.to_string_lossy())));
            for (name, number) in [("line", line), ("col", column)] {
                if *number > 0 {
                    properties.push(format!("{name}={number}"));
                }
            }
        }
        properties.push(format!("title={}", property(finding.code)));
        format!("::{command} {}::{}\n", properties.join(","), text(&whole(finding)))
    };
    findings.iter().map(line).collect()
}

/// A suite with a case for each finding, of which errors and warnings have failed; one that passed where there is none.
pub(super) fn junit(findings: &[Diagnostic]) -> String {
    let failing = |finding: &&Diagnostic| finding.severity != Severity::Note;
    let n_failures = findings.iter().filter(failing).count();
    let mut cases = String::new();
    for finding in findings {
        let place = finding.at.as_ref().map(ToString::to_string).unwrap_or_default();
        let name = escaped(&[place.as_str(), &finding.message].join(" "));
        write!(cases, "    <testcase classname=\"{}\" name=\"{}\"", finding.code, name.trim()).ok();
        if failing(&finding) {
            let text = escaped(&whole(finding));
            write!(cases, ">\n      <failure message=\"{text}\"/>\n    </testcase>\n").ok();
        } else {
            cases.push_str("/>\n");
        }
    }
    if findings.is_empty() {
        cases.push_str("    <testcase classname=\"gatekey\" name=\"check\"/>\n");
    }
    let n_cases = findings.len().max(1);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"gatekey check\" tests=\"{n_cases}\" \
         failures=\"{n_failures}\" errors=\"0\" skipped=\"0\">\n{cases}  </testsuite>\n</testsuites>\n"
    )
}

/// What may stand in an attribute: without what XML 1.0 cannot hold at all.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

fn whole(finding: &Diagnostic) -> String {
    match &finding.hint {
        Some(hint) => format!("{}\nhint: {hint}", finding.message),
        None => finding.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Vec<Diagnostic> {
        let place = |line, column| Place { file: "maps/my shop,1.toml".into(), line, column };
        vec![
            Diagnostic::error("gate-uncovered-tool", "tool `a<b>\u{1}&\"` is 100% closed").hint("add it"),
            Diagnostic::warning("gate-dead-prefix", "`x_` matches: nothing").at(place(3, 7)),
            Diagnostic::note("name-clash", "two").at(place(0, 0)),
        ]
    }

    #[test]
    fn sarif_has_a_rule_a_level_and_a_place_for_each() {
        let log = sarif(&findings());
        let results = log["runs"][0]["results"].as_array().unwrap();
        let levels: Vec<&Value> = results.iter().map(|result| &result["level"]).collect();
        assert_eq!(levels, ["error", "warning", "note"]);
        for result in results {
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(log["runs"][0]["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
        }
        assert_eq!(results[0].get("locations"), None);
        let physical = json!({"artifactLocation": {"uri": "maps/my%20shop%2C1.toml"}, "region": {"startLine": 3, "startColumn": 7}});
        assert_eq!(results[1]["locations"], json!([{"physicalLocation": physical}]));
        assert_eq!(results[2]["locations"][0]["physicalLocation"].get("region"), None);
    }

    #[test]
    fn annotations_stay_on_their_line() {
        insta::assert_snapshot!(github(&findings()).replace('\u{1}', "(1)"), @r#"
        ::error title=gate-uncovered-tool::tool `a<b>(1)&"` is 100%25 closed%0Ahint: add it
        ::warning file=maps/my shop%2C1.toml,line=3,col=7,title=gate-dead-prefix::`x_` matches: nothing
        ::notice file=maps/my shop%2C1.toml,title=name-clash::two
        "#);
    }

    #[test]
    fn junit_is_xml_whatever_a_finding_says() {
        insta::assert_snapshot!(junit(&findings()), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites>
          <testsuite name="gatekey check" tests="3" failures="2" errors="0" skipped="0">
            <testcase classname="gate-uncovered-tool" name="tool `a&lt;b&gt;�&amp;&quot;` is 100% closed">
              <failure message="tool `a&lt;b&gt;�&amp;&quot;` is 100% closed&#10;hint: add it"/>
            </testcase>
            <testcase classname="gate-dead-prefix" name="maps/my shop,1.toml:3:7 `x_` matches: nothing">
              <failure message="`x_` matches: nothing"/>
            </testcase>
            <testcase classname="name-clash" name="maps/my shop,1.toml two"/>
          </testsuite>
        </testsuites>
        "#);
        assert!(junit(&[]).contains("tests=\"1\" failures=\"0\""));
    }
}
