//! Fills customers and their addresses.

use rusqlite::{Connection, params};

use crate::{
    common::{Country, Currency},
    date::Date,
    error::ShopError,
    seed::lcg::Lcg,
};

/// First names with a matching surname form, given by position.
const WOMEN: [&str; 10] = ["Jana", "Eva", "Lenka", "Kateřina", "Lucie", "Petra", "Hana", "Martina", "Tereza", "Zuzana"];
const MEN: [&str; 10] = ["Jan", "Petr", "Tomáš", "Jiří", "Pavel", "Martin", "Lukáš", "Ondřej", "Filip", "Marek"];
const SURNAMES: [(&str, &str, &str); 18] = [
    ("Novák", "Nováková", "novak"),
    ("Dvořák", "Dvořáková", "dvorak"),
    ("Černý", "Černá", "cerny"),
    ("Procházka", "Procházková", "prochazka"),
    ("Kučera", "Kučerová", "kucera"),
    ("Veselý", "Veselá", "vesely"),
    ("Horák", "Horáková", "horak"),
    ("Němec", "Němcová", "nemec"),
    ("Pokorný", "Pokorná", "pokorny"),
    ("Marek", "Marková", "marek"),
    ("Pospíšil", "Pospíšilová", "pospisil"),
    ("Hájek", "Hájková", "hajek"),
    ("Jelínek", "Jelínková", "jelinek"),
    ("Král", "Králová", "kral"),
    ("Růžička", "Růžičková", "ruzicka"),
    ("Beneš", "Benešová", "benes"),
    ("Fiala", "Fialová", "fiala"),
    ("Sedláček", "Sedláčková", "sedlacek"),
];
const COMPANIES: [(&str, Country, &str); 18] = [
    ("Horská služba Orlík z.s.", Country::Cz, "retail"),
    ("Outdoor Rental Liberec s.r.o.", Country::Cz, "wholesale"),
    ("Turistický oddíl Sova z.s.", Country::Cz, "club"),
    ("Chata Barborka s.r.o.", Country::Cz, "wholesale"),
    ("Lezecké centrum Vertikal s.r.o.", Country::Cz, "wholesale"),
    ("Skauti Třebíč z.s.", Country::Cz, "club"),
    ("Cestovka Pohoda a.s.", Country::Cz, "retail"),
    ("Tatry Guides s.r.o.", Country::Sk, "wholesale"),
    ("Požičovňa Fatra s.r.o.", Country::Sk, "wholesale"),
    ("Horský klub Javor o.z.", Country::Sk, "club"),
    ("Bergsport Passau GmbH", Country::De, "wholesale"),
    ("Wanderverein Zittau e.V.", Country::De, "club"),
    ("Alpinladen Linz GmbH", Country::At, "wholesale"),
    ("Sklep Górski Cieszyn sp. z o.o.", Country::Pl, "wholesale"),
    ("Szkoła Wspinania Bielsko", Country::Pl, "club"),
    ("Fotoexpedice Morava s.r.o.", Country::Cz, "retail"),
    ("Obec Karlov pod Pradědem", Country::Cz, "retail"),
    ("Lesy a cesty Brno a.s.", Country::Cz, "retail"),
];
const TOWNS: [(Country, &str, &str); 14] = [
    (Country::Cz, "Brno", "602 00"),
    (Country::Cz, "Praha", "120 00"),
    (Country::Cz, "Ostrava", "702 00"),
    (Country::Cz, "Olomouc", "779 00"),
    (Country::Cz, "Liberec", "460 01"),
    (Country::Cz, "Jeseník", "790 01"),
    (Country::Sk, "Bratislava", "811 01"),
    (Country::Sk, "Žilina", "010 01"),
    (Country::De, "Passau", "94032"),
    (Country::De, "Zittau", "02763"),
    (Country::At, "Linz", "4020"),
    (Country::At, "Wien", "1010"),
    (Country::Pl, "Cieszyn", "43-400"),
    (Country::Pl, "Bielsko-Biała", "43-300"),
];
const STREETS: [&str; 8] = ["Lidická", "Masarykova", "Nádražní", "Zahradní", "Školní", "Lesní", "Husova", "Jiráskova"];

/// What later steps need to know of a customer.
#[derive(Debug, Clone)]
pub(crate) struct Customer {
    pub(crate) id: i64,
    pub(crate) segment: &'static str,
    pub(crate) country: Country,
    pub(crate) currency: Currency,
    pub(crate) since: Date,
    pub(crate) terms_days: i64,
    pub(crate) billing_id: i64,
    pub(crate) shipping_id: i64,
}

