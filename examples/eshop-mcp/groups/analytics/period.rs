//! The days that a report looks at and those it compares with.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::{
    common::{Currency, DateRange},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    values::words,
};

/// Longest period in days, a little more than the year that a shop compares.
const MOST_DAYS: i64 = 400;

/// Days in a year of whole weeks, so that weekdays meet weekdays.
const YEAR_OF_WEEKS: i64 = 364;

words!(/// Compare with the days just before, or those 364 days earlier.
    Compare { Previous = "previous", YearAgo = "year_ago", Nothing = "none" });
words!(/// Length of a step in time; weeks start on Monday.
    Grain { Day = "day", Week = "week", Month = "month" });

/// Days from one to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: Date,
    pub(crate) to: Date,
    pub(crate) days: i64,
}

/// What a report looked at.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub(crate) struct Scope {
    /// First and last day, `from/to`.
    #[schemars(with = "String")]
    pub(crate) period: Span,
    /// The days that `previous` is from.
    #[schemars(with = "Option<String>")]
    pub(crate) compared: Option<Span>,
    /// Of all amounts.
    #[schemars(with = "String")]
    pub(crate) currency: Currency,
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}/{}", self.from, self.to))
    }
}

impl Span {
    pub(crate) fn new(from: Date, to: Date) -> Self {
        Self { from, to, days: to.days_since(from) + 1 }
    }

    pub(crate) fn contains(&self, day: Date) -> bool {
        (self.from..=self.to).contains(&day)
    }

    fn shifted(&self, n_days: i64) -> Self {
        Self::new(self.from.plus_days(n_days), self.to.plus_days(n_days))
    }
}

impl Scope {
    /// Works out the days; `default_days` up to today when the caller gave none.
    ///
    /// # Errors
    /// `Refused` when the range is the wrong way round or longer than 400 days.
    pub(crate) fn new(
        ctx: &Ctx<'_>,
        period: Option<DateRange>,
        default_days: i64,
        compare: Compare,
        currency: Currency,
    ) -> Result<Self, ShopError> {
        let period = span(ctx, period, default_days)?;
        let compared = match compare {
            Compare::Previous => Some(period.shifted(-period.days)),
            Compare::YearAgo => Some(period.shifted(-YEAR_OF_WEEKS)),
            Compare::Nothing => None,
        };
        Ok(Self { period, compared, currency })
    }
}

fn span(ctx: &Ctx<'_>, range: Option<DateRange>, default_days: i64) -> Result<Span, ShopError> {
    let (from, to) = range.map_or((None, None), |range| (range.from, range.to));
    let to = to.unwrap_or(ctx.today);
    let from = from.unwrap_or_else(|| to.plus_days(1 - default_days));
    let whole = DateRange { from: Some(from), to: Some(to) };
    whole.check("period")?;
    let span = Span::new(from, to);
    if span.days > MOST_DAYS {
        let allowed = format!("at most {MOST_DAYS} days before {to}");
        return Err(ShopError::invalid("period.from", from, &allowed));
    }
    Ok(span)
}

/// The first day of the step that a day lies in.
pub(crate) fn step_start(day: Date, grain: Grain) -> Date {
    match grain {
        Grain::Day => day,
        Grain::Week => monday(day),
        Grain::Month => month_start(day),
    }
}

/// The Monday of a day's week.
pub(crate) fn monday(day: Date) -> Date {
    // Day 0 was a Thursday, three days after a Monday.
    day.plus_days(-(day.day_number() + 3).rem_euclid(7))
}

/// The month of a day, `YYYY-MM`.
pub(crate) fn month(day: Date) -> String {
    day.to_string().chars().take(7).collect()
}

/// Months from one day's month to another's.
pub(crate) fn months_between(from: Date, to: Date) -> i64 {
    let number = |day: Date| -> i64 {
        let text = month(day);
        let mut parts = text.split('-').filter_map(|part| part.parse::<i64>().ok());
        parts.next().unwrap_or(0) * 12 + parts.next().unwrap_or(0)
    };
    number(to) - number(from)
}

fn month_start(day: Date) -> Date {
    format!("{}-01", month(day)).parse().unwrap_or(day)
}

pub(crate) fn czk() -> Currency {
    Currency::Czk
}

pub(crate) fn previous() -> Compare {
    Compare::Previous
}

#[cfg(test)]
mod tests {
    use super::{monday, months_between};
    use crate::date::Date;

    fn date(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn weeks_start_on_monday_and_months_are_counted_over_years() {
        assert_eq!(monday(date("2026-11-27")), date("2026-11-23"));
        assert_eq!(monday(date("2026-11-23")), date("2026-11-23"));
        assert_eq!(months_between(date("2025-11-30"), date("2026-02-01")), 3);
    }
}
