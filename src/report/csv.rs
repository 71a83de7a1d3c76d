//! The sets of a budget as CSV (RFC 4180), one row a set, each complete in itself.

use super::budget::Budget;

/// One row a set behind the head.
pub fn csv(budget: &Budget) -> String {
    let head = [
        "set",
        "tools",
        "list_tokens",
        "saved_percent",
        "window_percent",
        "dispatch_tokens",
        "dispatch_saved_percent",
        "dispatch_window_percent",
        "playbook_tokens",
        "break_even_calls",
        "full_tokens",
        "window",
        "tokenizer",
        "is_estimate",
        "source",
        "taken_at",
    ];
    let mut out = line(&head.map(str::to_owned));
    for row in &budget.rows {
        let source = match budget.source {
            super::Source::Live => "live",
            super::Source::Lock => "lock",
        };
        out.push_str(&line(&[
            row.set.clone(),
            row.tools.to_string(),
            row.list_tokens.to_string(),
            format!("{:.1}", row.saved_percent),
            format!("{:.1}", row.window_percent),
            row.dispatch_tokens.to_string(),
            format!("{:.1}", row.dispatch_saved_percent),
            format!("{:.1}", row.dispatch_window_percent),
            row.playbook_tokens.to_string(),
            row.break_even_calls.map(|calls| format!("{calls:.1}")).unwrap_or_default(),
            budget.full.tokens.to_string(),
            budget.window.to_string(),
            budget.tokenizer.clone(),
            budget.is_estimate.to_string(),
            source.to_owned(),
            budget.taken_at.clone(),
        ]));
    }
    out
}

fn line(cells: &[String]) -> String {
    let quoted = |cell: &String| {
        if cell.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.clone() }
    };
    format!("{}\n", cells.iter().map(quoted).collect::<Vec<_>>().join(","))
}
