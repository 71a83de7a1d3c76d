//! A budget as one page that needs nothing else: no script, no font, no request. Light or dark as the reader's system is.

use std::fmt::Write as _;

use super::{
    budget::Budget,
    chart::chart,
    sections::{Section, percent, provenance, sections, thousands},
};

const STYLE: &str = "
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --faint: #59636e; --line: #d1d9e0; --list: #1f6feb; --dispatch: #0a7f5a; --bed: #f3f5f7; }
@media (prefers-color-scheme: dark) { :root { --paper: #0d1117; --ink: #e6edf3; --faint: #9198a1; --line: #30363d; --list: #4493f8; --dispatch: #3fb68b; --bed: #161b22; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 62rem; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
p { margin: .4rem 0; }
.lead { font-size: 1.05rem; }
.note, .legend { color: var(--faint); font-size: .875rem; }
.chart { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: .55rem .9rem; margin: .8rem 0; }
.chart dt { overflow-wrap: anywhere; padding-top: .1rem; }
.chart dd { margin: 0; min-width: 0; }
.bar { display: grid; grid-template-columns: 1fr 9.5rem; align-items: center; gap: .6rem; font-size: .8125rem; line-height: 1.35; }
.bar i { display: block; height: .7rem; min-width: 2px; border-radius: 2px; }
.bar b { font-weight: 600; font-variant-numeric: tabular-nums; white-space: nowrap; }
.bar small { color: var(--faint); font-weight: 400; font-size: .75rem; }
.list { background: var(--list); } .dispatch { background: var(--dispatch); }
.key { display: inline-block; width: .8rem; height: .8rem; border-radius: 2px; vertical-align: -1px; }
.key + .key, .dispatch.key { margin-left: .8rem; }
.wide { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
th, td { padding: .4rem .7rem; text-align: left; border-top: 1px solid var(--line); vertical-align: top; }
thead th { background: var(--bed); border-top: 0; font-weight: 600; }
tbody td:first-child { white-space: nowrap; }
code { font-size: .92em; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
@media (max-width: 36rem) { .chart { grid-template-columns: 1fr; gap: .1rem; } .chart dt { margin-top: .6rem; font-weight: 600; } }
@media print { body { max-width: none; } .wide { overflow: visible; } }
";

/// The whole page.
pub fn html(budget: &Budget) -> String {
    let start = budget.start.first();
    let start_tokens = start.map_or(0, |start| start.total);
    let share = start.map_or(0.0, |start| start.percent_of_full);
    let mut out = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    // Even a name that gets past the escaping could load nothing.
    out.push_str(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n",
    );
    // Writing to a text cannot fail.
    write!(out, "<title>Token budget</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>Token budget</h1>\n").ok();
    writeln!(
        out,
        "<p class=\"lead\">A fresh client gets {} tokens instead of {}: {} of the full registry of {} tools.</p>",
        thousands(start_tokens),
        thousands(budget.full.tokens),
        percent(share),
        budget.full.tools
    )
    .ok();
    writeln!(out, "<p class=\"note\">{}</p>", escaped(&provenance(budget))).ok();
    out.push_str("<h2>Tokens of each set of skills</h2>\n");
    out.push_str(&chart(budget));
    for section in sections(budget) {
        out.push_str(&table(&section));
    }
    out.push_str("</body>\n</html>\n");
    out
}

fn table(section: &Section) -> String {
    let class = |is_number: bool| if is_number { " class=\"n\"" } else { "" };
    let mut out =
        format!("<h2>{}</h2>\n<div class=\"wide\" tabindex=\"0\">\n<table>\n<thead><tr>", escaped(&section.title));
    for (name, is_number) in &section.head {
        // Writing to a text cannot fail.
        write!(out, "<th scope=\"col\"{}>{}</th>", class(*is_number), escaped(name)).ok();
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &section.rows {
        out.push_str("<tr>");
        for (cell, (_, is_number)) in row.iter().zip(&section.head) {
            write!(out, "<td{}>{}</td>", class(*is_number), escaped(cell)).ok();
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    for note in &section.notes {
        writeln!(out, "<p class=\"note\">{}</p>", with_code(note)).ok();
    }
    out
}

/// A sentence with what stands in back-ticks as code.
fn with_code(note: &str) -> String {
    let mut out = String::new();
    for (index, part) in note.split('`').enumerate() {
        match index % 2 {
            0 => out.push_str(&escaped(part)),
            // Writing to a text cannot fail.
            _ => write!(out, "<code>{}</code>", escaped(part)).unwrap_or_default(),
        }
    }
    out
}

/// As text within an element or a quoted attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}
