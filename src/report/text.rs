//! A budget as text for a terminal, and as Markdown.

use std::fmt::Write as _;

use super::{
    budget::Budget,
    sections::{Section, provenance, sections},
};

/// For a terminal: aligned columns, no color.
pub fn text(budget: &Budget) -> String {
    let mut out = String::new();
    for section in sections(budget) {
        // Writing to a text cannot fail.
        writeln!(out, "{}\n", section.title).ok();
        out.push_str(&aligned(&section));
        for note in &section.notes {
            writeln!(out, "  {note}").ok();
        }
        out.push('\n');
    }
    out.push_str(&provenance(budget));
    out.push('\n');
    out
}

fn aligned(section: &Section) -> String {
    let width = |text: &str| text.chars().count();
    let mut widths: Vec<usize> = section.head.iter().map(|(name, _)| width(name)).collect();
    for row in &section.rows {
        for (most, cell) in widths.iter_mut().zip(row) {
            *most = (*most).max(width(cell));
        }
    }
    let head: Vec<String> = section.head.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut out = String::new();
    for row in std::iter::once(&head).chain(&section.rows) {
        let mut line = String::new();
        for ((cell, most), (_, is_number)) in row.iter().zip(&widths).zip(&section.head) {
            let pad = " ".repeat(most - width(cell));
            line.push_str("  ");
            line.push_str(&if *is_number { format!("{pad}{cell}") } else { format!("{cell}{pad}") });
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// As Markdown, for a pull request or a wiki.
pub fn markdown(budget: &Budget) -> String {
    let mut out = String::from("## Token budget\n\n");
    for section in sections(budget) {
        // Writing to a text cannot fail.
        writeln!(out, "### {}\n", section.title).ok();
        let names: Vec<String> = section.head.iter().map(|(name, _)| (*name).to_owned()).collect();
        let marks: Vec<&str> =
            section.head.iter().map(|(_, is_number)| if *is_number { "---:" } else { "---" }).collect();
        out.push_str(&row(&names));
        writeln!(out, "| {} |", marks.join(" | ")).ok();
        for cells in &section.rows {
            out.push_str(&row(cells));
        }
        for note in &section.notes {
            write!(out, "\n{note}\n").ok();
        }
        out.push('\n');
    }
    out.push_str(&provenance(budget));
    out.push('\n');
    out
}

/// A row of a Markdown table; names may have what is a mark there.
pub(super) fn row(cells: &[String]) -> String {
    let cells: Vec<String> =
        cells.iter().map(|cell| cell.replace('\\', "\\\\").replace('|', "\\|").replace(['\n', '\r'], " ")).collect();
    format!("| {} |\n", cells.join(" | "))
}
