//! What tools show of a shipment, and how writes find one.

use rusqlite::Row;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    common::{Currency, OrderId, ShipmentId},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::balikobot::codes::{BranchCode, CarrierCode, ShipmentStatus},
};

/// Shipment in short.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ShipmentCard {
    pub(crate) id: ShipmentId,
    /// Pass as `expected_version` when writing.
    pub(crate) version: i64,
    pub(crate) order_id: OrderId,
    pub(crate) carrier: CarrierCode,
    /// Where it is picked up; absent for delivery to the door.
    pub(crate) branch: Option<BranchCode>,
    pub(crate) status: ShipmentStatus,
    pub(crate) tracking_no: String,
    pub(crate) weight_g: i64,
    /// Cash to collect; 0 when none.
    pub(crate) cod_cents: i64,
    /// Of `cod_cents`.
    pub(crate) currency: Currency,
    pub(crate) expected_on: Date,
    /// Under way, and the expected day has passed.
    pub(crate) is_late: bool,
    pub(crate) created_at: String,
}

/// Shipment as its way shows it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ShipmentState {
    pub(crate) id: ShipmentId,
    pub(crate) version: i64,
    pub(crate) order_id: OrderId,
    pub(crate) carrier: CarrierCode,
    pub(crate) status: ShipmentStatus,
    pub(crate) tracking_no: String,
    pub(crate) expected_on: Date,
    /// Under way, and the expected day has passed.
    pub(crate) is_late: bool,
}

impl From<ShipmentCard> for ShipmentState {
    fn from(card: ShipmentCard) -> Self {
        Self {
            id: card.id,
            version: card.version,
            order_id: card.order_id,
            carrier: card.carrier,
            status: card.status,
            tracking_no: card.tracking_no,
            expected_on: card.expected_on,
            is_late: card.is_late,
        }
    }
}

/// Columns of [`ShipmentCard`], for the tables of [`CARD_TABLES`].
pub(crate) const CARD_COLUMNS: &str =
    "s.id, s.version, s.order_id, k.code as carrier, b.code as branch, s.status, s.tracking_no, s.weight_g,
    s.cod_cents, s.currency, s.expected_on, s.created_at";

/// Tables of [`ShipmentCard`].
pub(crate) const CARD_TABLES: &str =
    "shipments s join carriers k on k.id = s.carrier_id left join branches b on b.id = s.branch_id";

/// Condition that a shipment is neither delivered nor given up.
pub(crate) const OPEN: &str = "s.status in ('created', 'handed_over', 'in_transit')";

pub(crate) fn card(row: &Row<'_>, today: Date) -> rusqlite::Result<ShipmentCard> {
    let status: ShipmentStatus = row.get("status")?;
    let expected_on: Date = row.get("expected_on")?;
    let is_open = matches!(status, ShipmentStatus::Created | ShipmentStatus::HandedOver | ShipmentStatus::InTransit);
    Ok(ShipmentCard {
        id: row.get("id")?,
        version: row.get("version")?,
        order_id: row.get("order_id")?,
        carrier: CarrierCode(row.get("carrier")?),
        branch: row.get::<_, Option<String>>("branch")?.map(BranchCode),
        status,
        tracking_no: row.get("tracking_no")?,
        weight_g: row.get("weight_g")?,
        cod_cents: row.get("cod_cents")?,
        currency: row.get("currency")?,
        expected_on,
        is_late: is_open && expected_on < today,
        created_at: row.get("created_at")?,
    })
}

/// Reads the card of one shipment.
///
/// # Errors
/// `Refused` with `not_found`.
pub(crate) fn card_of(ctx: &Ctx<'_>, id: ShipmentId) -> Result<ShipmentCard, ShopError> {
    let sql = format!("select {CARD_COLUMNS} from {CARD_TABLES} where s.id = ?");
    ctx.one(&sql, [id], |row| card(row, ctx.today))?
        .ok_or_else(|| ShopError::not_found("shipment", id, "balikobot_shipments_list").at("id"))
}
