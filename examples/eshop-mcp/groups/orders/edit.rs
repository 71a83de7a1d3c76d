//! How a write opens an order and closes it again.
//!
//! [`open`] reads the order, compares versions; [`Edit::close`] raises the version, leaves an event and a line in
//! the activity log, and answers. In between the tool does its own part.

use rusqlite::params;

use crate::{
    common::{Change, Currency, OrderId, OrderStatus, PaymentMethod, PaymentStatus, Version},
    ctx::Ctx,
    error::ShopError,
    groups::orders::{
        stock,
        view::{OrderChange, OrderState, state_of},
    },
};

/// An order that is being written.
#[derive(Debug)]
pub(crate) struct Edit {
    pub(crate) id: OrderId,
    pub(crate) status: OrderStatus,
    pub(crate) version: i64,
    pub(crate) customer_id: i64,
    pub(crate) warehouse_id: i64,
    pub(crate) currency: Currency,
    pub(crate) total_cents: i64,
    pub(crate) refunded_cents: i64,
    pub(crate) method: PaymentMethod,
    pub(crate) payment: PaymentStatus,
    /// Pieces off the shelf: shipped, or taken by a confirmed delivery list.
    pub(crate) taken: i64,
    pub(crate) changes: Vec<Change>,
}

/// Opens an order for writing.
///
/// # Errors
/// `Refused` with `not_found` or `conflict`.
pub(crate) fn open(ctx: &Ctx<'_>, id: OrderId, expected: Option<Version>) -> Result<Edit, ShopError> {
    let sql = "select status, version, customer_id, warehouse_id, currency, total_cents, refunded_cents,
                   payment_method, payment_status from orders where id = ?";
    let edit = ctx.one(sql, [id], |row| {
        Ok(Edit {
            id,
            status: row.get(0)?,
            version: row.get(1)?,
            customer_id: row.get(2)?,
            warehouse_id: row.get(3)?,
            currency: row.get(4)?,
            total_cents: row.get(5)?,
            refunded_cents: row.get(6)?,
            method: row.get(7)?,
            payment: row.get(8)?,
            taken: 0,
            changes: Vec::new(),
        })
    })?;
    let mut edit = edit.ok_or_else(|| ShopError::not_found("order", id, "orders_search").at("id"))?;
    Version::check(expected, edit.version, &format!("order {id}"))?;
    edit.taken = stock::taken(ctx, id)?;
    Ok(edit)
}

impl Edit {
    /// Refuses when the order is in none of the states.
    ///
    /// # Errors
    /// `Refused` with `state`.
    pub(crate) fn require(&self, states: &[OrderStatus], hint: &str) -> Result<(), ShopError> {
        if states.contains(&self.status) {
            return Ok(());
        }
        let words: Vec<&str> = states.iter().map(|status| status.as_str()).collect();
        Err(ShopError::state(format!("order {} is {}; this takes {}", self.id, self.status, words.join(", ")), hint))
    }

    /// Refuses when lines may no longer change.
    ///
    /// # Errors
    /// `Refused` with `state`.
    pub(crate) fn require_open(&self) -> Result<(), ShopError> {
        let open = [OrderStatus::New, OrderStatus::Confirmed, OrderStatus::OnHold];
        self.require(&open, "put it on hold with `orders_status_change` while it is picking, or create a new order")?;
        if self.taken == 0 {
            return Ok(());
        }
        Err(ShopError::state(
            format!("{} pieces of order {} were taken from the shelf", self.taken, self.id),
            "put them back with `deliverylists_cancel`, or create a new order",
        ))
    }

    /// Records a change.
    pub(crate) fn changed(&mut self, field: &str, from: Option<impl ToString>, to: Option<impl ToString>) {
        self.changes.push(Change::new(field, from, to));
    }

