//! Calling a shipment off before the driver has it.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{ShipmentId, Version},
    ctx::Ctx,
    error::ShopError,
    groups::balikobot::{
        codes::ShipmentStatus,
        track::event,
        view::{ShipmentState, card_of},
    },
};

/// Which shipment, and why.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelParams {
    id: ShipmentId,
    expected_version: Option<Version>,
    /// Why, for colleagues and the carrier.
    #[schemars(length(min = 3, max = 200), example = &"customer wants a box instead")]
    reason: String,
}

/// The shipment that was called off.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Cancelled {
    shipment: ShipmentState,
    /// Cash that another parcel of the order may collect now.
    freed_cod_cents: i64,
    follow_up: String,
}

pub(crate) fn cancel(ctx: &Ctx<'_>, params: CancelParams) -> Result<Cancelled, ShopError> {
    let CancelParams { id, expected_version, reason } = params;
    let card = card_of(ctx, id)?;
    Version::check(expected_version, card.version, &format!("shipment {id}"))?;
    if card.status != ShipmentStatus::Created {
        return Err(ShopError::state(
            format!("shipment {id} is {}; this takes created", card.status),
            "follow it with `balikobot_track`; once it is back use `orders_status_change` to returned",
        ));
    }
    ctx.run(
        "update shipments set status = 'cancelled', version = version + 1, updated_at = ? where id = ?",
        params![ctx.now(), id],
    )?;
    event(ctx, id, "cancelled", "Brno", &reason)?;
    ctx.log(card.order_id, &format!("{id} cancelled: {reason}"))?;
    Ok(Cancelled {
        shipment: card_of(ctx, id)?.into(),
        freed_cod_cents: card.cod_cents,
        follow_up: "destroy the printed label; send anew with balikobot_shipment_create".to_owned(),
    })
}
