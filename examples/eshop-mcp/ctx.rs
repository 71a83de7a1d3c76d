//! What a tool's handler has in hand: the open transaction, the day, the person.
//!
//! Owns [`Ctx`], [`Role`] and [`User`]. Handlers never begin, commit or roll back: the frame does.

use std::cell::Cell;

use clap::ValueEnum;
use rusqlite::{Connection, OptionalExtension as _, Params, Row, params, types::FromSql};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    common::{Limit, Offset, Page, first},
    date::Date,
    error::{Code, ShopError},
    query::Filter,
    values::words,
};

words!(/// Role; each includes the ones before it.
    Role { Viewer = "viewer", Clerk = "clerk", Manager = "manager", Admin = "admin" });

impl ValueEnum for Role {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Viewer, Self::Clerk, Self::Manager, Self::Admin]
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(self.as_str().into())
    }
}

/// The person at the desk.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct User {
    #[serde(skip)]
    pub(crate) id: i64,
    pub(crate) login: String,
    pub(crate) name: String,
    pub(crate) role: Role,
}

impl User {
    /// Reads the acting user; called for every tool call, so that a changed role holds at once.
    ///
    /// # Errors
    /// `Db` when the database fails.
    pub(crate) fn acting(db: &Connection) -> Result<Self, ShopError> {
        let sql = "select u.id, u.login, u.name, u.role from users u
                   join settings s on s.key = 'acting_user' and s.value = u.login";
        Ok(db.query_row(sql, [], |row| {
            Ok(Self { id: row.get(0)?, login: row.get(1)?, name: row.get(2)?, role: row.get(3)? })
        })?)
    }

    /// Refuses when the role does not suffice for the tool.
    ///
    /// # Errors
    /// `Refused` with code `forbidden`, naming the role it takes.
    pub(crate) fn check(&self, tool: &str, needed: Role) -> Result<(), ShopError> {
        if self.role >= needed {
            return Ok(());
        }
        Err(ShopError::refused(
            Code::Forbidden,
            format!("`{tool}` takes role {needed}; {} has role {}", self.login, self.role),
            format!("ask a person with role {needed} to do it; no other tool gets round this"),
        ))
    }
}

/// A list query: what stands before, between and after the conditions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listing<'a> {
    /// Columns after `select`.
    pub(crate) columns: &'a str,
    /// Tables and joins after `from`.
    pub(crate) from: &'a str,
    /// Terms after `order by`; they must make the order total.
    pub(crate) order: &'a str,
    pub(crate) limit: Limit,
    pub(crate) offset: Offset,
}

/// The context of one call.
#[derive(Debug)]
pub(crate) struct Ctx<'a> {
    /// The open transaction.
    pub(crate) db: &'a Connection,
    /// The shop's day.
    pub(crate) today: Date,
    /// Who calls, with the role of this moment.
    pub(crate) user: User,
    /// The tool that was called.
    tool: &'static str,
    /// Whether a line went into the activity log.
    logged: Cell<bool>,
}

impl<'a> Ctx<'a> {
    pub(crate) fn new(db: &'a Connection, today: Date, user: User, tool: &'static str) -> Self {
        Self { db, today, user, tool, logged: Cell::new(false) }
    }

    /// The moment that writes are stamped with: noon of the shop's day.
    pub(crate) fn now(&self) -> String {
        format!("{}T12:00:00", self.today)
    }

    /// Writes a line into the activity log. Every write does so, `about` is the code of the record.
    ///
    /// # Errors
    /// `Db` when the database fails.
    pub(crate) fn log(&self, about: impl ToString, summary: &str) -> Result<(), ShopError> {
        self.logged.set(true);
        self.run(
            "insert into activity (at, user_id, tool, about, summary) values (?, ?, ?, ?, ?)",
            params![self.now(), self.user.id, self.tool, about.to_string(), summary],
        )?;
        Ok(())
    }

    /// Whether the handler wrote into the activity log.
    pub(crate) fn has_logged(&self) -> bool {
        self.logged.get()
    }

    /// Runs a statement and returns how many rows it touched.
    ///
    /// # Errors
    /// `Db` when the database fails.
    pub(crate) fn run(&self, sql: &str, params: impl Params) -> Result<usize, ShopError> {
        Ok(self.db.prepare_cached(sql)?.execute(params)?)
    }

    /// Inserts a row and returns its number.
    ///
    /// # Errors
    /// `Db` when the database fails.
    pub(crate) fn insert(&self, sql: &str, params: impl Params) -> Result<i64, ShopError> {
        Ok(self.db.prepare_cached(sql)?.insert(params)?)
    }

    /// Reads one row, or none.
    ///
    /// # Errors
    /// `Db` when the database fails.
    pub(crate) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, ShopError> {
        Ok(self.db.prepare_cached(sql)?.query_row(params, read).optional()?)
    }

    /// Reads the one value of a query that always has a row, such as a count.
    ///
    /// # Errors
    /// `Db` when the database fails or there is no row.
    pub(crate) fn value<T: FromSql>(&self, sql: &str, params: impl Params) -> Result<T, ShopError> {
        Ok(self.db.prepare_cached(sql)?.query_row(params, first)?)
    }

    /// Reads all rows.
    ///
    /// # Errors
    /// `Db` when the database fails.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, ShopError> {
        let mut statement = self.db.prepare_cached(sql)?;
        let rows = statement.query_map(params, read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Reads one page of a list.
    ///
    /// # Errors
    /// `Db` when the database fails.
    pub(crate) fn page<T>(
        &self,
        listing: Listing<'_>,
        filter: &Filter,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Page<T>, ShopError> {
        let Listing { columns, from, order, limit, offset } = listing;
        let conditions = filter.to_sql();
        let values = || rusqlite::params_from_iter(&filter.values);
        let total: i64 = self.value(&format!("select count(*) from {from}{conditions}"), values())?;
        let sql =
            format!("select {columns} from {from}{conditions} order by {order} limit {} offset {}", limit.0, offset.0);
        let items = self.all(&sql, values(), read)?;
        let end = offset.0 + limit.0;
        Ok(Page { items, total, next_offset: (i64::from(end) < total).then_some(end) })
    }
}
