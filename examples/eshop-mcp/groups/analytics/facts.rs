//! Orders and their lines as reports count them, all amounts in one currency.
//!
//! A [`Sale`] is an order that was not cancelled, a [`SaleLine`] a line of one. Both count on the day the order
//! was placed, refunds included, so that every report adds up to the same figures.

use std::collections::BTreeMap;

use rusqlite::params_from_iter;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{Country, Currency, CustomerId, OrderId, OrderStatus, PaymentMethod, ProductId, SalesChannel, Warehouse},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::analytics::period::Span,
    query::Filter,
    values::words,
};

words!(/// Segment of customers.
    Segment { Retail = "retail", Club = "club", Wholesale = "wholesale" });

/// Only such orders.
#[derive(Debug, Default, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({"channel": "eshop", "country": "CZ"}))]
pub(crate) struct SaleFilter {
    pub(crate) channel: Option<SalesChannel>,
    /// Of the shipping address.
    #[schemars(example = Country::Cz)]
    pub(crate) country: Option<Country>,
    pub(crate) segment: Option<Segment>,
}

/// An order in the report's currency.
#[derive(Debug, Clone)]
pub(crate) struct Sale {
    pub(crate) id: OrderId,
    pub(crate) customer_id: CustomerId,
    pub(crate) customer: String,
    pub(crate) segment: Segment,
    pub(crate) country: Country,
    pub(crate) day: Date,
    pub(crate) status: OrderStatus,
    pub(crate) channel: SalesChannel,
    pub(crate) source: String,
    pub(crate) warehouse: Warehouse,
    /// Currency that the order was placed in.
    pub(crate) currency: Currency,
    pub(crate) method: PaymentMethod,
    /// Discounts on lines and on the whole.
    pub(crate) discounts: i64,
    pub(crate) shipping: i64,
    /// What the customer was to pay.
    pub(crate) gross: i64,
    pub(crate) refunds: i64,
    pub(crate) pieces: i64,
}

impl Sale {
    /// What stays with the shop, VAT included.
    pub(crate) fn net(&self) -> i64 {
        self.gross - self.refunds
    }
}

/// Units of CZK, times a million, for one of the currency.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn czk_micro(ctx: &Ctx<'_>, currency: Currency) -> Result<i64, ShopError> {
    ctx.value("select czk_micro from currencies where code = ?", [currency])
}

/// Reads orders placed in the span, not the cancelled ones, by day.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn sales(
    ctx: &Ctx<'_>,
    span: Span,
    filter: &SaleFilter,
    currency: Currency,
) -> Result<Vec<Sale>, ShopError> {
    let mut placed = placed(ctx, span, filter, currency)?;
    placed.retain(|sale| sale.status != OrderStatus::Cancelled);
    Ok(placed)
}

/// Reads all orders placed in the span, cancelled ones too, by day.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn placed(
    ctx: &Ctx<'_>,
    span: Span,
    filter: &SaleFilter,
    currency: Currency,
) -> Result<Vec<Sale>, ShopError> {
    let conditions = conditions(span, filter)?;
    let to = czk_micro(ctx, currency)?;
    let money = |sql: &str| format!("cast(round({sql} * 1.0 * k.czk_micro / {to}) as integer)");
    let sql = format!(
        "select o.id, o.customer_id, c.name, c.segment, a.country, o.placed_at, o.status, o.channel, o.source, w.code,
             o.currency, o.payment_method, {} as discounts, {} as shipping, {} as gross, {} as refunds,
             (select coalesce(sum(quantity), 0) from order_items i where i.order_id = o.id) as pieces
         from {TABLES}{} order by o.placed_at, o.id",
        money(
            "(o.discount_cents + (select coalesce(sum(discount_cents), 0) from order_items i where i.order_id = o.id))"
        ),
        money("o.shipping_cents"),
        money("o.total_cents"),
        money("o.refunded_cents"),
        conditions.to_sql()
    );
    ctx.all(&sql, params_from_iter(&conditions.values), |row| {
        Ok(Sale {
            id: row.get(0)?,
            customer_id: row.get(1)?,
            customer: row.get(2)?,
            segment: row.get(3)?,
            country: row.get(4)?,
            day: row.get(5)?,
            status: row.get(6)?,
            channel: row.get(7)?,
            source: row.get(8)?,
            warehouse: row.get(9)?,
            currency: row.get(10)?,
            method: row.get(11)?,
            discounts: row.get("discounts")?,
            shipping: row.get("shipping")?,
            gross: row.get("gross")?,
            refunds: row.get("refunds")?,
            pieces: row.get("pieces")?,
        })
    })
}

/// Tables of orders, with their currencies as `k`.
const TABLES: &str =
    "orders o join customers c on c.id = o.customer_id join addresses a on a.id = o.shipping_address_id
    join warehouses w on w.id = o.warehouse_id join currencies k on k.code = o.currency";

