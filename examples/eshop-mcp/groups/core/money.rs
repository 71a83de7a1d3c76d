//! Exchange rates and VAT rates.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Country, Currency, Money},
    ctx::Ctx,
    error::ShopError,
    query::Filter,
};

/// What to convert.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConvertParams {
    amount: Money,
    /// Currency to convert to.
    to: Currency,
}

/// The converted amount.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Converted {
    amount: Money,
    /// Units of `to` for one of the amount's currency.
    rate: f64,
}

pub(crate) fn currency_convert(ctx: &Ctx<'_>, params: ConvertParams) -> Result<Converted, ShopError> {
    let from = czk_micro(ctx, params.amount.currency)?;
    let to = czk_micro(ctx, params.to)?;
    Ok(Converted {
        amount: Money::new(convert(params.amount.cents, from, to), params.to),
        rate: (from as f64 / to as f64 * 1e6).round() / 1e6,
    })
}

/// Reads the rate of a currency: CZK for one unit, times a million.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn czk_micro(ctx: &Ctx<'_>, currency: Currency) -> Result<i64, ShopError> {
    ctx.value("select czk_micro from currencies where code = ?", params![currency])
}

/// Converts with integers only, rounding half away from zero.
fn convert(cents: i64, from_micro: i64, to_micro: i64) -> i64 {
    let product = i128::from(cents) * i128::from(from_micro);
    let divisor = i128::from(to_micro.max(1));
    let half = divisor / 2 * product.signum();
    i64::try_from((product + half) / divisor).unwrap_or(i64::MAX)
}

/// Which rates.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VatParams {
    country: Option<Country>,
}

/// The rates.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VatRates {
    rates: Vec<VatRate>,
}

/// One rate.
#[derive(Debug, Serialize, JsonSchema)]
struct VatRate {
    country: Country,
    kind: String,
    percent: i64,
    label: String,
}

pub(crate) fn vat_rates_list(ctx: &Ctx<'_>, params: VatParams) -> Result<VatRates, ShopError> {
    let mut filter = Filter::default();
    filter.bind("country = ?", params.country.as_ref())?;
    filter.bind("valid_from <= ?", Some(&ctx.today))?;
    let sql = format!(
        "select country, kind, percent, label from vat_rates{} order by country, percent desc",
        filter.to_sql()
    );
    let rates = ctx.all(&sql, rusqlite::params_from_iter(&filter.values), |row| {
        Ok(VatRate { country: row.get(0)?, kind: row.get(1)?, percent: row.get(2)?, label: row.get(3)? })
    })?;
    Ok(VatRates { rates })
}

#[cfg(test)]
mod tests {
    use super::convert;

    #[test]
    fn conversion_rounds_half_away_from_zero() {
        let cases = [(100, 25_000_000, 1_000_000, 2500), (1, 1_000_000, 2_000_000, 1), (-1, 1_000_000, 2_000_000, -1)];
        for (cents, from, to, expected) in cases {
            assert_eq!(convert(cents, from, to), expected);
        }
    }
}
