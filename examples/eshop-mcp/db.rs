//! Opens the shop's database, and makes and fills it when it is new.
//!
//! The tables stand in `schema.sql`. The layout number in the file keeps an older file from being misread.

use std::path::Path;

use rusqlite::{Connection, params};

use crate::{common::first, ctx::Role, error::ShopError, seed};

/// Layout of `schema.sql`; raised when it changes.
const LAYOUT: i64 = 1;

/// Opens the file, or a database in memory, and puts the person with `role` at the desk.
///
/// # Errors
/// `Db` when the file cannot be used, `Layout` when it was made by another version.
pub(crate) fn open(file: Option<&Path>, role: Role) -> Result<Connection, ShopError> {
    let mut db = match file {
        Some(file) => Connection::open(file)?,
        None => Connection::open_in_memory()?,
    };
    db.pragma_update(None, "foreign_keys", true)?;
    match db.pragma_query_value(None, "user_version", first)? {
        0 => create(&mut db)?,
        LAYOUT => {}
        found => {
            return Err(ShopError::Layout { found, expected: LAYOUT });
        }
    }
    db.execute(
        "insert or replace into settings select 'acting_user', login from users where role = ? order by id limit 1",
        params![role],
    )?;
    Ok(db)
}

fn create(db: &mut Connection) -> Result<(), ShopError> {
    let transaction = db.transaction()?;
    transaction.execute_batch(include_str!("schema.sql"))?;
    seed::fill(&transaction)?;
    transaction.pragma_update(None, "user_version", LAYOUT)?;
    transaction.commit()?;
    Ok(())
}
