//! Words and codes of parcels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::words;

words!(/// State of a shipment.
ShipmentStatus {
    Created = "created",
    HandedOver = "handed_over",
    InTransit = "in_transit",
    Delivered = "delivered",
    Returned = "returned",
    Cancelled = "cancelled",
});
words!(/// Delivery to the door, or to a branch for pick-up.
    CarrierKind { Home = "home", Pickup = "pickup" });
words!(/// Self-service box, or counter with staff.
    BranchKind { Box = "box", Counter = "counter" });

/// Code of a carrier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(example = &"dpx")]
pub(crate) struct CarrierCode(#[schemars(regex(pattern = "^[a-z]{3,10}$"))] pub(crate) String);

/// Code of a carrier's branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(example = &"ZASILKA-60200-1")]
pub(crate) struct BranchCode(#[schemars(regex(pattern = "^[A-Z]{3,10}-[0-9]{5}-[0-9]{1,2}$"))] pub(crate) String);
