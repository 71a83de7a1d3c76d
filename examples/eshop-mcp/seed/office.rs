//! Settings, people, currencies, VAT rates, holidays, warehouses.

use rusqlite::{Connection, params};

use crate::error::ShopError;

const SETTINGS: [(&str, &str); 5] = [
    ("name", "Hory & Stezky s.r.o."),
    ("email", "obchod@horyastezky.example"),
    ("phone", "+420 541 000 111"),
    ("vat_no", "CZ08812345"),
    ("invoice_prefix", "2026"),
];

const USERS: [(&str, &str, &str); 6] = [
    ("pavla", "Pavla Němcová", "viewer"),
    ("hana", "Hana Králová", "clerk"),
    ("petr", "Petr Svoboda", "clerk"),
    ("lucie", "Lucie Benešová", "manager"),
    ("martin", "Martin Horák", "manager"),
    ("eva", "Eva Skálová", "admin"),
];

const CURRENCIES: [(&str, i64); 3] = [("CZK", 1_000_000), ("EUR", 24_350_000), ("PLN", 5_720_000)];

const VAT_RATES: [(&str, &str, i64, &str); 13] = [
    ("CZ", "standard", 21, "základní"),
    ("CZ", "reduced", 12, "snížená"),
    ("CZ", "zero", 0, "knihy"),
    ("SK", "standard", 23, "základná"),
    ("SK", "reduced", 19, "znížená"),
    ("SK", "reduced", 5, "znížená"),
    ("DE", "standard", 19, "Regelsatz"),
    ("DE", "reduced", 7, "ermäßigt"),
    ("AT", "standard", 20, "Normalsatz"),
    ("AT", "reduced", 10, "ermäßigt"),
    ("PL", "standard", 23, "podstawowa"),
    ("PL", "reduced", 8, "obniżona"),
    ("PL", "reduced", 5, "obniżona"),
];

/// Holidays on fixed days: countries, month and day, name.
const HOLIDAYS: [(&str, &str, &str); 21] = [
    ("CZ SK DE AT PL", "01-01", "New Year"),
    ("SK AT PL", "01-06", "Epiphany"),
    ("CZ SK DE AT PL", "05-01", "Labor Day"),
    ("PL", "05-03", "Constitution Day"),
    ("CZ SK", "05-08", "Victory Day"),
    ("CZ SK", "07-05", "Cyril and Methodius"),
    ("CZ", "07-06", "Jan Hus"),
    ("AT PL", "08-15", "Assumption"),
    ("SK", "08-29", "National Uprising"),
    ("SK", "09-15", "Our Lady of Sorrows"),
    ("CZ", "09-28", "Czech Statehood"),
    ("DE", "10-03", "German Unity"),
    ("AT", "10-26", "National Day"),
    ("CZ", "10-28", "Independence"),
    ("SK AT PL", "11-01", "All Saints"),
    ("PL", "11-11", "Independence"),
    ("CZ", "11-17", "Freedom and Democracy"),
    ("AT", "12-08", "Immaculate Conception"),
    ("CZ SK PL", "12-24", "Christmas Eve"),
    ("CZ SK DE AT PL", "12-25", "Christmas Day"),
    ("CZ SK DE AT PL", "12-26", "Second Christmas Day"),
];

/// Holidays that move with Easter.
const EASTER: [(&str, &str); 6] = [
    ("2025-04-18", "Good Friday"),
    ("2025-04-21", "Easter Monday"),
    ("2026-04-03", "Good Friday"),
    ("2026-04-06", "Easter Monday"),
    ("2027-03-26", "Good Friday"),
    ("2027-03-29", "Easter Monday"),
];

const WAREHOUSES: [(&str, &str, &str, &str); 3] = [
    ("BRN", "Brno main warehouse", "Brno", "main"),
    ("PRG", "Praha store", "Praha", "store"),
    ("OVA", "Ostrava outlet", "Ostrava", "outlet"),
];

/// Fills the tables of the office.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn fill(db: &Connection) -> Result<(), ShopError> {
    for (key, value) in SETTINGS {
        db.execute("insert into settings values (?, ?)", [key, value])?;
    }
    for (login, name, role) in USERS {
        db.execute("insert into users (login, name, role) values (?, ?, ?)", [login, name, role])?;
    }
    for (code, rate) in CURRENCIES {
        db.execute("insert into currencies values (?, ?)", params![code, rate])?;
    }
    for (country, kind, percent, label) in VAT_RATES {
        db.execute(
            "insert into vat_rates (country, kind, percent, valid_from, label) values (?, ?, ?, '2025-01-01', ?)",
            params![country, kind, percent, label],
        )?;
    }
    for (code, name, city, kind) in WAREHOUSES {
        let sql = "insert into warehouses (code, name, city, kind) values (?, ?, ?, ?)";
        db.execute(sql, [code, name, city, kind])?;
    }
    holidays(db)
}

fn holidays(db: &Connection) -> Result<(), ShopError> {
    let sql = "insert or ignore into holidays values (?, ?, ?)";
    for (countries, day, name) in HOLIDAYS {
        for country in countries.split(' ') {
            for year in 2025..=2027 {
                db.execute(sql, params![country, format!("{year}-{day}"), name])?;
            }
        }
    }
    for (day, name) in EASTER {
        for country in ["CZ", "SK", "DE", "AT", "PL"] {
            let is_free = name == "Easter Monday" || !matches!(country, "AT" | "PL");
            if is_free {
                db.execute(sql, params![country, day, name])?;
            }
        }
    }
    Ok(())
}
