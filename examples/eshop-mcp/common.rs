//! Parameter and result types that tools of several groups share.
//!
//! Each carries its own description and example, so a tool that uses one as a field needs no more than the
//! field's name. Record codes (`ORD-000212`), words (`OrderStatus`), paging, money and ranges live here.

use rusqlite::{Row, types::FromSql};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    date::Date,
    error::ShopError,
    values::{code, words},
};

code!(/// Order code.
    OrderId, "ORD-", 6, "ORD-000212");
code!(/// Customer code.
    CustomerId, "CUS-", 4, "CUS-0017");
code!(/// Product code.
    ProductId, "PRD-", 3, "PRD-014");
code!(/// Invoice or credit note code.
    InvoiceId, "INV-", 6, "INV-000120");
code!(/// Delivery list code.
    DeliveryListId, "DL-", 6, "DL-000042");
code!(/// Shipment code.
    ShipmentId, "SHP-", 6, "SHP-000077");
code!(/// Note code.
    NoteId, "NOTE-", 4, "NOTE-0003");
code!(/// Task code.
    TaskId, "TASK-", 4, "TASK-0005");

words!(/// Currency, ISO 4217.
    Currency { Czk = "CZK", Eur = "EUR", Pln = "PLN" });
words!(/// Country, ISO 3166-1.
    Country { Cz = "CZ", Sk = "SK", De = "DE", At = "AT", Pl = "PL" });
words!(/// State of an order.
OrderStatus {
    New = "new",
    Confirmed = "confirmed",
    OnHold = "on_hold",
    Picking = "picking",
    Packed = "packed",
    Shipped = "shipped",
    Delivered = "delivered",
    Returned = "returned",
    Cancelled = "cancelled",
});
words!(/// Where the order was placed.
    SalesChannel { Eshop = "eshop", Store = "store", Phone = "phone", Marketplace = "marketplace" });
words!(/// How the order is paid.
    PaymentMethod { Card = "card", BankTransfer = "bank_transfer", Cod = "cod", Cash = "cash", Invoice = "invoice" });
words!(/// How far the order is paid.
    PaymentStatus { Unpaid = "unpaid", Partial = "partial", Paid = "paid", PartRefunded = "part_refunded", Refunded = "refunded" });
words!(/// Warehouse: Brno main, Praha store, Ostrava outlet.
    Warehouse { Brno = "BRN", Praha = "PRG", Ostrava = "OVA" });
words!(/// Sort direction.
    Direction { Desc = "desc", Asc = "asc" });

