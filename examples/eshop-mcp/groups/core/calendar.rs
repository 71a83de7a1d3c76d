//! Workdays between days, without weekends and holidays.

use std::collections::BTreeMap;

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{common::Country, ctx::Ctx, date::Date, error::ShopError};

/// The longest stretch, so that it stays within the known holidays.
const MAX_DAYS: i64 = 400;

/// Which stretch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkdaysParams {
    /// Start, not counted; today when absent.
    #[schemars(example = &"2026-12-23")]
    from: Option<Date>,
    /// End, counted; within 400 days.
    #[schemars(example = &"2027-01-04")]
    to: Option<Date>,
    /// Workdays to go on.
    #[schemars(range(min = 1, max = 250), example = 3)]
    add: Option<i64>,
    /// Whose holidays; CZ when absent.
    country: Option<Country>,
}

/// The stretch, counted.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Workdays {
    from: Date,
    to: Date,
    workdays: i64,
    /// Day and name.
    holidays: Vec<String>,
}

pub(crate) fn workdays(ctx: &Ctx<'_>, params: WorkdaysParams) -> Result<Workdays, ShopError> {
    let from = params.from.unwrap_or(ctx.today);
    let holidays = holidays(ctx, params.country.unwrap_or(Country::Cz))?;
    let is_done: Box<dyn Fn(Date, i64) -> bool> = match (params.to, params.add) {
        (Some(to), None) => {
            if !(0..=MAX_DAYS).contains(&to.days_since(from)) {
                let allowed = format!("{from} to {}", from.plus_days(MAX_DAYS));
                return Err(ShopError::invalid("to", to, &allowed));
            }
            Box::new(move |day, _| day >= to)
        }
        (None, Some(add)) => Box::new(move |_, n_workdays| n_workdays >= add),
        _ => {
            return Err(ShopError::invalid("add", "not the only one of `to` and `add`", "exactly one of them"));
        }
    };
    let mut day = from;
    let mut n_workdays = 0;
    let mut passed = Vec::new();
    while !is_done(day, n_workdays) {
        day = day.plus_days(1);
        if let Some(name) = holidays.get(&day) {
            passed.push(format!("{day} {name}"));
        } else if !day.is_weekend() {
            n_workdays += 1;
        }
    }
    Ok(Workdays { from, to: day, workdays: n_workdays, holidays: passed })
}

fn holidays(ctx: &Ctx<'_>, country: Country) -> Result<BTreeMap<Date, String>, ShopError> {
    let sql = "select day, name from holidays where country = ?";
    let days = ctx.all(sql, params![country], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(days.into_iter().collect())
}
