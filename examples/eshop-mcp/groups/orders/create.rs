//! A new order taken down by staff.

use rusqlite::params;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{
        Address, Currency, CustomerId, OrderId, OrderStatus, PaymentMethod, PaymentStatus, SalesChannel, Sku,
        Warehouse, first,
    },
    ctx::Ctx,
    error::ShopError,
    groups::orders::{
        edit::{event, recompute},
        price, stock,
        view::{OrderChange, state_of},
    },
};

/// A line to order.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewLine {
    sku: Sku,
    /// Pieces.
    #[schemars(range(min = 1, max = 500), example = 2)]
    quantity: i64,
}

/// The order to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateParams {
    customer_id: CustomerId,
    /// What is ordered; a SKU only once.
    #[schemars(length(min = 1, max = 50), example = serde_json::json!([{"sku": "TNT-001-GREEN", "quantity": 1}]))]
    lines: Vec<NewLine>,
    /// Where the order came in; phone when absent.
    #[serde(default = "phone")]
    channel: SalesChannel,
    payment_method: PaymentMethod,
    /// Warehouse that ships; BRN when absent.
    #[serde(default = "brno")]
    warehouse: Warehouse,
    /// Code of the carrier; absent for pick-up at the store, which costs nothing.
    #[schemars(regex(pattern = "^[a-z]{3,10}$"), example = &"dpx")]
    carrier: Option<String>,
    /// Where to ship; the customer's default address when absent.
    shipping_address: Option<Address>,
    /// Wish of the customer.
    #[schemars(length(max = 500), example = &"Please ring twice.")]
    customer_note: Option<String>,
    /// Note for staff.
    #[schemars(length(max = 500), example = &"Ordered by phone with Mr. Novák.")]
    internal_note: Option<String>,
}

fn phone() -> SalesChannel {
    SalesChannel::Phone
}

fn brno() -> Warehouse {
    Warehouse::Brno
}

/// The customer's side of a new order.
struct Buyer {
    currency: Currency,
    credit_limit_cents: i64,
    billing_id: i64,
    shipping_id: i64,
}

pub(crate) fn create(ctx: &Ctx<'_>, params: CreateParams) -> Result<OrderChange, ShopError> {
    let buyer = buyer(ctx, &params)?;
    let warehouse_id = stock::warehouse_id(ctx, params.warehouse.as_str())?;
    let id = OrderId(ctx.insert(
        "insert into orders (customer_id, status, channel, source, warehouse_id, currency, items_cents, discount_cents,
             shipping_cents, total_cents, payment_method, payment_status, billing_address_id, shipping_address_id,
             customer_note, internal_note, placed_at, updated_at)
         values (?1, ?2, ?3, 'none', ?4, ?5, 0, 0, 0, 0, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12)",
        params![
            params.customer_id,
            OrderStatus::New,
            params.channel,
            warehouse_id,
            buyer.currency,
            params.payment_method,
            PaymentStatus::Unpaid,
            buyer.billing_id,
            buyer.shipping_id,
            params.customer_note,
            params.internal_note,
            ctx.now()
        ],
    )?);
    lines(ctx, id, &params, &buyer, warehouse_id)?;
    recompute(ctx, id)?;
    shipping(ctx, id, &params, &buyer)?;
    credit(ctx, id, &params, &buyer)?;
    event(ctx, id, "placed", &format!("placed through {} by {}", params.channel, ctx.user.login))?;
    ctx.log(id, "order created")?;
    let needs_money = matches!(params.payment_method, PaymentMethod::Card | PaymentMethod::BankTransfer);
    let follow_up =
        needs_money.then(|| "record the payment with invoices_payment_record before confirming the order".to_owned());
    Ok(OrderChange { order: state_of(ctx, id)?, changes: Vec::new(), follow_up })
}

