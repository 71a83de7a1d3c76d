//! Reading delivery lists: the queue, and one of them whole.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{Address, DateRange, DeliveryListId, Limit, Offset, OrderId, Page, Sku, Warehouse},
    ctx::{Ctx, Listing},
    error::ShopError,
    groups::deliverylists::view::{
        CARD_COLUMNS, CARD_TABLES, ListCard, ListSheet, ListStatus, Moments, card, card_of, lines_of, next_tools,
    },
    query::Filter,
    values::words,
};

words!(/// Which lists come first.
    ListOrder { Oldest = "oldest", Newest = "newest", Missing = "most_missing" });

/// Which lists; conditions add up.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParams {
    /// States to include; all when absent.
    #[serde(default)]
    #[schemars(length(max = 4), example = [ListStatus::Draft, ListStatus::Picking])]
    status: Vec<ListStatus>,
    /// Only the lists of this order.
    order_id: Option<OrderId>,
    warehouse: Option<Warehouse>,
    /// Login of the person who picks.
    #[schemars(regex(pattern = "^[a-z]{2,20}$"), example = &"petr")]
    picker: Option<String>,
    /// Code of the order's carrier.
    #[schemars(regex(pattern = "^[a-z]{3,10}$"), example = &"dpx")]
    carrier: Option<String>,
    /// Lists with this variant among their lines.
    sku: Option<Sku>,
    /// Day the list was made.
    created: Option<DateRange>,
    /// Day it was confirmed.
    confirmed: Option<DateRange>,
    /// True for printed lists, false for those not printed yet.
    #[schemars(example = false)]
    printed: Option<bool>,
    #[serde(default = "oldest")]
    sort: ListOrder,
    #[serde(default)]
    limit: Limit,
    #[serde(default)]
    offset: Offset,
}

fn oldest() -> ListOrder {
    ListOrder::Oldest
}

pub(crate) fn list(ctx: &Ctx<'_>, params: ListParams) -> Result<Page<ListCard>, ShopError> {
    let mut filter = Filter::default();
    filter.any("d.status", &params.status)?;
    filter.bind("d.order_id = ?", params.order_id.as_ref())?;
    filter.bind("w.code = ?", params.warehouse.as_ref())?;
    filter.bind("u.login = ?", params.picker.as_ref())?;
    filter.bind("k.code = ?", params.carrier.as_ref())?;
    let sku = params.sku.as_ref().map(|sku| &sku.0);
    filter.bind(
        "d.id in (select l.delivery_list_id from delivery_list_items l join order_items i on i.id = l.order_item_id
         join variants v on v.id = i.variant_id where v.sku = ?)",
        sku,
    )?;
    filter.days("d.created_at", "created", params.created.as_ref())?;
    filter.days("d.confirmed_at", "confirmed", params.confirmed.as_ref())?;
    filter.bind("(d.printed_at is not null) = ?", params.printed.as_ref())?;
    let order = match params.sort {
        ListOrder::Oldest => "d.created_at, d.id",
        ListOrder::Newest => "d.created_at desc, d.id desc",
        ListOrder::Missing => "pieces - picked desc, d.created_at, d.id",
    };
    let listing =
        Listing { columns: CARD_COLUMNS, from: CARD_TABLES, order, limit: params.limit, offset: params.offset };
    ctx.page(listing, &filter, card)
}

/// Which list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetParams {
    id: DeliveryListId,
}

pub(crate) fn get(ctx: &Ctx<'_>, params: GetParams) -> Result<ListSheet, ShopError> {
    let list = card_of(ctx, params.id)?;
    let lines = lines_of(ctx, params.id)?;
    let next_tools = next_tools(list.status).iter().map(|&name| name.to_owned()).collect();
    let ship_to = ship_to(ctx, list.order.id)?;
    let sql = "select o.customer_note, d.note, d.picking_at, d.confirmed_at, d.cancelled_at, d.printed_at, d.updated_at
               from delivery_lists d join orders o on o.id = d.order_id where d.id = ?";
    Ok(ctx.db.query_row(sql, [params.id], |row| {
        Ok(ListSheet {
            list,
            lines,
            ship_to,
            customer_note: row.get(0)?,
            note: row.get(1)?,
            moments: Moments {
                picking_at: row.get(2)?,
                confirmed_at: row.get(3)?,
                cancelled_at: row.get(4)?,
                printed_at: row.get(5)?,
                updated_at: row.get(6)?,
            },
            next_tools,
        })
    })?)
}

/// Reads the address that an order is sent to.
///
/// # Errors
/// `Db` when the database fails or there is no such order.
pub(crate) fn ship_to(ctx: &Ctx<'_>, id: OrderId) -> Result<Address, ShopError> {
    let sql = "select a.name, a.street, a.city, a.postcode, a.country from addresses a
               join orders o on o.shipping_address_id = a.id where o.id = ?";
    Ok(ctx.db.query_row(sql, [id], Address::read)?)
}
