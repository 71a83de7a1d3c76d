//! Setting single columns of a record, and noting what differed.

use rusqlite::{
    params,
    types::{FromSql, ToSql},
};

use crate::{common::Change, ctx::Ctx, error::ShopError};

/// The record, and what was changed in it so far.
#[derive(Debug)]
pub(crate) struct Fields {
    table: &'static str,
    id: i64,
    pub(crate) changes: Vec<Change>,
}

impl Fields {
    pub(crate) fn new(table: &'static str, id: i64) -> Self {
        Self { table, id, changes: Vec::new() }
    }

    /// Writes a column when there is a value that differs from the present one.
    ///
    /// # Errors
    /// `Db` when the database fails.
    pub(crate) fn set<T: ToSql + FromSql + PartialEq + ToString>(
        &mut self,
        ctx: &Ctx<'_>,
        column: &str,
        value: Option<&T>,
    ) -> Result<(), ShopError> {
        let Some(value) = value else { return Ok(()) };
        let (table, id) = (self.table, self.id);
        let before: T = ctx.value(&format!("select {column} from {table} where id = ?"), [id])?;
        if before != *value {
            let sql = format!("update {table} set {column} = ? where id = ?");
            ctx.run(&sql, params![value, id])?;
            let change = Change::new(column, Some(before.to_string()), Some(value.to_string()));
            self.changes.push(change);
        }
        Ok(())
    }
}
