//! Ordering a shipment at a carrier.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{OrderId, OrderStatus, ShipmentId, first},
    ctx::Ctx,
    error::ShopError,
    groups::balikobot::{
        codes::{BranchCode, CarrierCode, CarrierKind},
        terms::{Cargo, Need, Terms, cargo, find},
        track::event,
        view::{OPEN, ShipmentCard, card_of},
    },
};

/// The parcel to send.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateParams {
    order_id: OrderId,
    /// Carrier; the order's own when absent.
    carrier: Option<CarrierCode>,
    /// Branch for pick-up; required by carriers of kind `pickup`, refused by others.
    branch: Option<BranchCode>,
    /// Weight with packaging in grams; computed from the order's pieces when absent.
    #[schemars(range(min = 1, max = 100_000), example = 2600)]
    weight_g: Option<i64>,
    /// Cash to collect in hundredths of the order's currency; what is still due when absent, 0 for none.
    #[schemars(range(min = 0, max = 100_000_000), example = 259_000)]
    cod_cents: Option<i64>,
    /// Worth to insure in hundredths of the order's currency; the order's total when absent.
    #[schemars(range(min = 0, max = 100_000_000), example = 259_000)]
    value_cents: Option<i64>,
    /// The order travels in several parcels, and this is a further one.
    #[serde(default)]
    #[schemars(example = true)]
    split: bool,
}

/// The shipment, and what to do with it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Created {
    shipment: ShipmentCard,
    follow_up: String,
}

/// What has been checked and goes into the database.
struct Parcel {
    branch_id: Option<i64>,
    weight_g: i64,
    cod_cents: i64,
    value_cents: i64,
}

pub(crate) fn create(ctx: &Ctx<'_>, params: CreateParams) -> Result<Created, ShopError> {
    let cargo = cargo(ctx, params.order_id)?;
    check_order(ctx, &params, cargo.status)?;
    let Some(code) = params.carrier.as_ref().or(cargo.carrier.as_ref()) else {
        let allowed = "a code from `balikobot_carriers_list`; the order itself is for pick-up at the store";
        return Err(ShopError::invalid("carrier", "missing", allowed));
    };
    let terms = find(ctx, code)?;
    let parcel = parcel(ctx, &params, &cargo, &terms)?;
    let id = insert(ctx, &params, &cargo, &terms, &parcel)?;
    event(ctx, id, "created", "Brno", "data received from the sender")?;
    let shipment = card_of(ctx, id)?;
    let message = format!("{id} created with {}, {} g", terms.code, parcel.weight_g);
    ctx.log(params.order_id, &message)?;
    let then = match cargo.status {
        OrderStatus::Packed => ", and orders_status_change to shipped once the driver has it",
        _ => "",
    };
    Ok(Created { shipment, follow_up: format!("print the label with balikobot_label_get{then}") })
}

fn check_order(ctx: &Ctx<'_>, params: &CreateParams, status: OrderStatus) -> Result<(), ShopError> {
    let id = params.order_id;
    if !matches!(status, OrderStatus::Packed | OrderStatus::Shipped) {
        return Err(ShopError::state(
            format!("order {id} is {status}; a parcel takes packed or shipped"),
            "move the order on with `orders_status_change`",
        )
        .at("order_id"));
    }
    let sql = format!("select s.id from shipments s where s.order_id = ? and {OPEN} order by s.id limit 1");
    let open: Option<ShipmentId> = ctx.one(&sql, [id], first)?;
    match open {
        Some(open) if !params.split => Err(ShopError::state(
            format!("order {id} already has shipment {open} under way"),
            "cancel that one with `balikobot_shipment_cancel`, or pass `split` for a further parcel",
        )
        .at("order_id")),
        _ => Ok(()),
    }
}

fn parcel(ctx: &Ctx<'_>, params: &CreateParams, cargo: &Cargo, terms: &Terms) -> Result<Parcel, ShopError> {
    let weight_g = params.weight_g.unwrap_or(cargo.weight_g);
    let cod_cents = params.cod_cents.unwrap_or(cargo.cod_cents);
    if cod_cents > cargo.cod_cents {
        let allowed = format!("0 to {}, what is due in cash and no other parcel collects", cargo.cod_cents);
        return Err(ShopError::invalid("cod_cents", cod_cents, &allowed));
    }
    let need = Need { country: Some(cargo.country), weight_g: Some(weight_g), is_cod: cod_cents > 0 };
    if let Some(obstacle) = terms.obstacle(need) {
        return Err(obstacle.into());
    }
    Ok(Parcel {
        branch_id: branch(ctx, params, cargo, terms)?,
        weight_g,
        cod_cents,
        value_cents: params.value_cents.unwrap_or(cargo.total_cents),
    })
}

fn branch(ctx: &Ctx<'_>, params: &CreateParams, cargo: &Cargo, terms: &Terms) -> Result<Option<i64>, ShopError> {
    let (code, country) = (&terms.code, cargo.country);
    let branch = match (&params.branch, terms.kind) {
        (None, CarrierKind::Home) => return Ok(None),
        (Some(branch), CarrierKind::Home) => {
            let allowed = format!("no branch: {code} delivers to the door");
            return Err(ShopError::invalid("branch", &branch.0, &allowed));
        }
        (None, CarrierKind::Pickup) => {
            let allowed = format!("a branch of {code} in {country}, see `balikobot_branches_search`");
            return Err(ShopError::invalid("branch", "missing", &allowed));
        }
        (Some(branch), CarrierKind::Pickup) => branch,
    };
    let sql = "select id, is_open from branches where code = ? and carrier_id = ? and country = ?";
    let found = ctx.one(sql, params![branch.0, terms.id, country], |row| Ok((row.get(0)?, row.get::<_, bool>(1)?)))?;
    match found {
        Some((id, true)) => Ok(Some(id)),
        Some(_) => Err(ShopError::state(
            format!("branch {} takes no parcels for now", branch.0),
            "choose an open one with `balikobot_branches_search`",
        )
        .at("branch")),
        None => {
            let kind = format!("branch of {code} in {country} with code");
            Err(ShopError::not_found(&kind, &branch.0, "balikobot_branches_search").at("branch"))
        }
    }
}

fn insert(
    ctx: &Ctx<'_>,
    params: &CreateParams,
    cargo: &Cargo,
    terms: &Terms,
    parcel: &Parcel,
) -> Result<ShipmentId, ShopError> {
    let next: i64 = ctx.value("select coalesce(max(id), 0) + 1 from shipments", [])?;
    let tracking_no = format!("{}{}", terms.code.to_uppercase(), 500_000_000 + next * 7919 % 99_999_989);
    let id = ctx.insert(
        "insert into shipments (id, order_id, carrier_id, branch_id, status, tracking_no, weight_g, cod_cents, value_cents, currency,
             cost_cents, expected_on, label_at, created_at, updated_at)
         values (?1, ?2, ?3, ?4, 'created', ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12, ?12)",
        params![
            next,
            params.order_id,
            terms.id,
            parcel.branch_id,
            tracking_no,
            parcel.weight_g,
            parcel.cod_cents,
            parcel.value_cents,
            cargo.currency,
            terms.cost_cents,
            ctx.today.plus_days(terms.days_max),
            ctx.now()
        ],
    )?;
    Ok(ShipmentId(id))
}