fn buyer(ctx: &Ctx<'_>, params: &CreateParams) -> Result<Buyer, ShopError> {
    let id = params.customer_id;
    let sql = "select currency, credit_limit_cents, merged_into from customers where id = ?";
    let found: Option<(Currency, i64, Option<CustomerId>)> =
        ctx.one(sql, [id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let (currency, credit_limit_cents) = match found {
        None => {
            return Err(ShopError::not_found("customer", id, "customers_list").at("customer_id"));
        }
        Some((_, _, Some(other))) => {
            let message = format!("customer {id} was merged into {other}");
            return Err(ShopError::state(message, format!("use {other}")).at("customer_id"));
        }
        Some((currency, limit, None)) => (currency, limit),
    };
    let default = |kind: &str| -> Result<i64, ShopError> {
        let sql = "select id from addresses where customer_id = ? and kind = ? order by is_default desc, id limit 1";
        ctx.one(sql, params![id, kind], first)?.ok_or_else(|| {
            ShopError::state(format!("customer {id} has no {kind} address"), "add one with `customers_address_add`")
        })
    };
    let shipping_id = match &params.shipping_address {
        Some(address) => add_address(ctx, id.0, address)?,
        None => default("shipping")?,
    };
    Ok(Buyer { currency, credit_limit_cents, billing_id: default("billing")?, shipping_id })
}

/// Adds a shipping address that is not the default one.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn add_address(ctx: &Ctx<'_>, customer_id: i64, address: &Address) -> Result<i64, ShopError> {
    ctx.insert(
        "insert into addresses (customer_id, kind, name, street, city, postcode, country) values (?, 'shipping', ?, ?, ?, ?, ?)",
        params![customer_id, address.name, address.street, address.city, address.postcode, address.country],
    )
}

fn lines(ctx: &Ctx<'_>, id: OrderId, params: &CreateParams, buyer: &Buyer, warehouse_id: i64) -> Result<(), ShopError> {
    for (index, line) in params.lines.iter().enumerate() {
        let field = format!("lines[{index}].sku");
        if params.lines.iter().take(index).any(|other| other.sku == line.sku) {
            return Err(ShopError::invalid(&field, &line.sku.0, "each SKU once, with the whole quantity"));
        }
        let variant = stock::sellable(ctx, &line.sku, &field)?;
        stock::reserve(ctx, variant.id, warehouse_id, line.quantity)
            .map_err(|error| error.at(&format!("lines[{index}].quantity")))?;
        let unit = price::unit_cents(ctx, variant.id, params.customer_id.0, buyer.currency)?;
        let number = i64::try_from(index).unwrap_or(i64::MAX) + 1;
        ctx.run(
            "insert into order_items (order_id, line, variant_id, quantity, unit_cents, total_cents, vat_percent, cost_cents)
             values (?1, ?2, ?3, ?4, ?5, ?4 * ?5, ?6, ?7)",
            params![id, number, variant.id, line.quantity, unit, variant.vat_percent, variant.cost_cents],
        )?;
    }
    Ok(())
}

fn shipping(ctx: &Ctx<'_>, id: OrderId, params: &CreateParams, buyer: &Buyer) -> Result<(), ShopError> {
    let Some(carrier) = &params.carrier else {
        return Ok(());
    };
    let country: String = ctx.value("select country from addresses where id = ?", [buyer.shipping_id])?;
    let goods = ctx.value("select items_cents from orders where id = ?", [id])?;
    let (carrier_id, cents) = price::shipping(ctx, carrier, &country, goods, buyer.currency)?;
    ctx.run("update orders set carrier_id = ?, shipping_cents = ? where id = ?", params![carrier_id, cents, id])?;
    recompute(ctx, id)
}

/// Refuses an order on invoice that would exceed the customer's credit limit.
fn credit(ctx: &Ctx<'_>, id: OrderId, params: &CreateParams, buyer: &Buyer) -> Result<(), ShopError> {
    if params.payment_method != PaymentMethod::Invoice {
        return Ok(());
    }
    let owed: i64 = ctx.value(
        "select (select coalesce(sum(total_cents - paid_cents), 0) from invoices
                 where customer_id = ?1 and status = 'issued' and kind = 'invoice') + total_cents from orders where id = ?2",
        params![params.customer_id, id],
    )?;
    if owed <= buyer.credit_limit_cents {
        return Ok(());
    }
    Err(ShopError::state(
        format!(
            "with this order the customer would owe {owed} cents; the credit limit is {} {}",
            buyer.credit_limit_cents, buyer.currency
        ),
        "choose another payment method, or raise the limit with `customers_credit_limit_set`",
    )
    .at("payment_method"))
}
