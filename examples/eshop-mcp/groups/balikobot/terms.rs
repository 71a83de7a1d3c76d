//! What carriers take: countries, weights, cash on delivery; and what a parcel of an order needs.

use rusqlite::Row;

use crate::{
    common::{Country, Currency, OrderId, OrderStatus, PaymentMethod},
    ctx::Ctx,
    error::ShopError,
    groups::{
        balikobot::codes::{CarrierCode, CarrierKind},
        orders::paid_cents,
    },
};

/// What the carton and the filling weigh.
const PACKAGING_G: i64 = 250;

/// A carrier's terms.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) id: i64,
    pub(crate) code: String,
    pub(crate) kind: CarrierKind,
    /// Comma-separated.
    pub(crate) countries: String,
    /// In CZK, what the shop pays.
    pub(crate) cost_cents: i64,
    /// Absent when it collects no cash.
    pub(crate) cod_fee_cents: Option<i64>,
    pub(crate) max_weight_g: i64,
    pub(crate) days_max: i64,
}

/// Columns of [`Terms`].
pub(crate) const TERMS_COLUMNS: &str = "id, code, kind, countries, cost_cents, cod_fee_cents, max_weight_g, days_max";

pub(crate) fn terms(row: &Row<'_>) -> rusqlite::Result<Terms> {
    Ok(Terms {
        id: row.get("id")?,
        code: row.get("code")?,
        kind: row.get("kind")?,
        countries: row.get("countries")?,
        cost_cents: row.get("cost_cents")?,
        cod_fee_cents: row.get("cod_fee_cents")?,
        max_weight_g: row.get("max_weight_g")?,
        days_max: row.get("days_max")?,
    })
}

/// Finds a carrier by its code.
///
/// # Errors
/// `Refused` with `not_found`.
pub(crate) fn find(ctx: &Ctx<'_>, code: &CarrierCode) -> Result<Terms, ShopError> {
    let sql = format!("select {TERMS_COLUMNS} from carriers where code = ?");
    ctx.one(&sql, [&code.0], terms)?
        .ok_or_else(|| ShopError::not_found("carrier", &code.0, "balikobot_carriers_list").at("carrier"))
}

/// What a parcel asks of a carrier; what is absent is not asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Need {
    pub(crate) country: Option<Country>,
    pub(crate) weight_g: Option<i64>,
    pub(crate) is_cod: bool,
}

/// Why a carrier does not take a parcel.
#[derive(Debug, PartialEq)]
pub(crate) struct Obstacle {
    /// The argument at fault.
    pub(crate) field: &'static str,
    pub(crate) found: String,
    pub(crate) allowed: String,
}

impl From<Obstacle> for ShopError {
    fn from(obstacle: Obstacle) -> Self {
        Self::invalid(obstacle.field, obstacle.found, &obstacle.allowed)
    }
}

impl Terms {
    /// The first thing that keeps the carrier from taking such a parcel.
    pub(crate) fn obstacle(&self, need: Need) -> Option<Obstacle> {
        let code = &self.code;
        if let Some(country) = need.country
            && !self.countries.split(',').any(|c| c == country.as_str())
        {
            let countries = &self.countries;
            return Some(Obstacle {
                field: "carrier",
                found: code.clone(),
                allowed: format!("a carrier for {country}; {code} delivers to {countries}"),
            });
        }
        if need.is_cod && self.cod_fee_cents.is_none() {
            return Some(Obstacle {
                field: "carrier",
                found: code.clone(),
                allowed: format!("a carrier that collects cash; {code} does not"),
            });
        }
        let max = self.max_weight_g;
        let weight = need.weight_g.filter(|weight| *weight > max)?;
        Some(Obstacle { field: "weight_g", found: weight.to_string(), allowed: format!("up to {max} with {code}") })
    }
}

/// The order's side of a parcel.
#[derive(Debug)]
pub(crate) struct Cargo {
    pub(crate) status: OrderStatus,
    pub(crate) currency: Currency,
    pub(crate) total_cents: i64,
    pub(crate) carrier: Option<CarrierCode>,
    pub(crate) country: Country,
    /// All pieces, with packaging.
    pub(crate) weight_g: i64,
    /// Cash that no other parcel collects; 0 when paid in another way.
    pub(crate) cod_cents: i64,
}

/// Reads what a parcel of an order would be.
///
/// # Errors
/// `Refused` with `not_found`.
pub(crate) fn cargo(ctx: &Ctx<'_>, id: OrderId) -> Result<Cargo, ShopError> {
    let sql = "select o.status, o.currency, o.total_cents, k.code, a.country, o.payment_method,
                   (select coalesce(sum(i.quantity * v.weight_g), 0) from order_items i join variants v on v.id = i.variant_id
                    where i.order_id = o.id),
                   (select coalesce(sum(cod_cents), 0) from shipments s where s.order_id = o.id and s.status not in ('cancelled', 'returned'))
               from orders o join addresses a on a.id = o.shipping_address_id left join carriers k on k.id = o.carrier_id
               where o.id = ?";
    let found = ctx.one(sql, [id], |row| {
        let cargo = Cargo {
            status: row.get(0)?,
            currency: row.get(1)?,
            total_cents: row.get(2)?,
            carrier: row.get::<_, Option<String>>(3)?.map(CarrierCode),
            country: row.get(4)?,
            weight_g: row.get::<_, i64>(6)? + PACKAGING_G,
            cod_cents: 0,
        };
        Ok((cargo, row.get::<_, PaymentMethod>(5)?, row.get::<_, i64>(7)?))
    })?;
    let Some((mut cargo, method, collected)) = found else {
        return Err(ShopError::not_found("order", id, "orders_search").at("order_id"));
    };
    if method == PaymentMethod::Cod {
        let due = cargo.total_cents - paid_cents(ctx, id)? - collected;
        cargo.cod_cents = due.max(0);
    }
    Ok(cargo)
}
