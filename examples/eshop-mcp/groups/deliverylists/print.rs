//! The delivery list as a small text to print.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::DeliveryListId,
    ctx::Ctx,
    error::ShopError,
    groups::deliverylists::{
        edit::open,
        list::ship_to,
        view::{ListCard, ListLine, ListStatus, card_of, lines_of},
    },
    values::words,
};

words!(/// What stands on the paper: `picking` has shelves and boxes to tick, `packing` goes into the parcel.
    Paper { Picking = "picking", Packing = "packing" });

/// What to print.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PrintParams {
    id: DeliveryListId,
    #[serde(default = "picking")]
    paper: Paper,
    /// Characters in a line.
    #[serde(default = "width")]
    #[schemars(range(min = 48, max = 120), example = 72)]
    width: u32,
}

fn picking() -> Paper {
    Paper::Picking
}

fn width() -> u32 {
    72
}

/// The document.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document {
    list: ListCard,
    paper: Paper,
    /// Plain text, lines ended by a line feed.
    text: String,
    /// Printed before; the text says so too.
    is_copy: bool,
    /// When it was first printed.
    printed_at: String,
}

pub(crate) fn print(ctx: &Ctx<'_>, params: PrintParams) -> Result<Document, ShopError> {
    let edit = open(ctx, params.id, None)?;
    edit.require(
        &[ListStatus::Draft, ListStatus::Picking, ListStatus::Confirmed],
        "a cancelled list is not printed, so that nobody picks from it",
    )?;
    let before: Option<String> = ctx.value("select printed_at from delivery_lists where id = ?", [edit.id])?;
    let is_copy = before.is_some();
    let printed_at = before.unwrap_or_else(|| ctx.now());
    if !is_copy {
        ctx.run(
            "update delivery_lists set printed_at = ?1, updated_at = ?1, version = version + 1 where id = ?2",
            params![printed_at, edit.id],
        )?;
    }
    let what = if is_copy { "copy" } else { "list" };
    ctx.log(edit.id, &format!("printed the {} {what}", params.paper))?;
    let list = card_of(ctx, edit.id)?;
    let text = text(ctx, &list, &params, is_copy)?;
    Ok(Document { list, paper: params.paper, text, is_copy, printed_at })
}

fn text(ctx: &Ctx<'_>, list: &ListCard, params: &PrintParams, is_copy: bool) -> Result<String, ShopError> {
    let width = usize::try_from(params.width).unwrap_or(72);
    let (note, wish): (Option<String>, Option<String>) = ctx.db.query_row(
        "select d.note, o.customer_note from delivery_lists d join orders o on o.id = d.order_id where d.id = ?",
        [list.id],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let (title, note) = match params.paper {
        Paper::Picking => ("PICKING LIST", note),
        Paper::Packing => ("DELIVERY NOTE", None),
    };
    let copy = if is_copy { " (COPY)" } else { "" };
    let rule = "-".repeat(width);
    let mut rows = head(ctx, list, &format!("{title} {}{copy}", list.id), width)?;
    rows.push(rule.clone());
    for line in lines_of(ctx, list.id)? {
        rows.push(row(&line, params.paper, list.status, width));
    }
    rows.push(rule);
    let progress = &list.progress;
    rows.push(ends(
        &format!("{} lines, {} pieces", progress.lines, progress.pieces),
        &format!("{} g", progress.weight_g),
        width,
    ));
    rows.extend(note.map(|note| format!("Note: {note}")));
    rows.extend(wish.map(|wish| format!("Customer: {wish}")));
    rows.push(String::new());
    Ok(rows.join("\n"))
}

/// What stands above the lines.
fn head(ctx: &Ctx<'_>, list: &ListCard, title: &str, width: usize) -> Result<Vec<String>, ShopError> {
    let to = ship_to(ctx, list.order.id)?;
    Ok(vec![
        ends(title, &ctx.today.to_string(), width),
        ends(&format!("Order {}", list.order.id), &format!("Warehouse {}", list.warehouse), width),
        format!("To: {}, {}, {} {}, {}", to.name, to.street, to.postcode, to.city, to.country),
        format!("Carrier: {}", list.carrier.as_deref().unwrap_or("picked up at the store")),
    ])
}

/// A line of the list: a box to tick and the shelf to go to, or what lies in the parcel.
fn row(line: &ListLine, paper: Paper, status: ListStatus, width: usize) -> String {
    let name = format!("{} {}", line.sku.0, line.name);
    match paper {
        Paper::Picking => ends(&format!("[ ] {:<7} {:>3} x {name}", line.location, line.quantity), &line.ean, width),
        Paper::Packing => {
            let quantity = match status {
                ListStatus::Confirmed => line.picked,
                _ => line.quantity,
            };
            ends(&name, &format!("{quantity} pcs"), width)
        }
    }
}

/// Puts one text at the left end and one at the right; the left one is cut when they do not fit.
fn ends(left: &str, right: &str, width: usize) -> String {
    let space = width.saturating_sub(right.chars().count() + 1);
    let left: String = left.chars().take(space).collect();
    format!("{left:<space$} {right}")
}
