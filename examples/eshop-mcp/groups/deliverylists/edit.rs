//! How a write opens a delivery list and closes it again.

use rusqlite::params;

use crate::{
    common::{Change, DeliveryListId, OrderId, OrderStatus, Version},
    ctx::Ctx,
    error::ShopError,
    groups::{
        deliverylists::view::{ListChange, ListStatus, card_of, lines_of},
        orders,
    },
};

/// A delivery list that is being written.
#[derive(Debug)]
pub(crate) struct ListEdit {
    pub(crate) id: DeliveryListId,
    pub(crate) status: ListStatus,
    pub(crate) order_id: OrderId,
    pub(crate) warehouse_id: i64,
    pub(crate) changes: Vec<Change>,
}

/// Opens a delivery list for writing.
///
/// # Errors
/// `Refused` with `not_found` or `conflict`.
pub(crate) fn open(ctx: &Ctx<'_>, id: DeliveryListId, expected: Option<Version>) -> Result<ListEdit, ShopError> {
    let sql = "select status, version, order_id, warehouse_id from delivery_lists where id = ?";
    let found = ctx.one(sql, [id], |row| {
        let edit =
            ListEdit { id, status: row.get(0)?, order_id: row.get(2)?, warehouse_id: row.get(3)?, changes: Vec::new() };
        Ok((edit, row.get::<_, i64>(1)?))
    })?;
    let (edit, version) =
        found.ok_or_else(|| ShopError::not_found("delivery list", id, "deliverylists_list").at("id"))?;
    Version::check(expected, version, &format!("delivery list {id}"))?;
    Ok(edit)
}

impl ListEdit {
    /// Refuses when the list is in none of the states.
    ///
    /// # Errors
    /// `Refused` with `state`.
    pub(crate) fn require(&self, states: &[ListStatus], hint: &str) -> Result<(), ShopError> {
        if states.contains(&self.status) {
            return Ok(());
        }
        let words: Vec<&str> = states.iter().map(|status| status.as_str()).collect();
        Err(ShopError::state(
            format!("delivery list {} is {}; this takes {}", self.id, self.status, words.join(" or ")),
            hint,
        ))
    }

    /// Records a change.
    pub(crate) fn changed(&mut self, field: &str, from: Option<impl ToString>, to: Option<impl ToString>) {
        self.changes.push(Change::new(field, from, to));
    }

    /// Moves the list to another state and stamps the moment in `column`.
    ///
    /// # Errors
    /// `Db` when the database fails.
    pub(crate) fn go(&mut self, ctx: &Ctx<'_>, to: ListStatus, column: &str) -> Result<(), ShopError> {
        ctx.run(
            &format!("update delivery_lists set status = ?, {column} = ? where id = ?"),
            params![to, ctx.now(), self.id],
        )?;
        let from = self.status;
        self.changed("status", Some(from), Some(to));
        Ok(())
    }

    /// Moves the list's order to another state, unless it is there.
    ///
    /// # Errors
    /// `Refused` when there is no such order.
    pub(crate) fn move_order(&mut self, ctx: &Ctx<'_>, to: OrderStatus) -> Result<(), ShopError> {
        let order = orders::open(ctx, self.order_id, None)?;
        let from = order.status;
        if from == to {
            return Ok(());
        }
        ctx.run("update orders set status = ? where id = ?", params![to, self.order_id])?;
        self.changed("order.status", Some(from), Some(to));
        order.close(ctx, "status", &format!("{from} -> {to}: {}", self.id), None)?;
        Ok(())
    }

    /// Closes the list: new version, activity, answer.
    ///
    /// # Errors
    /// `Db` when the database fails.
    pub(crate) fn close(
        self,
        ctx: &Ctx<'_>,
        message: &str,
        follow_up: Option<String>,
    ) -> Result<ListChange, ShopError> {
        ctx.run(
            "update delivery_lists set version = version + 1, updated_at = ? where id = ?",
            params![ctx.now(), self.id],
        )?;
        ctx.log(self.id, message)?;
        Ok(ListChange {
            list: card_of(ctx, self.id)?,
            lines: lines_of(ctx, self.id)?,
            changes: self.changes,
            follow_up,
        })
    }
}

/// Finds the number of a user who may pick.
///
/// # Errors
/// `Refused` with `not_found`, or with `invalid` for a viewer.
pub(crate) fn picker_id(ctx: &Ctx<'_>, login: &str) -> Result<i64, ShopError> {
    let sql = "select id, role = 'viewer' from users where login = ?";
    let found: Option<(i64, bool)> = ctx.one(sql, [login], |row| Ok((row.get(0)?, row.get(1)?)))?;
    match found {
        Some((id, false)) => Ok(id),
        Some((_, true)) => Err(ShopError::invalid("picker", login, "a clerk or above; viewers do not pick")),
        None => Err(ShopError::not_found("user", login, "core_shop_info").at("picker")),
    }
}
