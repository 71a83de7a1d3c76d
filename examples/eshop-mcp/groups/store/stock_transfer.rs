//! Moving pieces from one warehouse to another.

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
};

/// Pieces to move.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TransferLine {
    sku: Sku,
    /// Pieces.
    #[schemars(range(min = 1, max = 1000), example = 3)]
    quantity: i64,
    /// Of the stock row in `from`.
    expected_version: Option<Version>,
}

/// What goes where.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TransferParams {
    /// Warehouse that gives.
    from: Warehouse,
    /// Warehouse that gets.
    to: Warehouse,
    /// What moves; a SKU only once. All lines move, or none.
    #[schemars(length(min = 1, max = 50), example = serde_json::json!([{"sku": "TNT-001-GREEN", "quantity": 3}]))]
    lines: Vec<TransferLine>,
    /// Why.
    #[schemars(length(min = 3, max = 200), example = &"refill the store for Saturday")]
    reason: String,
}

/// Both sides of each line.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Transferred {
    /// In the order of the lines.
    from: Vec<ShelfState>,
    /// In the order of the lines.
    to: Vec<ShelfState>,
    pieces: i64,
}

pub(crate) fn transfer(ctx: &Ctx<'_>, params: TransferParams) -> Result<Transferred, ShopError> {
    let (from, to) = (params.from, params.to);
    if from == to {
        return Err(ShopError::invalid("to", to, "another warehouse than `from`"));
    }
    let mut moved = Transferred { from: Vec::new(), to: Vec::new(), pieces: 0 };
    for (index, line) in params.lines.iter().enumerate() {
        let field = format!("lines[{index}].sku");
        if params.lines.iter().take(index).any(|other| other.sku == line.sku) {
            let allowed = "each SKU once, with the whole quantity";
            return Err(ShopError::invalid(&field, &line.sku.0, allowed));
        }
        let giver = shelf::open(ctx, &line.sku, from, line.expected_version, &field)?;
        let taker = shelf::open(ctx, &line.sku, to, None, &field)?;
        let (out, into) = (format!("to {to}: {}", params.reason), format!("from {from}: {}", params.reason));
        giver
            .book(ctx, -line.quantity, MovementKind::Transfer, &out)
            .map_err(|error| error.at(&format!("lines[{index}].quantity")))?;
        taker.book(ctx, line.quantity, MovementKind::Transfer, &into)?;
        ctx.log(&line.sku.0, &format!("{} moved from {from} to {to}", line.quantity))?;
        moved.from.push(giver.state(ctx)?);
        moved.to.push(taker.state(ctx)?);
        moved.pieces += line.quantity;
    }
    Ok(moved)
}
