//! Fills notes, tasks, the activity log and reservations by hand: a few of each.

use rusqlite::{Connection, params};

use crate::error::ShopError;

const NOTES: [(&str, &str, i64, &str); 6] = [
    ("CUS-0008", "Always asks for an invoice with the purchase order number.", 2, "2026-03-04T10:12:00"),
    ("CUS-0017", "Prefers to be called after 16:00.", 3, "2026-05-19T09:40:00"),
    ("ORD-000212", "Gift: leave the price list out of the parcel.", 2, "2026-06-01T14:02:00"),
    ("PRD-001", "Poles of the spring batch were too short; check before shipping.", 3, "2026-06-22T08:15:00"),
    ("ORD-000120", "Claimed a torn seam, photo is in the mailbox.", 4, "2026-07-08T11:30:00"),
    ("CUS-0044", "Credit limit agreed with Martin until the end of the year.", 5, "2026-09-30T15:55:00"),
];
/// Title, record, assignee, priority, status, due day.
type Task = (&'static str, Option<&'static str>, i64, &'static str, &'static str, Option<&'static str>);

const TASKS: [Task; 7] = [
    ("Order gas cartridges before Christmas", Some("PRD-012"), 3, "high", "open", Some("2026-11-30")),
    ("Call about the torn seam", Some("ORD-000120"), 2, "normal", "done", Some("2026-07-10")),
    ("Count the climbing shelf", None, 3, "low", "open", Some("2026-12-11")),
    ("Check overdue wholesale invoices", Some("CUS-0008"), 4, "high", "open", Some("2026-11-27")),
    ("New photos of Daytrip 22", Some("PRD-033"), 2, "low", "open", None),
    ("Return faulty stoves to the supplier", Some("PRD-011"), 3, "normal", "open", Some("2026-11-24")),
    ("Renew the contract with DPX", None, 5, "normal", "open", Some("2026-12-31")),
];

/// Fills the tables.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn fill(db: &Connection) -> Result<(), ShopError> {
    for (about, body, author, at) in NOTES {
        db.execute(
            "insert into notes (about, body, author_id, created_at) values (?, ?, ?, ?)",
            params![about, body, author, at],
        )?;
        db.execute(
            "insert into activity (at, user_id, tool, about, summary) values (?, ?, 'core_note_create', ?, 'note added')",
            params![at, author, about],
        )?;
    }
    for (title, about, assignee, priority, status, due_on) in TASKS {
        db.execute(
            "insert into tasks (title, about, assignee_id, priority, status, due_on, created_by, created_at)
             values (?, ?, ?, ?, ?, ?, 4, '2026-07-06T09:00:00')",
            params![title, about, assignee, priority, status, due_on],
        )?;
    }
    for (variant_id, quantity, reason) in [(1, 2, "display in the store window"), (40, 1, "photo shooting")] {
        db.execute(
            "insert into reservations (variant_id, warehouse_id, quantity, reason, status, expires_on, user_id, created_at)
             values (?, 1, ?, ?, 'active', '2026-12-15', 3, '2026-11-16T09:00:00')",
            params![variant_id, quantity, reason],
        )?;
        db.execute(
            "update stock set on_hand = on_hand + ?1, reserved = reserved + ?1 where variant_id = ?2 and warehouse_id = 1",
            params![quantity, variant_id],
        )?;
        db.execute(
            "insert into stock_movements (variant_id, warehouse_id, delta, kind, user_id, at)
             values (?, 1, ?, 'receipt', 3, '2026-11-16T08:00:00')",
            params![variant_id, quantity],
        )?;
    }
    Ok(())
}
