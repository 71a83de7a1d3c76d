//! Setting a price for a period. Periods of one variant, list and currency never overlap.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, Money, Sku, Version},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::store::{
        codes::PriceList,
        prices::{PRICE_COLUMNS, PRICE_TABLES, Price, price},
    },
};

/// The price to set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetParams {
    sku: Sku,
    /// Of the variant.
    expected_version: Option<Version>,
    list: PriceList,
    /// Price of one piece, VAT included.
    price: Money,
    /// First day; today when absent.
    valid_from: Option<Date>,
    /// Last day, after which the price before holds again; open when absent.
    valid_to: Option<Date>,
    /// Replace prices that begin within the period; without it they make the call fail.
    #[serde(default)]
    #[schemars(example = true)]
    replace: bool,
    /// Why, for the activity log.
    #[schemars(length(min = 3, max = 200), example = &"Christmas offer")]
    reason: String,
}

/// The prices of the variant in this list and currency, from today on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PriceChange {
    sku: Sku,
    /// Version of the variant after the write.
    version: i64,
    /// By period, earliest first.
    prices: Vec<Price>,
    /// Something to look at, such as a price below cost.
    warning: Option<String>,
}

/// A price list of a variant, and the new period in it.
#[derive(Debug, Clone, Copy)]
struct Slot {
    variant_id: i64,
    list: PriceList,
    currency: Currency,
    from: Date,
    to: Option<Date>,
}

/// A period that is there already.
#[derive(Debug)]
struct Period {
    id: i64,
    amount_cents: i64,
    from: Date,
    to: Option<Date>,
}

pub(crate) fn set(ctx: &Ctx<'_>, params: SetParams) -> Result<PriceChange, ShopError> {
    let SetParams { sku, list, .. } = &params;
    let Money { cents, currency } = params.price;
    let sql = "select id, version from variants where sku = ?";
    let found: Option<(i64, i64)> = ctx.one(sql, [&sku.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let Some((variant_id, version)) = found else {
        return Err(ShopError::not_found("variant", &sku.0, "store_variants_list").at("sku"));
    };
    Version::check(params.expected_version, version, &format!("variant {}", sku.0))?;
    check(ctx, &params)?;
    let slot =
        Slot { variant_id, list: *list, currency, from: params.valid_from.unwrap_or(ctx.today), to: params.valid_to };
    for period in overlapping(ctx, slot)? {
        if period.from < slot.from {
            cut(ctx, slot, &period)?;
        } else {
            push_back(ctx, slot, &period, params.replace)?;
        }
    }
    insert(ctx, slot, cents, (slot.from, slot.to))?;
    ctx.run("update variants set version = version + 1 where id = ?", [variant_id])?;
    let until = slot.to.map_or_else(String::new, |to| format!(" to {to}"));
    let summary = format!("{list} price {cents} {currency} cents from {}{until}: {}", slot.from, params.reason);
    ctx.log(&sku.0, &summary)?;
    answer(ctx, slot, params.sku, version + 1)
}

fn check(ctx: &Ctx<'_>, params: &SetParams) -> Result<(), ShopError> {
    let cents = params.price.cents;
    if !(1..=100_000_000).contains(&cents) {
        return Err(ShopError::invalid("price.cents", cents, "1 to 100000000"));
    }
    let from = params.valid_from.unwrap_or(ctx.today);
    if from < ctx.today {
        let allowed = format!("{} (today) or later; the past has been charged", ctx.today);
        return Err(ShopError::invalid("valid_from", from, &allowed));
    }
    match params.valid_to {
        Some(to) if to < from => Err(ShopError::invalid("valid_to", to, &format!("{from} (`valid_from`) or later"))),
        _ => Ok(()),
    }
}

fn overlapping(ctx: &Ctx<'_>, slot: Slot) -> Result<Vec<Period>, ShopError> {
    let sql = "select id, amount_cents, valid_from, valid_to from prices
               where variant_id = ? and list = ? and currency = ? and coalesce(valid_to, '9999') >= ? and valid_from <= coalesce(?, '9999')
               order by valid_from, id";
    let key = params![slot.variant_id, slot.list, slot.currency, slot.from, slot.to];
    ctx.all(sql, key, |row| {
        Ok(Period { id: row.get(0)?, amount_cents: row.get(1)?, from: row.get(2)?, to: row.get(3)? })
    })
}

/// Whether a period goes on after the new one, and from which day.
fn rest(slot: Slot, period: &Period) -> Option<Date> {
    let to = slot.to?;
    period.to.is_none_or(|end| end > to).then(|| to.plus_days(1))
}

/// Ends a period on the day before the new one; it goes on afterwards if it was to.
fn cut(ctx: &Ctx<'_>, slot: Slot, period: &Period) -> Result<(), ShopError> {
    ctx.run("update prices set valid_to = ? where id = ?", params![slot.from.plus_days(-1), period.id])?;
    match rest(slot, period) {
        Some(day) => insert(ctx, slot, period.amount_cents, (day, period.to)),
        None => Ok(()),
    }
}

/// Takes a period that begins within the new one out of its way.
fn push_back(ctx: &Ctx<'_>, slot: Slot, period: &Period, replace: bool) -> Result<(), ShopError> {
    if !replace {
        return Err(ShopError::state(
            format!("a price of {} cents begins on {}, within the period", period.amount_cents, period.from),
            "end before that day with `valid_to`, or pass `replace`",
        )
        .at("valid_to"));
    }
    match rest(slot, period) {
        Some(day) => ctx.run("update prices set valid_from = ? where id = ?", params![day, period.id])?,
        None => ctx.run("delete from prices where id = ?", [period.id])?,
    };
    Ok(())
}

fn insert(ctx: &Ctx<'_>, slot: Slot, cents: i64, (from, to): (Date, Option<Date>)) -> Result<(), ShopError> {
    ctx.run(
        "insert into prices (variant_id, list, currency, amount_cents, valid_from, valid_to, created_at) values (?, ?, ?, ?, ?, ?, ?)",
        params![slot.variant_id, slot.list, slot.currency, cents, from, to, ctx.now()],
    )?;
    Ok(())
}

fn answer(ctx: &Ctx<'_>, slot: Slot, sku: Sku, version: i64) -> Result<PriceChange, ShopError> {
    let sql = format!(
        "select {PRICE_COLUMNS} from {PRICE_TABLES}
         where r.variant_id = ? and r.list = ? and r.currency = ? and coalesce(r.valid_to, '9999') >= ? order by r.valid_from"
    );
    let key = params![slot.variant_id, slot.list, slot.currency, ctx.today];
    let prices = ctx.all(&sql, key, price)?;
    let loss = prices.iter().find(|price| price.starts_on(slot.from) && price.is_loss());
    let warning = loss.map(|_| "the price without VAT is below the purchase price".to_owned());
    Ok(PriceChange { sku, version, prices, warning })
}
