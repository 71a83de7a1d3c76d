//! Where a shipment is: its events in order.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{ShipmentId, first},
    ctx::Ctx,
    error::ShopError,
    groups::balikobot::{
        codes::ShipmentStatus,
        view::{ShipmentState, card_of},
    },
};

/// Which shipment; give exactly one of both.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrackParams {
    id: Option<ShipmentId>,
    /// Tracking number in full, as customers give it.
    #[schemars(regex(pattern = "^[A-Z]{3,10}[0-9]{9}$"), example = &"DPX400007919")]
    tracking_no: Option<String>,
    /// Latest event first.
    #[serde(default)]
    #[schemars(example = true)]
    newest_first: bool,
}

/// A shipment and its way.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Tracked {
    shipment: ShipmentState,
    /// The carrier's page for the customer.
    tracking_url: String,
    events: Vec<Event>,
}

/// One step.
#[derive(Debug, Serialize, JsonSchema)]
struct Event {
    /// Moment, YYYY-MM-DDTHH:MM:SS in shop time.
    at: String,
    status: ShipmentStatus,
    place: String,
    message: String,
}

pub(crate) fn track(ctx: &Ctx<'_>, params: TrackParams) -> Result<Tracked, ShopError> {
    let id = match (params.id, &params.tracking_no) {
        (Some(id), None) => id,
        (None, Some(number)) => by_number(ctx, number)?,
        (found, _) => {
            let found = if found.is_some() { "given besides `tracking_no`" } else { "missing" };
            return Err(ShopError::invalid("id", found, "exactly one of `id` and `tracking_no`"));
        }
    };
    let shipment = card_of(ctx, id)?.into();
    let tracking_url = ctx.value(
        "select k.tracking_url || s.tracking_no from shipments s join carriers k on k.id = s.carrier_id where s.id = ?",
        [id],
    )?;
    let direction = if params.newest_first { "desc" } else { "asc" };
    let sql = format!(
        "select at, status, place, message from shipment_events where shipment_id = ? order by at {direction}, id {direction}"
    );
    let events = ctx.all(&sql, [id], |row| {
        Ok(Event { at: row.get(0)?, status: row.get(1)?, place: row.get(2)?, message: row.get(3)? })
    })?;
    Ok(Tracked { shipment, tracking_url, events })
}

fn by_number(ctx: &Ctx<'_>, number: &str) -> Result<ShipmentId, ShopError> {
    ctx.one("select id from shipments where tracking_no = ?", [number], first)?.ok_or_else(|| {
        ShopError::not_found("shipment with number", number, "balikobot_shipments_list").at("tracking_no")
    })
}

/// Adds an event to a shipment's way.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn event(ctx: &Ctx<'_>, id: ShipmentId, status: &str, place: &str, message: &str) -> Result<(), ShopError> {
    ctx.run(
        "insert into shipment_events (shipment_id, at, status, place, message) values (?, ?, ?, ?, ?)",
        params![id, ctx.now(), status, place, message],
    )?;
    Ok(())
}
