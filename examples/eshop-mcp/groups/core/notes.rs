//! Staff notes on records.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Limit, NoteId},
    ctx::Ctx,
    error::ShopError,
    record::Record,
};

/// Which notes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParams {
    about: Record,
    #[serde(default)]
    limit: Limit,
}

/// Notes on a record.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Notes {
    items: Vec<Note>,
}

/// One note.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Note {
    id: NoteId,
    body: String,
    author: String,
    created_at: String,
}

pub(crate) fn list(ctx: &Ctx<'_>, params: ListParams) -> Result<Notes, ShopError> {
    params.about.check(ctx, "about")?;
    let sql = "select n.id, n.body, u.login, n.created_at from notes n join users u on u.id = n.author_id
               where n.about = ? order by n.id desc limit ?";
    let items = ctx.all(sql, params![params.about, params.limit.0], |row| {
        Ok(Note { id: row.get(0)?, body: row.get(1)?, author: row.get(2)?, created_at: row.get(3)? })
    })?;
    Ok(Notes { items })
}

/// The note to add.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateParams {
    about: Record,
    /// The text.
    #[schemars(length(min = 1, max = 2000), example = &"Customer asks for delivery after 17:00.")]
    body: String,
}

pub(crate) fn create(ctx: &Ctx<'_>, params: CreateParams) -> Result<Note, ShopError> {
    params.about.check(ctx, "about")?;
    let created_at = ctx.now();
    let id = NoteId(ctx.insert(
        "insert into notes (about, body, author_id, created_at) values (?, ?, ?, ?)",
        params![params.about, params.body, ctx.user.id, created_at],
    )?);
    ctx.log(&params.about.0, &format!("{id} added"))?;
    Ok(Note { id, body: params.body, author: ctx.user.login.clone(), created_at })
}