fn conditions(span: Span, filter: &SaleFilter) -> Result<Filter, ShopError> {
    let mut conditions = Filter::default();
    conditions.bind("substr(o.placed_at, 1, 10) >= ?", Some(&span.from))?;
    conditions.bind("substr(o.placed_at, 1, 10) <= ?", Some(&span.to))?;
    conditions.bind("o.channel = ?", filter.channel.as_ref())?;
    conditions.bind("a.country = ?", filter.country.as_ref())?;
    conditions.bind("c.segment = ?", filter.segment.as_ref())?;
    Ok(conditions)
}

/// A line of a sale in the report's currency.
#[derive(Debug, Clone)]
pub(crate) struct SaleLine {
    pub(crate) order_id: OrderId,
    pub(crate) day: Date,
    pub(crate) channel: SalesChannel,
    pub(crate) country: Country,
    pub(crate) segment: Segment,
    pub(crate) product_id: ProductId,
    /// Brand and name.
    pub(crate) product: String,
    pub(crate) sku: String,
    /// Main category of the product.
    pub(crate) category: String,
    pub(crate) pieces: i64,
    pub(crate) returned: i64,
    /// After all discounts, VAT included.
    pub(crate) revenue: i64,
    /// Cost of all pieces, without VAT.
    pub(crate) cost: i64,
    pub(crate) vat_percent: i64,
}

impl SaleLine {
    /// Revenue without VAT of the pieces that the customer kept.
    pub(crate) fn kept_without_vat(&self) -> f64 {
        self.revenue as f64 * self.kept() * 100.0 / (100 + self.vat_percent) as f64
    }

    /// Cost of the pieces that the customer kept.
    pub(crate) fn kept_cost(&self) -> f64 {
        self.cost as f64 * self.kept()
    }

    fn kept(&self) -> f64 {
        (self.pieces - self.returned) as f64 / self.pieces.max(1) as f64
    }
}

/// Reads the lines of all sales in the span, by order and line.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn sale_lines(
    ctx: &Ctx<'_>,
    span: Span,
    filter: &SaleFilter,
    currency: Currency,
) -> Result<Vec<SaleLine>, ShopError> {
    let mut conditions = conditions(span, filter)?;
    conditions.push("o.status <> 'cancelled'");
    let to = czk_micro(ctx, currency)?;
    let sql = format!(
        "select o.id, o.placed_at, o.channel, a.country, c.segment, p.id, trim(p.brand || ' ' || p.name), v.sku,
             coalesce((select g.slug from product_categories x join categories g on g.id = x.category_id
                 where x.product_id = p.id order by x.is_main desc, g.id limit 1), 'none'),
             i.quantity, i.refunded_quantity,
             cast(round(i.total_cents * (1.0 - o.discount_cents * 1.0 / max(o.items_cents, 1)) * k.czk_micro / {to}) as integer),
             cast(round(i.quantity * i.cost_cents * 1000000.0 / {to}) as integer), i.vat_percent
         from {TABLES} join order_items i on i.order_id = o.id join variants v on v.id = i.variant_id
         join products p on p.id = v.product_id{} order by o.id, i.line",
        conditions.to_sql()
    );
    ctx.all(&sql, params_from_iter(&conditions.values), |row| {
        Ok(SaleLine {
            order_id: row.get(0)?,
            day: row.get(1)?,
            channel: row.get(2)?,
            country: row.get(3)?,
            segment: row.get(4)?,
            product_id: row.get(5)?,
            product: row.get(6)?,
            sku: row.get(7)?,
            category: row.get(8)?,
            pieces: row.get(9)?,
            returned: row.get(10)?,
            revenue: row.get(11)?,
            cost: row.get(12)?,
            vat_percent: row.get(13)?,
        })
    })
}

/// The day of each customer's first order that was not cancelled.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn first_orders(ctx: &Ctx<'_>) -> Result<BTreeMap<CustomerId, Date>, ShopError> {
    let sql = "select customer_id, min(placed_at) from orders where status <> 'cancelled' group by customer_id";
    let firsts = ctx.all(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(firsts.into_iter().collect())
}

/// Category by slug.
#[derive(Debug, Clone)]
pub(crate) struct Category {
    pub(crate) slug: String,
    pub(crate) name: String,
    /// Slug of the category above.
    pub(crate) parent: Option<String>,
}

/// Reads all categories.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn categories(ctx: &Ctx<'_>) -> Result<Vec<Category>, ShopError> {
    let sql =
        "select c.slug, c.name, p.slug from categories c left join categories p on p.id = c.parent_id order by c.id";
    ctx.all(sql, [], |row| Ok(Category { slug: row.get(0)?, name: row.get(1)?, parent: row.get(2)? }))
}

/// The slugs of a category and all below it.
///
/// # Errors
/// `Refused` with `not_found`.
pub(crate) fn category_slugs(ctx: &Ctx<'_>, slug: &str) -> Result<Vec<String>, ShopError> {
    let all = categories(ctx)?;
    if !all.iter().any(|category| category.slug == slug) {
        return Err(ShopError::not_found("category", slug, "store_categories_list").at("category"));
    }
    let below = |category: &&Category| category.slug == slug || category.parent.as_deref() == Some(slug);
    Ok(all.iter().filter(below).map(|c| c.slug.clone()).collect())
}
