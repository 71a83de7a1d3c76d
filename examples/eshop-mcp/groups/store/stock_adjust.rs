//! Correcting the stock: deliveries, counts, damage.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Sku, Version, Warehouse},
    ctx::Ctx,
    error::ShopError,
    groups::store::{
        codes::MovementKind,
        shelf::{self, ShelfState},
    },
    values::words,
};

words!(/// Why the stock changes; `receipt` is a delivery from the supplier.
AdjustReason {
    Receipt = "receipt",
    Count = "count",
    Damage = "damage",
    Loss = "loss",
    Found = "found",
    Sample = "sample",
});

/// What changes; give exactly one of `delta` and `counted`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdjustParams {
    sku: Sku,
    warehouse: Warehouse,
    /// Of the stock row; advisable with `counted`.
    expected_version: Option<Version>,
    /// Pieces that come in, or go out when negative.
    #[schemars(range(min = -10_000, max = 10_000), example = -1)]
    delta: Option<i64>,
    /// Pieces that were found on the shelf, reserved ones included.
    #[schemars(range(min = 0, max = 100_000), example = 12)]
    counted: Option<i64>,
    reason: AdjustReason,
    /// Details, such as the number of the supplier's delivery note.
    #[schemars(length(max = 200), example = &"delivery note 20261127")]
    note: Option<String>,
}

/// The row as the write leaves it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Adjusted {
    stock: ShelfState,
    /// Pieces that came in, or went out when negative.
    delta: i64,
}

pub(crate) fn adjust(ctx: &Ctx<'_>, params: AdjustParams) -> Result<Adjusted, ShopError> {
    let shelf = shelf::open(ctx, &params.sku, params.warehouse, params.expected_version, "sku")?;
    let (delta, field) = match (params.delta, params.counted) {
        (Some(delta), None) => (delta, "delta"),
        (None, Some(counted)) => (counted - shelf.on_hand, "counted"),
        (None, None) => return Err(one_of("missing")),
        (Some(_), Some(_)) => return Err(one_of("given besides `counted`")),
    };
    check_sign(params.reason, delta, field)?;
    let kind = match params.reason {
        AdjustReason::Receipt => MovementKind::Receipt,
        _ => MovementKind::Adjust,
    };
    let reason = match &params.note {
        Some(note) => format!("{}: {note}", params.reason),
        None => params.reason.to_string(),
    };
    shelf.book(ctx, delta, kind, &reason).map_err(|error| error.at(field))?;
    let summary = format!("stock in {} {delta:+}, {reason}", params.warehouse);
    ctx.log(&params.sku.0, &summary)?;
    Ok(Adjusted { stock: shelf.state(ctx)?, delta })
}

fn one_of(found: &str) -> ShopError {
    ShopError::invalid("delta", found, "exactly one of `delta` and `counted`")
}

/// A delivery cannot take away and damage cannot add: one of both was mistyped.
fn check_sign(reason: AdjustReason, delta: i64, field: &str) -> Result<(), ShopError> {
    let allowed = match (reason, delta) {
        (_, 0) => "a change; the stock has this number already",
        (AdjustReason::Receipt | AdjustReason::Found, ..0) => "more pieces than before, for this reason",
        (AdjustReason::Damage | AdjustReason::Loss | AdjustReason::Sample, 1..) => {
            "fewer pieces than before, for this reason"
        }
        _ => return Ok(()),
    };
    Err(ShopError::invalid(field, format!("a change of {delta:+} ({reason})"), allowed))
}
