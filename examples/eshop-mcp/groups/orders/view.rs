//! What tools show of an order: a card for lists and writes, the whole for one order.

use rusqlite::{Row, params};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    common::{
        Address, Change, Currency, CustomerId, DeliveryListId, InvoiceId, OrderId, OrderStatus, PaymentMethod,
        PaymentStatus, SalesChannel, ShipmentId, Sku, Warehouse,
    },
    ctx::Ctx,
    error::ShopError,
};

/// Order in short.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OrderCard {
    pub(crate) id: OrderId,
    /// Pass as `expected_version` when writing.
    pub(crate) version: i64,
    pub(crate) status: OrderStatus,
    pub(crate) customer_id: CustomerId,
    pub(crate) customer: String,
    pub(crate) channel: SalesChannel,
    pub(crate) warehouse: Warehouse,
    pub(crate) payment_method: PaymentMethod,
    pub(crate) payment_status: PaymentStatus,
    pub(crate) totals: Totals,
    /// Pieces over all lines.
    pub(crate) pieces: i64,
    pub(crate) placed_at: String,
}

/// Amounts in hundredths, VAT included.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Totals {
    pub(crate) currency: Currency,
    pub(crate) items_cents: i64,
    /// Discounts on the whole order; those on lines are in `items_cents`.
    pub(crate) discount_cents: i64,
    pub(crate) shipping_cents: i64,
    /// items - discount + shipping.
    pub(crate) total_cents: i64,
    pub(crate) refunded_cents: i64,
}

/// Order as a write leaves it; orders_get has the rest.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OrderState {
    pub(crate) id: OrderId,
    /// Pass as `expected_version` when writing again.
    pub(crate) version: i64,
    pub(crate) status: OrderStatus,
    pub(crate) payment_status: PaymentStatus,
    pub(crate) totals: Totals,
}

/// Answer of a write on an order.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OrderChange {
    pub(crate) order: OrderState,
    /// What differs from before, one entry per field.
    pub(crate) changes: Vec<Change>,
    /// What to do next, if anything follows from it.
    pub(crate) follow_up: Option<String>,
}

/// Line of an order.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OrderLine {
    /// Line number, stable while the order lives.
    pub(crate) line: i64,
    pub(crate) sku: Sku,
    pub(crate) name: String,
    pub(crate) quantity: i64,
    /// Price of one piece.
    pub(crate) unit_cents: i64,
    pub(crate) discount_cents: i64,
    /// quantity * unit - discount.
    pub(crate) total_cents: i64,
    pub(crate) vat_percent: i64,
    /// Pieces that were refunded.
    pub(crate) refunded_quantity: i64,
}

/// Codes of the papers and parcels of an order.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Papers {
    pub(crate) invoices: Vec<InvoiceId>,
    pub(crate) delivery_lists: Vec<DeliveryListId>,
    pub(crate) shipments: Vec<ShipmentId>,
}

/// Columns of [`OrderCard`], with customers as `c` and warehouses as `w`.
pub(crate) const CARD_COLUMNS: &str = "o.id, o.version, o.status, o.customer_id, c.name as customer, o.channel, w.code as warehouse,
    o.payment_method, o.payment_status, o.currency, o.items_cents, o.discount_cents, o.shipping_cents, o.total_cents,
    o.refunded_cents, (select coalesce(sum(quantity), 0) from order_items i where i.order_id = o.id) as pieces, o.placed_at";

/// Tables of [`OrderCard`].
pub(crate) const CARD_TABLES: &str =
    "orders o join customers c on c.id = o.customer_id join warehouses w on w.id = o.warehouse_id";

pub(crate) fn card(row: &Row<'_>) -> rusqlite::Result<OrderCard> {
    Ok(OrderCard {
        id: row.get("id")?,
        version: row.get("version")?,
        status: row.get("status")?,
        customer_id: row.get("customer_id")?,
        customer: row.get("customer")?,
        channel: row.get("channel")?,
        warehouse: row.get("warehouse")?,
        payment_method: row.get("payment_method")?,
        payment_status: row.get("payment_status")?,
        totals: Totals {
            currency: row.get("currency")?,
            items_cents: row.get("items_cents")?,
            discount_cents: row.get("discount_cents")?,
            shipping_cents: row.get("shipping_cents")?,
            total_cents: row.get("total_cents")?,
            refunded_cents: row.get("refunded_cents")?,
        },
        pieces: row.get("pieces")?,
        placed_at: row.get("placed_at")?,
    })
}

/// Reads the card of one order.
///
/// # Errors
/// `Refused` with `not_found`.
pub(crate) fn card_of(ctx: &Ctx<'_>, id: OrderId) -> Result<OrderCard, ShopError> {
    let sql = format!("select {CARD_COLUMNS} from {CARD_TABLES} where o.id = ?");
    ctx.one(&sql, [id], card)?.ok_or_else(|| ShopError::not_found("order", id, "orders_search").at("id"))
}

/// Reads how a write leaves an order.
///
/// # Errors
/// `Refused` with `not_found`.
pub(crate) fn state_of(ctx: &Ctx<'_>, id: OrderId) -> Result<OrderState, ShopError> {
    let OrderCard { id, version, status, payment_status, totals, .. } = card_of(ctx, id)?;
    Ok(OrderState { id, version, status, payment_status, totals })
}

/// Reads the lines of an order.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn lines_of(ctx: &Ctx<'_>, id: OrderId) -> Result<Vec<OrderLine>, ShopError> {
    let sql = "select i.line, v.sku, trim(p.brand || ' ' || p.name || ' ' || v.name), i.quantity, i.unit_cents,
                   i.discount_cents, i.total_cents, i.vat_percent, i.refunded_quantity
               from order_items i join variants v on v.id = i.variant_id join products p on p.id = v.product_id
               where i.order_id = ? order by i.line";
    ctx.all(sql, params![id], |row| {
        Ok(OrderLine {
            line: row.get(0)?,
            sku: Sku(row.get(1)?),
            name: row.get(2)?,
            quantity: row.get(3)?,
            unit_cents: row.get(4)?,
            discount_cents: row.get(5)?,
            total_cents: row.get(6)?,
            vat_percent: row.get(7)?,
            refunded_quantity: row.get(8)?,
        })
    })
}

/// Reads the codes of an order's papers and parcels.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn papers_of(ctx: &Ctx<'_>, id: OrderId) -> Result<Papers, ShopError> {
    Ok(Papers {
        invoices: ctx.all("select id from invoices where order_id = ? order by id", [id], |r| r.get(0))?,
        delivery_lists: ctx.all("select id from delivery_lists where order_id = ? order by id", [id], |r| r.get(0))?,
        shipments: ctx.all("select id from shipments where order_id = ? order by id", [id], |r| r.get(0))?,
    })
}

/// Reads an address by its number.
///
/// # Errors
/// `Db` when the database fails or there is no such address.
pub(crate) fn address(ctx: &Ctx<'_>, id: i64) -> Result<Address, ShopError> {
    let sql = "select name, street, city, postcode, country from addresses where id = ?";
    Ok(ctx.db.query_row(sql, [id], Address::read)?)
}
