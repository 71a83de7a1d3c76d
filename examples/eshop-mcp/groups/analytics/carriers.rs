//! How well carriers deliver.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Country, Currency, DateRange},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::analytics::{
        facts::czk_micro,
        figures::{Figure, Rate, mean, percent, quantile, round2},
        period::{Compare, Scope, Span, czk, previous},
        revenue::count,
    },
    query::Filter,
};

/// Which shipments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CarrierParams {
    /// Days on which parcels were handed over; the last 90 when absent.
    period: Option<DateRange>,
    #[serde(default = "previous")]
    compare: Compare,
    #[serde(default = "czk")]
    currency: Currency,
    /// Code of one carrier; all when absent.
    #[schemars(regex(pattern = "^[a-z]{3,10}$"), example = &"dpx")]
    carrier: Option<String>,
    /// Country that the parcel went to.
    country: Option<Country>,
}

/// Carriers and all together.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Carriers {
    scope: Scope,
    /// Most parcels first.
    carriers: Vec<CarrierRow>,
    total: Service,
}

/// A carrier.
#[derive(Debug, Serialize, JsonSchema)]
struct CarrierRow {
    /// Code.
    carrier: String,
    name: String,
    /// Of all parcels shown.
    share_percent: Option<f64>,
    service: Service,
}

/// What became of parcels.
#[derive(Debug, Serialize, JsonSchema)]
struct Service {
    /// Handed over, cancelled ones left out.
    shipments: Figure,
    delivered: i64,
    /// Came back to the sender.
    returned: i64,
    /// Still on the way.
    under_way: i64,
    /// Delivered by the expected day, of those delivered or overdue.
    on_time: Rate,
    /// Delivered late, or overdue.
    late: i64,
    /// Days past the expected one over those delivered late.
    average_late_days: Option<f64>,
    /// From hand-over to delivery.
    average_days: Option<f64>,
    /// Nine of ten took at most so many days.
    p90_days: Option<f64>,
    /// What the shop pays the carrier.
    cost_cents: i64,
    /// What customers paid for shipping.
    charged_cents: i64,
    /// charged - cost.
    balance_cents: i64,
}

/// A shipment in the report's currency.
#[derive(Debug)]
struct Parcel {
    carrier: String,
    name: String,
    status: String,
    handed_over: Date,
    expected: Date,
    delivered: Option<Date>,
    cost: i64,
    charged: i64,
}

impl Parcel {
    fn is_delivered(&self) -> bool {
        self.status == "delivered"
    }

    fn is_under_way(&self) -> bool {
        matches!(self.status.as_str(), "created" | "handed_over" | "in_transit")
    }

    /// Days past the expected one; none when that cannot be told.
    fn days_over(&self, today: Date) -> Option<i64> {
        match self.delivered.filter(|_| self.is_delivered()) {
            Some(day) => Some(day.days_since(self.expected)),
            None if self.is_under_way() && today > self.expected => Some(today.days_since(self.expected)),
            None => None,
        }
    }
}

pub(crate) fn performance(ctx: &Ctx<'_>, params: CarrierParams) -> Result<Carriers, ShopError> {
    let scope = Scope::new(ctx, params.period, 90, params.compare, params.currency)?;
    if let Some(code) = &params.carrier {
        let n_known: i64 = ctx.value("select count(*) from carriers where code = ?", [code])?;
        if n_known == 0 {
            let refusal = ShopError::not_found("carrier", code, "balikobot_carriers_list");
            return Err(refusal.at("carrier"));
        }
    }
    let read = |span: Span| parcels(ctx, span, &params);
    let now = read(scope.period)?;
    let before = scope.compared.map(read).transpose()?;
    let mut by_carrier: BTreeMap<(&str, &str), Vec<&Parcel>> = BTreeMap::new();
    for parcel in &now {
        let key = (parcel.carrier.as_str(), parcel.name.as_str());
        by_carrier.entry(key).or_default().push(parcel);
    }
    let mut carriers: Vec<CarrierRow> = by_carrier
        .into_iter()
        .map(|((carrier, name), parcels)| {
            let earlier: Option<Vec<&Parcel>> =
                before.as_ref().map(|before| before.iter().filter(|p| p.carrier == carrier).collect());
            CarrierRow {
                carrier: carrier.to_owned(),
                name: name.to_owned(),
                share_percent: percent(count(parcels.len()), count(now.len())),
                service: service(ctx, &parcels, earlier.as_deref()),
            }
        })
        .collect();
    carriers.sort_by_key(|row| (-row.service.shipments.value, row.carrier.clone()));
    let all: Vec<&Parcel> = now.iter().collect();
    let all_before: Option<Vec<&Parcel>> = before.as_ref().map(|before| before.iter().collect());
    Ok(Carriers { scope, carriers, total: service(ctx, &all, all_before.as_deref()) })
}

