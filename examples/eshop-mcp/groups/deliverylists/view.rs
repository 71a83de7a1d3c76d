//! What tools show of a delivery list: a card for lists, lines and the whole for one.

use rusqlite::{Row, params};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    common::{Address, Change, CustomerId, DeliveryListId, OrderId, OrderStatus, Sku, Warehouse},
    ctx::Ctx,
    error::ShopError,
    values::words,
};

words!(/// State of a delivery list.
    ListStatus { Draft = "draft", Picking = "picking", Confirmed = "confirmed", Cancelled = "cancelled" });

/// Delivery list in short.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListCard {
    pub(crate) id: DeliveryListId,
    /// Pass as `expected_version` when writing.
    pub(crate) version: i64,
    pub(crate) status: ListStatus,
    pub(crate) order: OrderBrief,
    /// Shelves that it is picked from.
    pub(crate) warehouse: Warehouse,
    /// Code of the carrier; absent when picked up at the store.
    pub(crate) carrier: Option<String>,
    /// Login of who picks; absent before picking starts.
    pub(crate) picker: Option<String>,
    pub(crate) progress: Progress,
    pub(crate) is_printed: bool,
    pub(crate) created_at: String,
}

/// The order that a list serves.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OrderBrief {
    pub(crate) id: OrderId,
    /// Pass as `expected_version` to order tools.
    pub(crate) version: i64,
    pub(crate) status: OrderStatus,
    pub(crate) customer_id: CustomerId,
    pub(crate) customer: String,
}

/// How far picking is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Progress {
    pub(crate) lines: i64,
    /// Pieces to pick.
    pub(crate) pieces: i64,
    pub(crate) picked: i64,
    /// pieces - picked.
    pub(crate) missing: i64,
    /// Weight of all pieces without packaging.
    pub(crate) weight_g: i64,
}

/// Line of a delivery list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListLine {
    /// Number of the order's line.
    pub(crate) line: i64,
    pub(crate) sku: Sku,
    pub(crate) name: String,
    /// Bar code to scan.
    pub(crate) ean: String,
    /// Shelf: aisle, rack, level.
    pub(crate) location: String,
    /// Pieces that the order has.
    pub(crate) ordered: i64,
    /// Pieces that this list is to pick.
    pub(crate) quantity: i64,
    pub(crate) picked: i64,
    /// Pieces of the variant in the warehouse, those reserved for other orders included.
    pub(crate) on_hand: i64,
}

/// When things happened; absent when they have not.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Moments {
    pub(crate) picking_at: Option<String>,
    pub(crate) confirmed_at: Option<String>,
    pub(crate) cancelled_at: Option<String>,
    pub(crate) printed_at: Option<String>,
    pub(crate) updated_at: String,
}

/// A delivery list whole.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListSheet {
    pub(crate) list: ListCard,
    /// In the order of the shelves.
    pub(crate) lines: Vec<ListLine>,
    pub(crate) ship_to: Address,
    /// Wish of the customer.
    pub(crate) customer_note: Option<String>,
    /// Note for the picker.
    pub(crate) note: Option<String>,
    pub(crate) moments: Moments,
    /// Tools that the state allows now.
    pub(crate) next_tools: Vec<String>,
}

/// Answer of a write on a delivery list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListChange {
    pub(crate) list: ListCard,
    /// In the order of the shelves.
    pub(crate) lines: Vec<ListLine>,
    /// What differs from before in the list, its order and the stock.
    pub(crate) changes: Vec<Change>,
    /// What to do next, if anything follows from it.
    pub(crate) follow_up: Option<String>,
}

