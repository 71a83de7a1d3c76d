//! Changes to an order's notes, carrier, payment method, address and warehouse.

use rusqlite::params;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{Address, OrderId, PaymentMethod, PaymentStatus, Version, Warehouse},
    ctx::Ctx,
    error::ShopError,
    groups::orders::{
        create::add_address,
        edit::{Edit, open, recompute},
        price, stock,
        view::{self, OrderChange},
    },
};

/// What to change; what is absent stays.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateParams {
    id: OrderId,
    expected_version: Option<Version>,
    /// Wish of the customer; empty to clear it.
    #[schemars(length(max = 500), example = &"Leave it with the neighbor.")]
    customer_note: Option<String>,
    /// Note for staff; empty to clear it.
    #[schemars(length(max = 500), example = &"Waiting for a size.")]
    internal_note: Option<String>,
    /// Code of the new carrier; shipping is priced anew.
    #[schemars(regex(pattern = "^[a-z]{3,10}$"), example = &"zasilka")]
    carrier: Option<String>,
    /// New payment method, while nothing is paid.
    payment_method: Option<PaymentMethod>,
    /// New shipping address, of this order only.
    shipping_address: Option<Address>,
    /// Warehouse that ships instead; reserved pieces move along.
    warehouse: Option<Warehouse>,
}

pub(crate) fn update(ctx: &Ctx<'_>, params: UpdateParams) -> Result<OrderChange, ShopError> {
    let mut edit = open(ctx, params.id, params.expected_version)?;
    note(ctx, &mut edit, "customer_note", params.customer_note.as_deref())?;
    note(ctx, &mut edit, "internal_note", params.internal_note.as_deref())?;
    if let Some(address) = &params.shipping_address {
        edit.require_open()?;
        shipping_address(ctx, &mut edit, address)?;
    }
    if let Some(method) = params.payment_method.filter(|method| *method != edit.method) {
        payment_method(ctx, &mut edit, method)?;
    }
    if let Some(warehouse) = params.warehouse {
        edit.require_open()?;
        move_to(ctx, &mut edit, warehouse)?;
    }
    if let Some(carrier) = &params.carrier {
        edit.require_open()?;
        set_carrier(ctx, &mut edit, carrier)?;
    }
    if edit.changes.is_empty() {
        return Err(ShopError::state(
            format!("order {} already has these values", edit.id),
            "give at least one field that differs from `orders_get`",
        ));
    }
    let fields: Vec<&str> = edit.changes.iter().map(|change| change.field.as_str()).collect();
    let message = format!("changed {}", fields.join(", "));
    edit.close(ctx, "edit", &message, None)
}

fn note(ctx: &Ctx<'_>, edit: &mut Edit, field: &str, text: Option<&str>) -> Result<(), ShopError> {
    let Some(text) = text else { return Ok(()) };
    let before: Option<String> = ctx.value(&format!("select {field} from orders where id = ?"), [edit.id])?;
    let after = Some(text).filter(|text| !text.is_empty());
    if before.as_deref() != after {
        ctx.run(&format!("update orders set {field} = ? where id = ?"), params![after, edit.id])?;
        edit.changed(field, before, after);
    }
    Ok(())
}

fn shipping_address(ctx: &Ctx<'_>, edit: &mut Edit, address: &Address) -> Result<(), ShopError> {
    let before_id = ctx.value("select shipping_address_id from orders where id = ?", [edit.id])?;
    let before = view::address(ctx, before_id)?;
    if before == *address {
        return Ok(());
    }
    let id = add_address(ctx, edit.customer_id, address)?;
    ctx.run("update orders set shipping_address_id = ? where id = ?", params![id, edit.id])?;
    let short = |a: &Address| format!("{}, {}, {} {}", a.name, a.street, a.postcode, a.city);
    edit.changed("shipping_address", Some(short(&before)), Some(short(address)));
    Ok(())
}

fn payment_method(ctx: &Ctx<'_>, edit: &mut Edit, method: PaymentMethod) -> Result<(), ShopError> {
    edit.require_open()?;
    if edit.payment != PaymentStatus::Unpaid {
        return Err(ShopError::state(
            format!("order {} is {}", edit.id, edit.payment),
            "refund with `orders_refund` before changing how it is paid",
        )
        .at("payment_method"));
    }
    ctx.run("update orders set payment_method = ? where id = ?", params![method, edit.id])?;
    let before = edit.method;
    edit.changed("payment_method", Some(before), Some(method));
    Ok(())
}

fn move_to(ctx: &Ctx<'_>, edit: &mut Edit, warehouse: Warehouse) -> Result<(), ShopError> {
    let to = stock::warehouse_id(ctx, warehouse.as_str())?;
    if to == edit.warehouse_id {
        return Ok(());
    }
    let lines: Vec<(i64, i64)> =
        ctx.all("select variant_id, quantity from order_items where order_id = ?", [edit.id], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    for (variant_id, quantity) in lines {
        stock::reserve(ctx, variant_id, to, quantity).map_err(|error| error.at("warehouse"))?;
        stock::release(ctx, variant_id, edit.warehouse_id, quantity)?;
    }
    ctx.run("update orders set warehouse_id = ? where id = ?", params![to, edit.id])?;
    let before: String = ctx.value("select code from warehouses where id = ?", [edit.warehouse_id])?;
    edit.changed("warehouse", Some(before), Some(warehouse));
    Ok(())
}

fn set_carrier(ctx: &Ctx<'_>, edit: &mut Edit, carrier: &str) -> Result<(), ShopError> {
    let sql = "select a.country, o.items_cents, (select code from carriers k where k.id = o.carrier_id)
               from orders o join addresses a on a.id = o.shipping_address_id where o.id = ?";
    let (country, goods, before): (String, i64, Option<String>) =
        ctx.db.query_row(sql, [edit.id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    if before.as_deref() == Some(carrier) {
        return Ok(());
    }
    let (carrier_id, cents) = price::shipping(ctx, carrier, &country, goods, edit.currency)?;
    ctx.run("update orders set carrier_id = ?, shipping_cents = ? where id = ?", params![carrier_id, cents, edit.id])?;
    recompute(ctx, edit.id)?;
    edit.changed("carrier", before, Some(carrier));
    Ok(())
}
