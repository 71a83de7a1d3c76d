//! Lines of an invoice that is being made, and the arithmetic of VAT.
//!
//! Prices include VAT. The tax is computed once per rate from the sum of its lines; the last line of a rate takes
//! what rounding leaves over, so lines, recapitulation and head always agree.

use std::collections::BTreeMap;

use rusqlite::params;

use crate::{common::InvoiceId, ctx::Ctx, error::ShopError};

/// VAT rate of shipping and of whatever else has none of its own.
pub(crate) const STANDARD_PERCENT: i64 = 21;

/// A line to write.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// Number on the paper.
    pub(crate) line: i64,
    pub(crate) description: String,
    pub(crate) variant_id: Option<i64>,
    pub(crate) quantity: i64,
    /// With VAT.
    pub(crate) unit_cents: i64,
    pub(crate) vat_percent: i64,
}

impl Line {
    /// quantity * unit.
    pub(crate) fn total_cents(&self) -> i64 {
        self.quantity * self.unit_cents
    }
}

/// Writes lines and the sums of the head; `net_of_rate` gives the tax base of a rate from percent and total.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn insert(
    ctx: &Ctx<'_>,
    id: InvoiceId,
    lines: &[Line],
    net_of_rate: impl Fn(i64, i64) -> i64,
) -> Result<(), ShopError> {
    let nets = nets(lines, net_of_rate);
    for (line, net) in lines.iter().zip(nets) {
        let total = line.total_cents();
        ctx.run(
            "insert into invoice_lines (invoice_id, line, description, variant_id, quantity, unit_cents, vat_percent,
                 net_cents, vat_cents, total_cents) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                id,
                line.line,
                line.description,
                line.variant_id,
                line.quantity,
                line.unit_cents,
                line.vat_percent,
                net,
                total - net,
                total
            ],
        )?;
    }
    ctx.run(
        "update invoices set (net_cents, vat_cents, total_cents) =
             (select sum(net_cents), sum(vat_cents), sum(total_cents) from invoice_lines where invoice_id = ?1) where id = ?1",
        [id],
    )?;
    Ok(())
}

/// Tax base of an amount that includes VAT, rounded half away from zero.
pub(crate) fn net(percent: i64, total_cents: i64) -> i64 {
    share(total_cents, 100, 100 + percent)
}

/// `amount * part / whole`, rounded half away from zero.
pub(crate) fn share(amount: i64, part: i64, whole: i64) -> i64 {
    let product = i128::from(amount) * i128::from(part);
    let whole = i128::from(whole);
    if whole == 0 {
        return 0;
    }
    let half = whole.abs() / 2 * product.signum() * whole.signum();
    i64::try_from((product + half) / whole).unwrap_or(i64::MAX)
}

/// Divides an amount over VAT rates in proportion to their totals; the last rate takes the rest.
pub(crate) fn spread(amount: i64, totals: &BTreeMap<i64, i64>) -> Vec<(i64, i64)> {
    let whole: i64 = totals.values().sum();
    let mut left = amount;
    let n_rates = totals.len();
    let mut parts = Vec::new();
    for (index, (percent, total)) in totals.iter().enumerate() {
        let is_last = index + 1 == n_rates;
        let part = if is_last { left } else { share(amount, *total, whole) };
        left -= part;
        parts.push((*percent, part));
    }
    parts.retain(|(_, part)| *part != 0);
    parts
}

/// Sums lines per VAT rate.
pub(crate) fn per_rate(lines: &[Line]) -> BTreeMap<i64, i64> {
    let mut totals = BTreeMap::new();
    for line in lines {
        *totals.entry(line.vat_percent).or_insert(0) += line.total_cents();
    }
    totals
}

fn nets(lines: &[Line], net_of_rate: impl Fn(i64, i64) -> i64) -> Vec<i64> {
    let mut nets: Vec<i64> = lines.iter().map(|line| net(line.vat_percent, line.total_cents())).collect();
    for (percent, total) in per_rate(lines) {
        let of_rate = |line: &&Line| line.vat_percent == percent;
        let sum: i64 = lines.iter().zip(&nets).filter(|(line, _)| of_rate(line)).map(|(_, net)| net).sum();
        let last = lines.iter().rposition(|line| of_rate(&line));
        if let Some(net) = last.and_then(|last| nets.get_mut(last)) {
            *net += net_of_rate(percent, total) - sum;
        }
    }
    nets
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Line, net, nets, spread};

    #[test]
    fn tax_bases_round_half_away_from_zero() {
        for (percent, total, expected) in [(21, 121, 100), (21, 100, 83), (21, -100, -83), (0, 7, 7)] {
            assert_eq!(net(percent, total), expected);
        }
    }

    #[test]
    fn lines_of_a_rate_add_up_to_its_tax_base() {
        let lines: Vec<Line> = (1..=7)
            .map(|line| Line {
                line,
                description: String::new(),
                variant_id: None,
                quantity: 1,
                unit_cents: 100,
                vat_percent: 21,
            })
            .collect();
        assert_eq!(nets(&lines, net).iter().sum::<i64>(), net(21, 700));
    }

    #[test]
    fn a_spread_amount_loses_no_cent() {
        let totals = BTreeMap::from([(12, 1000), (21, 2000)]);
        assert_eq!(spread(100, &totals), [(12, 33), (21, 67)]);
    }
}