/// Fills customers and returns them in order of their numbers.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn fill(db: &Connection, first_day: Date) -> Result<Vec<Customer>, ShopError> {
    let mut lcg = Lcg::new(23);
    let mut customers = Vec::new();
    for id in 1..=80 {
        let company =
            (id % 4 == 0).then(|| usize::try_from(id / 4 - 1).ok().and_then(|at| COMPANIES.get(at))).flatten();
        let since = first_day.plus_days(lcg.range(-150, 380)).min(first_day.plus_days(380));
        // Some stay from the start, or early months would have nobody to buy.
        let since = if id <= 16 { first_day.plus_days(-id) } else { since };
        let customer = match company {
            Some((name, country, segment)) => organization(db, &mut lcg, (id, since), (name, *country, segment))?,
            None => person(db, &mut lcg, id, since)?,
        };
        customers.push(customer);
    }
    Ok(customers)
}

fn person(db: &Connection, lcg: &mut Lcg, id: i64, since: Date) -> Result<Customer, ShopError> {
    let (man, woman, ascii) = *lcg.pick(&SURNAMES);
    let name =
        if lcg.chance(50) { format!("{} {woman}", lcg.pick(&WOMEN)) } else { format!("{} {man}", lcg.pick(&MEN)) };
    let country =
        *lcg.pick(&[Country::Cz, Country::Cz, Country::Cz, Country::Cz, Country::Sk, Country::De, Country::Pl]);
    let segment = if lcg.chance(20) { "club" } else { "retail" };
    let row = Row {
        kind: "person",
        name: &name,
        email: format!("{ascii}{id}@mail.example"),
        country,
        segment,
        since,
        reg_no: None,
        terms_days: 0,
        credit_cents: 0,
    };
    insert(db, lcg, id, &row)
}

fn organization(
    db: &Connection,
    lcg: &mut Lcg,
    (id, since): (i64, Date),
    (name, country, segment): (&str, Country, &'static str),
) -> Result<Customer, ShopError> {
    let is_wholesale = segment == "wholesale";
    let row = Row {
        kind: "company",
        name,
        email: format!("nakup@firma{id}.example"),
        country,
        segment,
        since,
        reg_no: Some(format!("{:08}", 25_000_000 + id * 13_577)),
        terms_days: if is_wholesale { *lcg.pick(&[14, 21, 30]) } else { 14 },
        credit_cents: if is_wholesale { lcg.range(4, 20) * 1_000_000 } else { 0 },
    };
    insert(db, lcg, id, &row)
}

struct Row<'a> {
    kind: &'a str,
    name: &'a str,
    email: String,
    country: Country,
    segment: &'static str,
    since: Date,
    reg_no: Option<String>,
    terms_days: i64,
    /// In CZK; converted roughly for other currencies.
    credit_cents: i64,
}

fn insert(db: &Connection, lcg: &mut Lcg, id: i64, row: &Row<'_>) -> Result<Customer, ShopError> {
    let (currency, per_unit) = match row.country {
        Country::Cz => (Currency::Czk, 1),
        Country::Pl => (Currency::Pln, 6),
        Country::Sk | Country::De | Country::At => (Currency::Eur, 25),
    };
    let since = format!("{}T10:00:00", row.since);
    let vat_no = row.reg_no.as_ref().map(|no| format!("{}{no}", row.country));
    let phone = format!("+420 7{:02} {:03} {:03}", lcg.range(0, 99), lcg.range(0, 999), lcg.range(0, 999));
    db.execute(
        "insert into customers (id, kind, name, email, phone, reg_no, vat_no, currency, segment, credit_limit_cents,
             payment_terms_days, marketing_consent, created_at, updated_at)
         values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?13, ?13)",
        params![
            id,
            row.kind,
            row.name,
            row.email,
            phone,
            row.reg_no,
            vat_no,
            currency,
            row.segment,
            row.credit_cents / per_unit,
            row.terms_days,
            lcg.chance(45),
            since
        ],
    )?;
    let (billing_id, shipping_id) = addresses(db, lcg, id, row)?;
    Ok(Customer {
        id,
        segment: row.segment,
        country: row.country,
        currency,
        since: row.since,
        terms_days: row.terms_days,
        billing_id,
        shipping_id,
    })
}

fn addresses(db: &Connection, lcg: &mut Lcg, id: i64, row: &Row<'_>) -> Result<(i64, i64), ShopError> {
    let towns: Vec<_> = TOWNS.iter().filter(|town| town.0 == row.country).collect();
    let (country, city, postcode) = **lcg.pick(&towns);
    let street = format!("{} {}", lcg.pick(&STREETS), lcg.range(1, 120));
    let address = |kind: &str| -> Result<i64, ShopError> {
        db.execute(
            "insert into addresses (customer_id, kind, name, street, city, postcode, country, is_default)
             values (?, ?, ?, ?, ?, ?, ?, 1)",
            params![id, kind, row.name, street, city, postcode, country],
        )?;
        Ok(db.last_insert_rowid())
    };
    Ok((address("billing")?, address("shipping")?))
}
