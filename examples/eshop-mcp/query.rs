//! Building the `where` of a list from optional filters.
//!
//! Owns [`Filter`]. Values always travel as bound parameters; only SQL written in this program becomes text.

use rusqlite::types::{ToSql, ToSqlOutput, Value};

use crate::{
    common::{DateRange, MoneyRange},
    error::ShopError,
};

/// Conditions joined by `and`, with their values in order.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    /// SQL conditions, each with one `?` per value.
    conditions: Vec<String>,
    /// Values of all conditions, in order.
    pub(crate) values: Vec<Value>,
}

impl Filter {
    /// Adds a condition without a value.
    pub(crate) fn push(&mut self, condition: impl Into<String>) {
        self.conditions.push(condition.into());
    }

    /// Adds `condition`, which has one `?`, when there is a value.
    ///
    /// # Errors
    /// `Db` when the value cannot be bound.
    pub(crate) fn bind(&mut self, condition: &str, value: Option<&impl ToSql>) -> Result<(), ShopError> {
        if let Some(value) = value {
            self.conditions.push(condition.to_owned());
            self.values.push(owned(value)?);
        }
        Ok(())
    }

    /// Adds `column in (…)` when the list is not empty.
    ///
    /// # Errors
    /// `Db` when a value cannot be bound.
    pub(crate) fn any(&mut self, column: &str, values: &[impl ToSql]) -> Result<(), ShopError> {
        if !values.is_empty() {
            let marks = vec!["?"; values.len()].join(",");
            self.conditions.push(format!("{column} in ({marks})"));
            for value in values {
                self.values.push(owned(value)?);
            }
        }
        Ok(())
    }

    /// Adds a condition that the text occurs in one of the columns, ignoring ASCII case.
    pub(crate) fn contains(&mut self, columns: &[&str], text: &str) {
        let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        let tests: Vec<String> = columns.iter().map(|column| format!("{column} like ? escape '\\'")).collect();
        self.conditions.push(format!("({})", tests.join(" or ")));
        for _ in columns {
            self.values.push(Value::Text(format!("%{escaped}%")));
        }
    }

    /// Adds both ends of a range of days; `field` is the argument's name for errors.
    ///
    /// # Errors
    /// `Refused` when the range is the wrong way round.
    pub(crate) fn days(&mut self, column: &str, field: &str, range: Option<&DateRange>) -> Result<(), ShopError> {
        let Some(range) = range else { return Ok(()) };
        range.check(field)?;
        self.bind(&format!("substr({column},1,10) >= ?"), range.from.as_ref())?;
        self.bind(&format!("substr({column},1,10) <= ?"), range.to.as_ref())
    }

    /// Adds both ends of a range of amounts, and the currency they are in.
    ///
    /// # Errors
    /// `Refused` when the range is the wrong way round.
    pub(crate) fn money(
        &mut self,
        amount: &str,
        currency: &str,
        field: &str,
        range: Option<&MoneyRange>,
    ) -> Result<(), ShopError> {
        let Some(range) = range else { return Ok(()) };
        range.check(field)?;
        self.bind(&format!("{currency} = ?"), Some(&range.currency))?;
        self.bind(&format!("{amount} >= ?"), range.min_cents.as_ref())?;
        self.bind(&format!("{amount} <= ?"), range.max_cents.as_ref())
    }

    /// Writes the conditions as SQL, starting with `where`, or nothing.
    pub(crate) fn to_sql(&self) -> String {
        if self.conditions.is_empty() { String::new() } else { format!(" where {}", self.conditions.join(" and ")) }
    }
}

fn owned(value: &impl ToSql) -> Result<Value, ShopError> {
    Ok(match value.to_sql()? {
        ToSqlOutput::Owned(value) => value,
        ToSqlOutput::Borrowed(value) => value.try_into().map_err(rusqlite::Error::from)?,
        _ => Value::Null,
    })
}
