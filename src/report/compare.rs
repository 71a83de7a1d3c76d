//! Two budgets side by side, as Markdown for a comment on a pull request. The older one comes as JSON, perhaps of an older
//! gatekey, so it is read member by member.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::Value;

use super::{
    budget::Budget,
    sections::{provenance, thousands},
    text::row,
};

/// What one budget says of a set.
struct Side {
    tools: i64,
    list: i64,
    dispatch: i64,
}

/// The differences between `old`, the JSON of a budget with or without its envelope, and `new`.
///
/// # Errors
/// `old` is no budget; says what it lacks.
pub fn compare(old: &Value, new: &Budget) -> Result<String, String> {
    let old = old.get("data").unwrap_or(old);
    let rows = old["rows"].as_array().ok_or("it has no `rows`: it is not what `gatekey budget --json` prints")?;
    let before: BTreeMap<&str, Side> = rows.iter().filter_map(|row| Some((row["set"].as_str()?, side(row)?))).collect();
    let now = serde_json::to_value(new).map_err(|error| error.to_string())?;
    let after: Vec<(&str, Side)> = now["rows"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|row| Some((row["set"].as_str()?, side(row)?)))
        .collect();

    let mut out = String::from("## Token budget: what changes\n\n");
    let tokenizer = old["tokenizer"].as_str().unwrap_or_default();
    if tokenizer != new.tokenizer {
        // Writing to a text cannot fail.
        writeln!(out, "> Counted before by {tokenizer}, now by {}: the numbers cannot be compared.\n", new.tokenizer)
            .ok();
    }
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    let mut whole = vec![vec![
        "full registry".to_owned(),
        changed(Some(number(&old["full"]["tools"])), number(&now["full"]["tools"])),
        changed(Some(number(&old["full"]["tokens"])), number(&now["full"]["tokens"])),
        "–".to_owned(),
    ]];
    for start in now["start"].as_array().into_iter().flatten() {
        let same = old["start"].as_array().into_iter().flatten().find(|other| other["era"] == start["era"]);
        let era = start["era"].as_str().unwrap_or_default();
        let total = changed(same.map(|same| number(&same["total"])), number(&start["total"]));
        whole.push(vec![format!("start, {era} client"), "–".to_owned(), total, "–".to_owned()]);
    }
    let mut n_same = 0;
    let mut changes = Vec::new();
    for (set, now) in &after {
        let then = before.get(set);
        let of = |what: fn(&Side) -> i64| changed(then.map(what), what(now));
        if then.is_some_and(|then| (then.tools, then.list, then.dispatch) == (now.tools, now.list, now.dispatch)) {
            n_same += 1;
            continue;
        }
        let name = if then.is_some() { (*set).to_owned() } else { format!("{set} (new)") };
        changes.push(vec![name, of(|side| side.tools), of(|side| side.list), of(|side| side.dispatch)]);
    }
    for (set, then) in &before {
        if !after.iter().any(|(other, _)| other == set) {
            let gone = |number: i64| format!("{} → –", signed_thousands(number));
            changes.push(vec![format!("{set} (gone)"), gone(then.tools), gone(then.list), gone(then.dispatch)]);
        }
    }
    out.push_str("| set | tools | in the list | by key |\n| --- | ---: | ---: | ---: |\n");
    for cells in whole.iter().chain(&changes) {
        out.push_str(&row(cells));
    }
    let more = if changes.is_empty() { "No set changes." } else { "Other sets do not change." };
    write!(
        out,
        "\n{more} {n_same} as before.\n\n{} Before: {}.\n",
        provenance(new),
        old["taken_at"].as_str().unwrap_or("no date")
    )
    .ok();
    Ok(out)
}

fn side(row: &Value) -> Option<Side> {
    let number = |name: &str| row[name].as_i64();
    Some(Side { tools: number("tools")?, list: number("list_tokens")?, dispatch: number("dispatch_tokens")? })
}

/// `4,501 → 4,620 (+119, +2.6 %)`, or the number alone where it is the same.
fn changed(before: Option<i64>, now: i64) -> String {
    let Some(before) = before else { return signed_thousands(now) };
    if before == now {
        return signed_thousands(now);
    }
    let difference = now - before;
    let sign = if difference > 0 { "+" } else { "−" };
    let size = thousands(usize::try_from(difference.unsigned_abs()).unwrap_or(usize::MAX));
    let share = match before {
        0 => String::new(),
        before => {
            let tenths = (difference.abs() * 1_000 + before / 2) / before;
            format!(", {sign}{}.{} %", tenths / 10, tenths % 10)
        }
    };
    format!("{} → {} ({sign}{size}{share})", signed_thousands(before), signed_thousands(now))
}

fn signed_thousands(number: i64) -> String {
    let size = thousands(usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX));
    if number < 0 { format!("−{size}") } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_says_from_where_to_where_and_how_much() {
        assert_eq!(changed(Some(4_501), 4_620), "4,501 → 4,620 (+119, +2.6 %)");
        assert_eq!(changed(Some(4_620), 4_501), "4,620 → 4,501 (−119, −2.6 %)");
        assert_eq!(changed(Some(5), 5), "5");
        assert_eq!(changed(Some(0), 5), "0 → 5 (+5)");
        assert_eq!(changed(None, 1_000), "1,000");
    }
}
