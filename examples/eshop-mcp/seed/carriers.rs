//! Fills carriers and their branches.

use rusqlite::{Connection, params};

use crate::{error::ShopError, seed::lcg::Lcg};

/// A carrier as listed here.
#[derive(Debug)]
pub(crate) struct Carrier {
    pub(crate) id: i64,
    pub(crate) code: &'static str,
    name: &'static str,
    pub(crate) is_pickup: bool,
    pub(crate) countries: &'static str,
    /// In CZK cents: what the customer pays, what the shop pays, fee for cash on delivery.
    pub(crate) price_cents: i64,
    pub(crate) cost_cents: i64,
    cod_fee_cents: Option<i64>,
    max_weight_g: i64,
    /// Usual days from hand-over to delivery.
    pub(crate) days: (i64, i64),
}

/// All carriers. Names are made up after the kinds of service that parcel brokers offer.
pub(crate) const CARRIERS: [Carrier; 6] = [
    Carrier {
        id: 1,
        code: "zasilka",
        name: "Zásilka Boxy",
        is_pickup: true,
        countries: "CZ,SK,PL",
        price_cents: 7900,
        cost_cents: 5200,
        cod_fee_cents: Some(3000),
        max_weight_g: 15_000,
        days: (1, 3),
    },
    Carrier {
        id: 2,
        code: "cpost",
        name: "Pošta Balík",
        is_pickup: false,
        countries: "CZ",
        price_cents: 12_900,
        cost_cents: 8900,
        cod_fee_cents: Some(4000),
        max_weight_g: 30_000,
        days: (1, 3),
    },
    Carrier {
        id: 3,
        code: "dpx",
        name: "DPX Home",
        is_pickup: false,
        countries: "CZ,SK,DE,AT,PL",
        price_cents: 14_900,
        cost_cents: 10_400,
        cod_fee_cents: Some(4500),
        max_weight_g: 31_500,
        days: (1, 2),
    },
    Carrier {
        id: 4,
        code: "gelo",
        name: "Gelo Express",
        is_pickup: false,
        countries: "CZ,SK",
        price_cents: 18_900,
        cost_cents: 14_200,
        cod_fee_cents: None,
        max_weight_g: 50_000,
        days: (1, 1),
    },
    Carrier {
        id: 5,
        code: "paczko",
        name: "Paczko Point",
        is_pickup: true,
        countries: "PL",
        price_cents: 8900,
        cost_cents: 6100,
        cod_fee_cents: Some(3500),
        max_weight_g: 25_000,
        days: (2, 4),
    },
    Carrier {
        id: 6,
        code: "alpex",
        name: "Alpex Cargo",
        is_pickup: false,
        countries: "DE,AT",
        price_cents: 19_900,
        cost_cents: 15_100,
        cod_fee_cents: None,
        max_weight_g: 70_000,
        days: (2, 5),
    },
];

const PLACES: [(&str, &str, &str); 9] = [
    ("CZ", "Brno", "602 00"),
    ("CZ", "Praha", "110 00"),
    ("CZ", "Ostrava", "702 00"),
    ("CZ", "Olomouc", "779 00"),
    ("CZ", "Jeseník", "790 01"),
    ("SK", "Bratislava", "811 01"),
    ("SK", "Žilina", "010 01"),
    ("PL", "Cieszyn", "43-400"),
    ("PL", "Bielsko-Biała", "43-300"),
];

/// Fills carriers and branches.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn fill(db: &Connection) -> Result<(), ShopError> {
    let mut lcg = Lcg::new(31);
    for carrier in &CARRIERS {
        db.execute(
            "insert into carriers values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                carrier.id,
                carrier.code,
                carrier.name,
                if carrier.is_pickup { "pickup" } else { "home" },
                carrier.countries,
                carrier.price_cents,
                carrier.cost_cents,
                carrier.cod_fee_cents,
                carrier.max_weight_g,
                carrier.days.0,
                carrier.days.1,
                format!("https://{}.example/track/", carrier.code)
            ],
        )?;
        if carrier.is_pickup {
            branches(db, carrier, &mut lcg)?;
        }
    }
    Ok(())
}

fn branches(db: &Connection, carrier: &Carrier, lcg: &mut Lcg) -> Result<(), ShopError> {
    for (country, city, postcode) in PLACES {
        if !carrier.countries.contains(country) {
            continue;
        }
        for n in 1..=3 {
            let is_box = n > 1;
            db.execute(
                "insert into branches (carrier_id, code, name, kind, street, city, postcode, country, opening, is_open)
                 values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                params![
                    carrier.id,
                    format!("{}-{}-{n}", carrier.code.to_uppercase(), postcode.replace([' ', '-'], "")),
                    format!("{} {city} {n}", carrier.name),
                    if is_box { "box" } else { "counter" },
                    format!("{} {}", lcg.pick(&["Nádražní", "Hlavní", "Tržní", "Okružní"]), lcg.range(1, 90)),
                    city,
                    postcode,
                    country,
                    if is_box { "24/7" } else { "Mon-Fri 8:00-18:00" },
                    !lcg.chance(6)
                ],
            )?;
        }
    }
    Ok(())
}
