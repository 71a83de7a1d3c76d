//! Warehouses, and the suppliers that fill them.

use rusqlite::params_from_iter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Country, Currency, ProductId, Warehouse},
    ctx::Ctx,
    error::ShopError,
    groups::{orders::expire, store::codes::SupplierId},
    query::Filter,
    values::words,
};

words!(/// Kind of warehouse.
    WarehouseKind { Main = "main", Store = "store", Outlet = "outlet" });

/// Which warehouses.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WarehousesParams {
    /// Only warehouses of this kind.
    kind: Option<WarehouseKind>,
}

/// All warehouses, the main one first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Warehouses {
    warehouses: Vec<Place>,
}

/// A warehouse and what is in it.
#[derive(Debug, Serialize, JsonSchema)]
struct Place {
    code: Warehouse,
    name: String,
    city: String,
    kind: WarehouseKind,
    on_hand: i64,
    /// Held by open orders and reservations.
    reserved: i64,
    /// Variants with nothing free.
    n_out: i64,
    /// Purchase worth of what is on hand, in CZK hundredths.
    cost_cents: i64,
    /// Orders it has to ship.
    n_open_orders: i64,
}

pub(crate) fn warehouses(ctx: &Ctx<'_>, params: WarehousesParams) -> Result<Warehouses, ShopError> {
    expire(ctx)?;
    let mut filter = Filter::default();
    filter.bind("w.kind = ?", params.kind.as_ref())?;
    let sql = format!(
        "select w.*, sum(s.on_hand) as on_hand, sum(s.reserved) as reserved, sum(s.on_hand = s.reserved) as n_out,
             sum(s.on_hand * v.cost_cents) as cost_cents,
             (select count(*) from orders o where o.warehouse_id = w.id and o.status in ('new', 'confirmed', 'on_hold', 'picking', 'packed'))
                 as n_open_orders
         from warehouses w join stock s on s.warehouse_id = w.id join variants v on v.id = s.variant_id{} group by w.id order by w.id",
        filter.to_sql()
    );
    let warehouses = ctx.all(&sql, params_from_iter(&filter.values), |row| {
        Ok(Place {
            code: row.get("code")?,
            name: row.get("name")?,
            city: row.get("city")?,
            kind: row.get("kind")?,
            on_hand: row.get("on_hand")?,
            reserved: row.get("reserved")?,
            n_out: row.get("n_out")?,
            cost_cents: row.get("cost_cents")?,
            n_open_orders: row.get("n_open_orders")?,
        })
    })?;
    Ok(Warehouses { warehouses })
}

/// Which suppliers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SuppliersParams {
    /// Part of the name, or of a brand it delivers.
    #[schemars(length(min = 2, max = 60), example = &"Nordlys")]
    text: Option<String>,
    /// Only suppliers in this country.
    country: Option<Country>,
    /// Only the supplier of this product.
    product_id: Option<ProductId>,
    /// Only suppliers that deliver within this many days.
    #[schemars(range(min = 1, max = 120), example = 10)]
    max_lead_days: Option<i64>,
}

/// Suppliers by name.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Suppliers {
    suppliers: Vec<Supplier>,
}

/// A supplier.
#[derive(Debug, Serialize, JsonSchema)]
struct Supplier {
    id: SupplierId,
    name: String,
    country: Country,
    email: String,
    /// Usual days from order to delivery.
    lead_days: i64,
    /// Smallest order, in `currency`.
    min_order_cents: i64,
    currency: Currency,
    /// Comma-separated.
    brands: Option<String>,
    /// Products of it that are not archived.
    n_products: i64,
}

pub(crate) fn suppliers(ctx: &Ctx<'_>, params: SuppliersParams) -> Result<Suppliers, ShopError> {
    let mut filter = Filter::default();
    if let Some(text) = &params.text {
        filter.contains(&["s.name", "brands"], text);
    }
    filter.bind("s.country = ?", params.country.as_ref())?;
    filter.bind("s.id = (select supplier_id from products where id = ?)", params.product_id.as_ref())?;
    filter.bind("s.lead_days <= ?", params.max_lead_days.as_ref())?;
    let sql = format!(
        "select s.*, (select group_concat(brand, ', ') from (select distinct brand from products p where p.supplier_id = s.id
                          order by brand)) as brands,
             (select count(*) from products p where p.supplier_id = s.id and p.status <> 'archived') as n_products
         from suppliers s{} order by s.name",
        filter.to_sql()
    );
    let suppliers = ctx.all(&sql, params_from_iter(&filter.values), |row| {
        Ok(Supplier {
            id: row.get("id")?,
            name: row.get("name")?,
            country: row.get("country")?,
            email: row.get("email")?,
            lead_days: row.get("lead_days")?,
            min_order_cents: row.get("min_order_cents")?,
            currency: row.get("currency")?,
            brands: row.get("brands")?,
            n_products: row.get("n_products")?,
        })
    })?;
    Ok(Suppliers { suppliers })
}