/// Stock keeping unit of a variant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(example = "TNT-001-GREEN")]
pub(crate) struct Sku(#[schemars(regex(pattern = r"^[A-Z]{3}-[0-9]{3}(-[A-Z0-9-]{1,6})?$"))] pub(crate) String);

/// An amount of money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = Self { cents: 259_000, currency: Currency::Czk })]
pub(crate) struct Money {
    /// In hundredths: 259000 is 2,590.00.
    #[schemars(example = 259_000)]
    pub(crate) cents: i64,
    pub(crate) currency: Currency,
}

impl Money {
    pub(crate) fn new(cents: i64, currency: Currency) -> Self {
        Self { cents, currency }
    }
}

/// Range of days, both ends included; an open end is left out.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({"from": "2026-11-01", "to": "2026-11-27"}))]
pub(crate) struct DateRange {
    pub(crate) from: Option<Date>,
    pub(crate) to: Option<Date>,
}

impl DateRange {
    /// Refuses a range that ends before it starts.
    ///
    /// # Errors
    /// `Refused` with code `invalid`.
    pub(crate) fn check(&self, field: &str) -> Result<(), ShopError> {
        match (self.from, self.to) {
            (Some(from), Some(to)) if from > to => {
                Err(ShopError::invalid(&format!("{field}.to"), to, &format!("{from} (`{field}.from`) or later")))
            }
            _ => Ok(()),
        }
    }
}

/// Range of amounts in one currency, both ends included; an open end is left out.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({"min_cents": 100_000, "currency": "CZK"}))]
pub(crate) struct MoneyRange {
    /// Lowest amount in hundredths.
    #[schemars(range(min = 0), example = 100_000)]
    pub(crate) min_cents: Option<i64>,
    /// Highest amount in hundredths.
    #[schemars(range(min = 0), example = 500_000)]
    pub(crate) max_cents: Option<i64>,
    pub(crate) currency: Currency,
}

impl MoneyRange {
    /// Refuses a range that ends before it starts.
    ///
    /// # Errors
    /// `Refused` with code `invalid`.
    pub(crate) fn check(&self, field: &str) -> Result<(), ShopError> {
        match (self.min_cents, self.max_cents) {
            (Some(min), Some(max)) if min > max => Err(ShopError::invalid(
                &format!("{field}.max_cents"),
                max,
                &format!("{min} (`{field}.min_cents`) or more"),
            )),
            _ => Ok(()),
        }
    }
}

/// Number of results at most.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[schemars(example = 20)]
pub(crate) struct Limit(#[schemars(range(min = 1, max = 100))] pub(crate) u32);

impl Default for Limit {
    fn default() -> Self {
        Self(20)
    }
}

/// Number of results to skip: `next_offset` of the page before.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(example = 20)]
pub(crate) struct Offset(#[schemars(range(min = 0, max = 100_000))] pub(crate) u32);

/// Version that you last read. When the record has a newer one, the call fails with `conflict`; without it nothing is compared.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[schemars(example = 3)]
pub(crate) struct Version(#[schemars(range(min = 1))] pub(crate) i64);

impl Version {
    /// Compares what the caller read with what the record has now.
    ///
    /// # Errors
    /// `Refused` with code `conflict` and the current version.
    pub(crate) fn check(expected: Option<Self>, current: i64, what: &str) -> Result<(), ShopError> {
        match expected {
            Some(Self(expected)) if expected != current => Err(ShopError::conflict(what, expected, current)),
            _ => Ok(()),
        }
    }
}

/// One page of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// Matches on all pages.
    pub(crate) total: i64,
    /// Pass as `offset` for the next page; absent on the last.
    pub(crate) next_offset: Option<u32>,
}

/// A field that a write changes.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Change {
    pub(crate) field: String,
    /// Value before; absent when there was none.
    pub(crate) from: Option<String>,
    /// Value after; absent when there is none.
    pub(crate) to: Option<String>,
}

impl Change {
    /// Describes a change; values are written as people read them.
    pub(crate) fn new(field: &str, from: Option<impl ToString>, to: Option<impl ToString>) -> Self {
        Self {
            field: field.to_owned(),
            from: from.map(|value| value.to_string()),
            to: to.map(|value| value.to_string()),
        }
    }
}

/// Postal address.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({"name": "Jana Dvořáková", "street": "Lidická 12", "city": "Brno", "postcode": "602 00", "country": "CZ"}))]
pub(crate) struct Address {
    /// Recipient.
    #[schemars(length(min = 2, max = 80), example = &"Jana Dvořáková")]
    pub(crate) name: String,
    /// Street and house number.
    #[schemars(length(min = 2, max = 80), example = &"Lidická 12")]
    pub(crate) street: String,
    /// Town.
    #[schemars(length(min = 1, max = 60), example = &"Brno")]
    pub(crate) city: String,
    /// Postcode as written in that country.
    #[schemars(regex(pattern = r"^[0-9]{2,3}[ -]?[0-9]{2,3}$"), example = &"602 00")]
    pub(crate) postcode: String,
    pub(crate) country: Country,
}

impl Address {
    /// Reads an address from the columns of table `addresses`.
    ///
    /// # Errors
    /// When a column is missing or of another type.
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            name: row.get("name")?,
            street: row.get("street")?,
            city: row.get("city")?,
            postcode: row.get("postcode")?,
            country: row.get("country")?,
        })
    }
}

/// Reads the first column, for queries of one value.
///
/// # Errors
/// When the column is of another type.
pub(crate) fn first<T: FromSql>(row: &Row<'_>) -> rusqlite::Result<T> {
    row.get(0)
}
