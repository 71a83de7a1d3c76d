//! The plain list of orders.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{CustomerId, DateRange, Direction, Limit, Offset, OrderStatus, Page, Warehouse},
    ctx::{Ctx, Listing},
    error::ShopError,
    groups::orders::view::{CARD_COLUMNS, CARD_TABLES, OrderCard, card},
    query::Filter,
    values::words,
};

words!(/// What to sort by.
    OrderSort { PlacedAt = "placed_at", UpdatedAt = "updated_at", Total = "total_cents" });

/// Which orders.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParams {
    /// States to include; all when absent.
    #[serde(default)]
    #[schemars(length(max = 9), example = [OrderStatus::New, OrderStatus::Confirmed])]
    status: Vec<OrderStatus>,
    /// Only this customer's orders.
    customer_id: Option<CustomerId>,
    /// Only orders that this warehouse ships.
    warehouse: Option<Warehouse>,
    /// Day the order was placed.
    placed: Option<DateRange>,
    #[serde(default = "placed_at")]
    sort: OrderSort,
    #[serde(default = "desc")]
    direction: Direction,
    #[serde(default)]
    limit: Limit,
    #[serde(default)]
    offset: Offset,
}

fn placed_at() -> OrderSort {
    OrderSort::PlacedAt
}

fn desc() -> Direction {
    Direction::Desc
}

pub(crate) fn list(ctx: &Ctx<'_>, params: ListParams) -> Result<Page<OrderCard>, ShopError> {
    let mut filter = Filter::default();
    filter.any("o.status", &params.status)?;
    filter.bind("o.customer_id = ?", params.customer_id.as_ref())?;
    filter.bind("w.code = ?", params.warehouse.as_ref())?;
    filter.days("o.placed_at", "placed", params.placed.as_ref())?;
    let listing = Listing {
        columns: CARD_COLUMNS,
        from: CARD_TABLES,
        order: &format!("o.{} {d}, o.id {d}", params.sort, d = params.direction),
        limit: params.limit,
        offset: params.offset,
    };
    ctx.page(listing, &filter, card)
}
