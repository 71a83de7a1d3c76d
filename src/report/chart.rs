//! The sets of a budget as bars, made of nothing but elements and widths: it scales to a phone and prints without a script.

use std::fmt::Write as _;

use super::{
    budget::Budget,
    html::escaped,
    sections::{percent, thousands},
    task::as_float,
};

/// Two bars a set, the longest as wide as there is room.
pub(super) fn chart(budget: &Budget) -> String {
    let longest = |row: &super::Row| row.list_tokens.max(row.dispatch_tokens);
    let most = budget.rows.iter().map(longest).chain([budget.full.tokens]).max().unwrap_or_default().max(1);
    let mut out = String::from(
        "<p class=\"legend\"><span class=\"key list\"></span> in the list <span class=\"key dispatch\"></span> by key</p>\n<dl class=\"chart\">\n",
    );
    for row in &budget.rows {
        let bars = [
            ("list", row.list_tokens, row.saved_percent),
            ("dispatch", row.dispatch_tokens, row.dispatch_saved_percent),
        ];
        // Writing to a text cannot fail.
        write!(out, "<dt>{}</dt><dd>", escaped(&row.set)).ok();
        for (class, tokens, saved) in bars {
            let width = 100.0 * as_float(tokens) / as_float(most);
            write!(
                out,
                "<div class=\"bar\"><i class=\"{class}\" style=\"width:{width:.2}%\"></i><b>{} <small>{} saved</small></b></div>",
                thousands(tokens),
                percent(saved)
            )
            .ok();
        }
        out.push_str("</dd>\n");
    }
    out.push_str("</dl>\n");
    out
}
