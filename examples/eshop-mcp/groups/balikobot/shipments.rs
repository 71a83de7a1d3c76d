//! The list of shipments, and one shipment with everything about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Address, CustomerId, DateRange, Limit, Offset, OrderId, OrderStatus, Page, ShipmentId},
    ctx::{Ctx, Listing},
    error::ShopError,
    groups::balikobot::{
        codes::{CarrierCode, ShipmentStatus},
        terms::find,
        view::{CARD_COLUMNS, CARD_TABLES, OPEN, ShipmentCard, card, card_of},
    },
    query::Filter,
};

/// Which shipments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParams {
    /// States to include; all when absent.
    #[serde(default)]
    #[schemars(length(max = 6), example = [ShipmentStatus::Created, ShipmentStatus::HandedOver])]
    status: Vec<ShipmentStatus>,
    /// Only this carrier's shipments.
    carrier: Option<CarrierCode>,
    /// Only shipments of this order.
    order_id: Option<OrderId>,
    /// Part of the tracking number.
    #[schemars(length(min = 3, max = 24), example = &"DPX4000")]
    tracking_no: Option<String>,
    /// Day the shipment was created.
    created: Option<DateRange>,
    /// Only shipments that collect cash, or only those that do not.
    #[schemars(example = true)]
    cod: Option<bool>,
    /// Only shipments under way whose expected day has passed.
    #[serde(default)]
    #[schemars(example = true)]
    only_late: bool,
    #[serde(default)]
    limit: Limit,
    #[serde(default)]
    offset: Offset,
}

pub(crate) fn list(ctx: &Ctx<'_>, params: ListParams) -> Result<Page<ShipmentCard>, ShopError> {
    let mut filter = Filter::default();
    filter.any("s.status", &params.status)?;
    if let Some(code) = &params.carrier {
        find(ctx, code)?;
    }
    filter.bind("k.code = ?", params.carrier.as_ref().map(|code| &code.0))?;
    filter.bind("s.order_id = ?", params.order_id.as_ref())?;
    if let Some(text) = &params.tracking_no {
        filter.contains(&["s.tracking_no"], text);
    }
    filter.days("s.created_at", "created", params.created.as_ref())?;
    filter.bind("(s.cod_cents > 0) = ?", params.cod.as_ref())?;
    if params.only_late {
        filter.push(OPEN);
        filter.bind("s.expected_on < ?", Some(&ctx.today))?;
    }
    let listing = Listing {
        columns: CARD_COLUMNS,
        from: CARD_TABLES,
        order: "s.created_at desc, s.id desc",
        limit: params.limit,
        offset: params.offset,
    };
    ctx.page(listing, &filter, |row| card(row, ctx.today))
}

/// Which shipment.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetParams {
    id: ShipmentId,
}

/// A shipment with recipient, worth and moments.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ShipmentSheet {
    shipment: ShipmentCard,
    order_status: OrderStatus,
    customer_id: CustomerId,
    recipient: Address,
    /// Insured worth, in the shipment's currency.
    value_cents: i64,
    /// In CZK, what the shop pays.
    cost_cents: i64,
    tracking_url: String,
    /// When the label was made; absent while there is none.
    label_at: Option<String>,
    handed_over_at: Option<String>,
    delivered_at: Option<String>,
    /// Whether balikobot_shipment_cancel still accepts it.
    can_cancel: bool,
}

pub(crate) fn get(ctx: &Ctx<'_>, params: GetParams) -> Result<ShipmentSheet, ShopError> {
    let shipment = card_of(ctx, params.id)?;
    let can_cancel = shipment.status == ShipmentStatus::Created;
    let sql = "select a.*, o.status, o.customer_id as buyer_id, s.value_cents, s.cost_cents, k.tracking_url || s.tracking_no as url,
                   s.label_at, s.handed_over_at, s.delivered_at
               from shipments s join orders o on o.id = s.order_id join addresses a on a.id = o.shipping_address_id
                   join carriers k on k.id = s.carrier_id where s.id = ?";
    Ok(ctx.db.query_row(sql, [params.id], |row| {
        Ok(ShipmentSheet {
            shipment,
            order_status: row.get("status")?,
            customer_id: row.get("buyer_id")?,
            recipient: Address::read(row)?,
            value_cents: row.get("value_cents")?,
            cost_cents: row.get("cost_cents")?,
            tracking_url: row.get("url")?,
            label_at: row.get("label_at")?,
            handed_over_at: row.get("handed_over_at")?,
            delivered_at: row.get("delivered_at")?,
            can_cancel,
        })
    })?)
}