fn parcels(ctx: &Ctx<'_>, span: Span, params: &CarrierParams) -> Result<Vec<Parcel>, ShopError> {
    let to = czk_micro(ctx, params.currency)?;
    let mut filter = Filter::default();
    filter.push("s.status <> 'cancelled'");
    filter.bind("substr(s.handed_over_at, 1, 10) >= ?", Some(&span.from))?;
    filter.bind("substr(s.handed_over_at, 1, 10) <= ?", Some(&span.to))?;
    filter.bind("k.code = ?", params.carrier.as_ref())?;
    filter.bind("a.country = ?", params.country.as_ref())?;
    // An order with several parcels paid for shipping once, so each has its part.
    let sql = format!(
        "select k.code, k.name, s.status, s.handed_over_at, s.expected_on, s.delivered_at,
             cast(round(s.cost_cents * 1000000.0 / {to}) as integer),
             cast(round(o.shipping_cents * 1.0 * c.czk_micro / {to}
                 / (select count(*) from shipments x where x.order_id = o.id and x.status <> 'cancelled')) as integer)
         from shipments s join carriers k on k.id = s.carrier_id join orders o on o.id = s.order_id
         join addresses a on a.id = o.shipping_address_id join currencies c on c.code = o.currency{} order by s.id",
        filter.to_sql()
    );
    ctx.all(&sql, rusqlite::params_from_iter(&filter.values), |row| {
        Ok(Parcel {
            carrier: row.get(0)?,
            name: row.get(1)?,
            status: row.get(2)?,
            handed_over: row.get(3)?,
            expected: row.get(4)?,
            delivered: row.get(5)?,
            cost: row.get(6)?,
            charged: row.get(7)?,
        })
    })
}

fn service(ctx: &Ctx<'_>, now: &[&Parcel], before: Option<&[&Parcel]>) -> Service {
    let n = |is_wanted: fn(&Parcel) -> bool| count(now.iter().filter(|p| is_wanted(p)).count());
    let over =
        |parcels: &[&Parcel]| -> Vec<i64> { parcels.iter().filter_map(|parcel| parcel.days_over(ctx.today)).collect() };
    let on_time = |parcels: &[&Parcel]| {
        let over = over(parcels);
        let in_time = over.iter().filter(|days| **days <= 0).count();
        (count(in_time), count(over.len()))
    };
    let late: Vec<f64> = now
        .iter()
        .filter(|parcel| parcel.is_delivered())
        .filter_map(|parcel| parcel.days_over(ctx.today))
        .filter(|days| *days > 0)
        .map(|days| days as f64)
        .collect();
    let took: Vec<f64> = now
        .iter()
        .filter(|parcel| parcel.is_delivered())
        .filter_map(|parcel| Some(parcel.delivered?.days_since(parcel.handed_over) as f64))
        .collect();
    let cost = now.iter().map(|parcel| parcel.cost).sum();
    let charged: i64 = now.iter().map(|parcel| parcel.charged).sum();
    Service {
        shipments: Figure::new(count(now.len()), before.map(|before| count(before.len()))),
        delivered: n(Parcel::is_delivered),
        returned: n(|parcel| parcel.status == "returned"),
        under_way: n(Parcel::is_under_way),
        on_time: Rate::new(on_time(now), before.map(on_time)),
        late: count(over(now).iter().filter(|days| **days > 0).count()),
        average_late_days: mean(&late).map(round2),
        average_days: mean(&took).map(round2),
        p90_days: quantile(&took, 90).map(round2),
        cost_cents: cost,
        charged_cents: charged,
        balance_cents: charged - cost,
    }
}