/// Columns of [`ListCard`].
pub(crate) const CARD_COLUMNS: &str = "d.id, d.version, d.status, d.order_id, o.version as order_version,
    o.status as order_status, o.customer_id, c.name as customer, w.code as warehouse,
    k.code as carrier, u.login as picker, d.printed_at is not null as is_printed, d.created_at,
    (select count(*) from delivery_list_items l where l.delivery_list_id = d.id) as lines,
    (select coalesce(sum(quantity), 0) from delivery_list_items l where l.delivery_list_id = d.id) as pieces,
    (select coalesce(sum(picked), 0) from delivery_list_items l where l.delivery_list_id = d.id) as picked,
    (select coalesce(sum(l.quantity * v.weight_g), 0) from delivery_list_items l
         join order_items i on i.id = l.order_item_id join variants v on v.id = i.variant_id
         where l.delivery_list_id = d.id) as weight_g";

/// Tables of [`ListCard`].
pub(crate) const CARD_TABLES: &str = "delivery_lists d join orders o on o.id = d.order_id
    join customers c on c.id = o.customer_id join warehouses w on w.id = d.warehouse_id
    left join carriers k on k.id = o.carrier_id left join users u on u.id = d.picker_id";

pub(crate) fn card(row: &Row<'_>) -> rusqlite::Result<ListCard> {
    let (pieces, picked): (i64, i64) = (row.get("pieces")?, row.get("picked")?);
    Ok(ListCard {
        id: row.get("id")?,
        version: row.get("version")?,
        status: row.get("status")?,
        order: OrderBrief {
            id: row.get("order_id")?,
            version: row.get("order_version")?,
            status: row.get("order_status")?,
            customer_id: row.get("customer_id")?,
            customer: row.get("customer")?,
        },
        warehouse: row.get("warehouse")?,
        carrier: row.get("carrier")?,
        picker: row.get("picker")?,
        progress: Progress {
            lines: row.get("lines")?,
            pieces,
            picked,
            missing: pieces - picked,
            weight_g: row.get("weight_g")?,
        },
        is_printed: row.get("is_printed")?,
        created_at: row.get("created_at")?,
    })
}

/// Reads the card of one list.
///
/// # Errors
/// `Refused` with `not_found`.
pub(crate) fn card_of(ctx: &Ctx<'_>, id: DeliveryListId) -> Result<ListCard, ShopError> {
    let sql = format!("select {CARD_COLUMNS} from {CARD_TABLES} where d.id = ?");
    ctx.one(&sql, [id], card)?.ok_or_else(|| ShopError::not_found("delivery list", id, "deliverylists_list").at("id"))
}

/// Reads the lines of a list in the order of the shelves.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn lines_of(ctx: &Ctx<'_>, id: DeliveryListId) -> Result<Vec<ListLine>, ShopError> {
    let sql = "select i.line, v.sku, trim(p.brand || ' ' || p.name || ' ' || v.name), v.ean, l.location, i.quantity,
                   l.quantity, l.picked, coalesce(s.on_hand, 0)
               from delivery_list_items l join delivery_lists d on d.id = l.delivery_list_id
               join order_items i on i.id = l.order_item_id join variants v on v.id = i.variant_id
               join products p on p.id = v.product_id
               left join stock s on s.variant_id = v.id and s.warehouse_id = d.warehouse_id
               where d.id = ? order by l.location, i.line";
    ctx.all(sql, params![id], |row| {
        Ok(ListLine {
            line: row.get(0)?,
            sku: Sku(row.get(1)?),
            name: row.get(2)?,
            ean: row.get(3)?,
            location: row.get(4)?,
            ordered: row.get(5)?,
            quantity: row.get(6)?,
            picked: row.get(7)?,
            on_hand: row.get(8)?,
        })
    })
}

/// Tools that act on a list in this state.
pub(crate) fn next_tools(status: ListStatus) -> &'static [&'static str] {
    match status {
        ListStatus::Draft => {
            &["deliverylists_item_set", "deliverylists_pick_start", "deliverylists_print", "deliverylists_cancel"]
        }
        ListStatus::Picking => {
            &["deliverylists_item_set", "deliverylists_confirm", "deliverylists_print", "deliverylists_cancel"]
        }
        ListStatus::Confirmed => &["deliverylists_print", "deliverylists_cancel"],
        ListStatus::Cancelled => &[],
    }
}
