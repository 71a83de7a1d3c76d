//! The order in which the tables are filled.

use rusqlite::Connection;

use crate::{error::ShopError, seed::office};

/// Fills an empty database.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn fill(db: &Connection) -> Result<(), ShopError> {
    office::fill(db)?;
    Ok(())
}
