//! The story of an order: its own events, and those of its papers and parcels.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Limit, OrderId},
    ctx::Ctx,
    error::ShopError,
    groups::orders::view::card_of,
    values::words,
};

words!(/// Kind of event.
EventKind {
    Status = "status",
    Placed = "placed",
    Item = "item",
    Discount = "discount",
    Payment = "payment",
    Refund = "refund",
    Invoice = "invoice",
    Reminder = "reminder",
    Shipment = "shipment",
    Edit = "edit",
    Split = "split",
    Note = "note",
});

/// Which part of the story.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimelineParams {
    id: OrderId,
    /// Kinds of events to include; all when absent.
    #[serde(default)]
    #[schemars(example = [EventKind::Status, EventKind::Shipment])]
    kinds: Vec<EventKind>,
    /// Latest event first.
    #[serde(default)]
    #[schemars(example = true)]
    newest_first: bool,
    #[serde(default)]
    limit: Limit,
}

/// The story.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Timeline {
    id: OrderId,
    events: Vec<Event>,
    /// Whether `limit` cut events off.
    is_cut: bool,
}

/// One event.
#[derive(Debug, Serialize, JsonSchema)]
struct Event {
    /// Moment, YYYY-MM-DDTHH:MM:SS in shop time.
    at: String,
    kind: EventKind,
    /// Login; absent when a customer, a bank or a carrier caused it.
    by: Option<String>,
    /// What happened, with the codes of papers and parcels.
    message: String,
}

/// All sources of events with the same columns; `?1` is the order, `?2` its code.
const EVENTS: &str = "
    select e.at, e.kind, u.login, e.message from order_events e left join users u on u.id = e.user_id where e.order_id = ?1
    union all
    select p.paid_on || 'T06:00:00', 'payment', u.login, p.amount_cents || ' cents by ' || p.method from payments p
        left join users u on u.id = p.user_id where p.order_id = ?1
    union all
    select i.created_at, 'invoice', null, printf('INV-%06d ', i.id) || i.kind || ' ' || coalesce(i.number, 'draft') from invoices i
        where i.order_id = ?1
    union all
    select r.sent_at, 'reminder', u.login, printf('INV-%06d', r.invoice_id) || ' reminder ' || r.level from reminders r
        join invoices i on i.id = r.invoice_id left join users u on u.id = r.user_id where i.order_id = ?1
    union all
    select e.at, 'shipment', null, printf('SHP-%06d ', s.id) || e.status || ': ' || e.message from shipment_events e
        join shipments s on s.id = e.shipment_id where s.order_id = ?1
    union all
    select n.created_at, 'note', u.login, n.body from notes n join users u on u.id = n.author_id where n.about = ?2";

pub(crate) fn timeline(ctx: &Ctx<'_>, params: TimelineParams) -> Result<Timeline, ShopError> {
    let TimelineParams { id, kinds, newest_first, limit } = params;
    card_of(ctx, id)?;
    let mut events = ctx.all(EVENTS, params![id, id.to_string()], |row| {
        Ok(Event { at: row.get(0)?, kind: row.get(1)?, by: row.get(2)?, message: row.get(3)? })
    })?;
    events.retain(|event| kinds.is_empty() || kinds.contains(&event.kind));
    // The sort is stable: events of one moment stay in the order they were written in.
    events.sort_by(|a, b| a.at.cmp(&b.at));
    if newest_first {
        events.reverse();
    }
    let limit = limit.0 as usize;
    let is_cut = events.len() > limit;
    events.truncate(limit);
    Ok(Timeline { id, events, is_cut })
}