    /// Says what to do when a paid order no longer costs what was paid.
    fn difference(&self, ctx: &Ctx<'_>, order: &OrderState) -> Result<Option<String>, ShopError> {
        let total = order.totals.total_cents;
        if total == self.total_cents || self.payment != PaymentStatus::Paid {
            return Ok(None);
        }
        let over = paid_cents(ctx, self.id)? - total;
        Ok(match over {
            0 => None,
            1.. => Some(format!("{over} cents too much were paid: orders_refund")),
            _ => Some(format!("{} cents are to be paid yet: invoices_payment_record", -over)),
        })
    }

    /// Closes the order: new version, event, activity, answer.
    ///
    /// # Errors
    /// `Db` when the database fails.
    pub(crate) fn close(
        mut self,
        ctx: &Ctx<'_>,
        kind: &str,
        message: &str,
        follow_up: Option<String>,
    ) -> Result<OrderChange, ShopError> {
        ctx.run("update orders set version = version + 1, updated_at = ? where id = ?", params![ctx.now(), self.id])?;
        event(ctx, self.id, kind, message)?;
        ctx.log(self.id, message)?;
        let order = state_of(ctx, self.id)?;
        if order.totals.total_cents != self.total_cents {
            let before = self.total_cents;
            self.changed("total_cents", Some(before), Some(order.totals.total_cents));
        }
        if order.payment_status != self.payment {
            let before = self.payment;
            self.changed("payment_status", Some(before), Some(order.payment_status));
        }
        let follow_up = match follow_up {
            Some(follow_up) => Some(follow_up),
            None => self.difference(ctx, &order)?,
        };
        Ok(OrderChange { order, changes: self.changes, follow_up })
    }
}

/// Adds an event to an order's timeline.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn event(ctx: &Ctx<'_>, id: OrderId, kind: &str, message: &str) -> Result<(), ShopError> {
    ctx.run(
        "insert into order_events (order_id, at, user_id, kind, message) values (?, ?, ?, ?, ?)",
        params![id, ctx.now(), ctx.user.id, kind, message],
    )?;
    Ok(())
}

/// Computes discounts and totals of an order anew from its lines.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn recompute(ctx: &Ctx<'_>, id: OrderId) -> Result<(), ShopError> {
    let steps = [
        "update discounts set amount_cents = (select i.quantity * i.unit_cents * percent / 100 from order_items i where i.id = item_id)
         where order_id = ?1 and item_id is not null and percent is not null",
        "update order_items set discount_cents = min(quantity * unit_cents,
             (select coalesce(sum(amount_cents), 0) from discounts d where d.item_id = order_items.id)) where order_id = ?1",
        "update order_items set total_cents = quantity * unit_cents - discount_cents where order_id = ?1",
        "update orders set items_cents = (select coalesce(sum(total_cents), 0) from order_items where order_id = ?1) where id = ?1",
        "update discounts set amount_cents = (select items_cents from orders where id = ?1) * percent / 100
         where order_id = ?1 and item_id is null and percent is not null",
        "update orders set discount_cents = min(items_cents,
             (select coalesce(sum(amount_cents), 0) from discounts where order_id = ?1 and item_id is null)) where id = ?1",
        "update orders set total_cents = items_cents - discount_cents + shipping_cents where id = ?1",
    ];
    for sql in steps {
        ctx.run(sql, params![id])?;
    }
    settle(ctx, id)
}

/// What has come in for an order.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn paid_cents(ctx: &Ctx<'_>, id: OrderId) -> Result<i64, ShopError> {
    ctx.value("select coalesce(sum(amount_cents), 0) from payments where order_id = ?", [id])
}

/// Sets the payment state from the payments, unless money went back already.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn settle(ctx: &Ctx<'_>, id: OrderId) -> Result<(), ShopError> {
    let paid = paid_cents(ctx, id)?;
    ctx.run(
        "update orders set payment_status = case when ?2 <= 0 then 'unpaid' when ?2 < total_cents then 'partial' else 'paid' end
         where id = ?1 and payment_status in ('unpaid', 'partial', 'paid')",
        params![id, paid],
    )?;
    Ok(())
}
