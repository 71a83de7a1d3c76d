//! Prices of lines and of shipping.

use rusqlite::params;

use crate::{
    common::{Currency, first},
    ctx::Ctx,
    error::ShopError,
};

/// Orders from this amount on ship free: hundredths by currency.
const FREE_SHIPPING: [(Currency, i64); 3] = [(Currency::Czk, 200_000), (Currency::Eur, 8000), (Currency::Pln, 35_000)];

/// Finds today's price of a variant in the customer's price list.
///
/// # Errors
/// `Refused` with `state` when there is none.
pub(crate) fn unit_cents(
    ctx: &Ctx<'_>,
    variant_id: i64,
    customer_id: i64,
    currency: Currency,
) -> Result<i64, ShopError> {
    let sql = "select amount_cents from prices p join customers c on c.segment = p.list
               where p.variant_id = ?1 and c.id = ?2 and p.currency = ?3 and p.valid_from <= ?4
                 and (p.valid_to is null or p.valid_to >= ?4)
               order by p.valid_from desc, p.id desc limit 1";
    let price = ctx.one(sql, params![variant_id, customer_id, currency, ctx.today], first)?;
    price.ok_or_else(|| {
        ShopError::state(
            format!("there is no price in {currency} for this customer's price list"),
            "set one with `store_price_set`",
        )
    })
}

/// A carrier's number and what it charges for goods of this worth.
///
/// # Errors
/// `Refused` when there is no such carrier, or it does not deliver to the country.
pub(crate) fn shipping(
    ctx: &Ctx<'_>,
    carrier: &str,
    country: &str,
    goods_cents: i64,
    currency: Currency,
) -> Result<(i64, i64), ShopError> {
    let sql = "select id, price_cents, countries from carriers where code = ?";
    let found: Option<(i64, i64, String)> =
        ctx.one(sql, [carrier], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let Some((id, price_czk, countries)) = found else {
        return Err(ShopError::not_found("carrier", carrier, "balikobot_carriers_list").at("carrier"));
    };
    if !countries.split(',').any(|c| c == country) {
        let allowed = format!("a carrier for {country}; {carrier} delivers to {countries}");
        return Err(ShopError::invalid("carrier", carrier, &allowed));
    }
    let is_free = FREE_SHIPPING.iter().any(|(c, from)| *c == currency && goods_cents >= *from);
    if is_free {
        return Ok((id, 0));
    }
    let czk_micro: i64 = ctx.value("select czk_micro from currencies where code = ?", [currency])?;
    Ok((id, price_czk * 1_000_000 / czk_micro / 10 * 10))
}
