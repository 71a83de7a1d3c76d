//! Calendar days: parsing, printing, and arithmetic on the proleptic Gregorian calendar.
//!
//! Owns [`Date`]. It knows no clock: the shop's "today" comes from the command line, so that every run
//! over the same data gives the same answers.

use std::{borrow::Cow, fmt, str::FromStr};

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A calendar day, written as `YYYY-MM-DD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Date {
    year: i32,
    month: u32,
    day: u32,
}

impl Date {
    /// Makes a day from its parts; `None` when there is no such day.
    pub(crate) fn try_new(year: i32, month: u32, day: u32) -> Option<Self> {
        let is_day = (1900..=2199).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day);
        is_day.then_some(Self { year, month, day })
    }

    /// Counts days since 1970-01-01.
    ///
    /// **Source:** Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`.
    pub(crate) fn day_number(self) -> i64 {
        let year = i64::from(self.year) - i64::from(self.month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let month = (i64::from(self.month) + 9) % 12;
        let day_of_year = (153 * month + 2) / 5 + i64::from(self.day) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468
    }

    /// Returns the day `n_days` later, or earlier when negative; stays put at the calendar's ends.
    pub(crate) fn plus_days(self, n_days: i64) -> Self {
        let mut date = self;
        let mut left = n_days;
        while left != 0 {
            let next = if left > 0 { date.next() } else { date.previous() };
            let Some(next) = next else { break };
            date = next;
            left -= left.signum();
        }
        date
    }

    /// Returns how many days `self` lies after `other`.
    pub(crate) fn days_since(self, other: Self) -> i64 {
        self.day_number() - other.day_number()
    }

    /// Says whether the day is a Saturday or a Sunday.
    pub(crate) fn is_weekend(self) -> bool {
        // Day 0 was a Thursday, so Saturday and Sunday are 2 and 3.
        matches!(self.day_number().rem_euclid(7), 2 | 3)
    }

    fn next(self) -> Option<Self> {
        Self::try_new(self.year, self.month, self.day + 1)
            .or_else(|| Self::try_new(self.year, self.month + 1, 1))
            .or_else(|| Self::try_new(self.year + 1, 1, 1))
    }

    fn previous(self) -> Option<Self> {
        if self.day > 1 {
            Self::try_new(self.year, self.month, self.day - 1)
        } else if self.month > 1 {
            let month = self.month - 1;
            Self::try_new(self.year, month, days_in_month(self.year, month))
        } else {
            Self::try_new(self.year - 1, 12, 31)
        }
    }
}

fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// The text is not a day of the calendar.
#[derive(Debug, thiserror::Error)]
#[error("not a day of the calendar, expected YYYY-MM-DD between 1900 and 2199")]
pub(crate) struct NotADate;

impl FromStr for Date {
    type Err = NotADate;

    fn from_str(text: &str) -> Result<Self, NotADate> {
        let mut parts = text.splitn(3, '-');
        let mut part = |width: usize| {
            let part = parts.next().ok_or(NotADate)?;
            if part.len() != width || !part.bytes().all(|b| b.is_ascii_digit()) {
                return Err(NotADate);
            }
            part.parse::<u32>().or(Err(NotADate))
        };
        let (year, month, day) = (part(4)?, part(2)?, part(2)?);
        let year = i32::try_from(year).or(Err(NotADate))?;
        Self::try_new(year, month, day).ok_or(NotADate)
    }
}

impl Serialize for Date {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(|error| D::Error::custom(format!("`{text}` is {error}")))
    }
}

impl JsonSchema for Date {
    fn schema_name() -> Cow<'static, str> {
        "Date".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "date",
            "description": "Calendar day.",
            "examples": ["2026-11-27"]
        })
    }
}

impl ToSql for Date {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.to_string().into())
    }
}

impl FromSql for Date {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text = value.as_str()?;
        // Moments are stored as `YYYY-MM-DDTHH:MM:SS`; their day is what stands before the T.
        let day = text.split('T').next().unwrap_or(text);
        day.parse().map_err(|error: NotADate| FromSqlError::Other(Box::new(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn arithmetic_crosses_months_years_and_leap_days() {
        assert_eq!(date("1970-01-01").day_number(), 0);
        assert_eq!(date("2026-11-27").plus_days(5), date("2026-12-02"));
        assert_eq!(date("2026-01-01").plus_days(-1), date("2025-12-31"));
        assert_eq!(date("2024-02-28").plus_days(1), date("2024-02-29"));
        assert_eq!(date("2026-12-31").days_since(date("2025-12-31")), 365);
    }

    #[test]
    fn weekends_are_saturday_and_sunday() {
        let days = ["2026-11-27", "2026-11-28", "2026-11-29", "2026-11-30"];
        assert_eq!(days.map(|d| date(d).is_weekend()), [false, true, true, false]);
    }

    #[test]
    fn impossible_days_are_refused() {
        for text in ["2026-02-29", "2026-13-01", "2026-1-1", "26-01-01", "x", "2026-00-10"] {
            assert!(text.parse::<Date>().is_err(), "{text}");
        }
    }
}
