//! The list of carriers, and which of them take a parcel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Country, OrderId},
    ctx::Ctx,
    error::ShopError,
    groups::balikobot::{
        codes::{CarrierCode, CarrierKind},
        terms::{Need, Obstacle, cargo, terms},
    },
};

/// What the carrier is to take; without anything all carriers are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CarriersParams {
    /// Order to be sent: gives country, weight and cash on delivery where they are absent.
    order_id: Option<OrderId>,
    /// Where the parcel goes.
    country: Option<Country>,
    /// Weight of the parcel with packaging, in grams.
    #[schemars(range(min = 1, max = 100_000), example = 2600)]
    weight_g: Option<i64>,
    /// Whether cash is to be collected.
    #[schemars(example = true)]
    cod: Option<bool>,
    kind: Option<CarrierKind>,
    /// Leave out carriers that do not take the parcel.
    #[serde(default)]
    #[schemars(example = true)]
    only_fitting: bool,
}

/// Carriers, cheapest for the customer first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Carriers {
    carriers: Vec<Carrier>,
}

/// A carrier. Amounts are in CZK.
#[derive(Debug, Serialize, JsonSchema)]
struct Carrier {
    code: CarrierCode,
    name: String,
    kind: CarrierKind,
    countries: Vec<String>,
    /// What the customer pays.
    price_cents: i64,
    /// What the shop pays.
    cost_cents: i64,
    /// Absent when it collects no cash.
    cod_fee_cents: Option<i64>,
    max_weight_g: i64,
    /// Usual days from hand-over to delivery.
    days_min: i64,
    days_max: i64,
    /// Why it does not take the parcel; absent when it does.
    obstacle: Option<String>,
}

pub(crate) fn list(ctx: &Ctx<'_>, params: CarriersParams) -> Result<Carriers, ShopError> {
    let need = need(ctx, &params)?;
    let sql = "select * from carriers order by price_cents, id";
    let mut carriers = ctx.all(sql, [], |row| {
        let terms = terms(row)?;
        let obstacle = terms.obstacle(need).map(|obstacle| {
            let Obstacle { field, found, allowed } = obstacle;
            format!("{field} {found}, allowed: {allowed}")
        });
        Ok(Carrier {
            code: CarrierCode(terms.code),
            name: row.get("name")?,
            kind: terms.kind,
            countries: terms.countries.split(',').map(str::to_owned).collect(),
            price_cents: row.get("price_cents")?,
            cost_cents: terms.cost_cents,
            cod_fee_cents: terms.cod_fee_cents,
            max_weight_g: terms.max_weight_g,
            days_min: row.get("days_min")?,
            days_max: terms.days_max,
            obstacle,
        })
    })?;
    carriers.retain(|carrier| {
        params.kind.is_none_or(|kind| kind == carrier.kind) && (carrier.obstacle.is_none() || !params.only_fitting)
    });
    Ok(Carriers { carriers })
}

fn need(ctx: &Ctx<'_>, params: &CarriersParams) -> Result<Need, ShopError> {
    let cargo = params.order_id.map(|id| cargo(ctx, id)).transpose()?;
    let cargo = cargo.as_ref();
    Ok(Need {
        country: params.country.or(cargo.map(|cargo| cargo.country)),
        weight_g: params.weight_g.or(cargo.map(|cargo| cargo.weight_g)),
        is_cod: params.cod.unwrap_or_else(|| cargo.is_some_and(|cargo| cargo.cod_cents > 0)),
    })
}
