//! Codes that may point at any kind of record, as notes, tasks and the activity log do.

use std::borrow::Cow;

use rusqlite::types::{ToSql, ToSqlOutput};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    common::{CustomerId, DeliveryListId, InvoiceId, OrderId, ProductId, ShipmentId},
    ctx::Ctx,
    error::ShopError,
};

/// The code of an order, customer, product, invoice, delivery list or shipment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Record(pub(crate) String);

impl Record {
    /// Refuses a code that no record has.
    ///
    /// # Errors
    /// `Refused` with code `not_found`.
    pub(crate) fn check(&self, ctx: &Ctx<'_>, field: &str) -> Result<(), ShopError> {
        let exists = match self.place() {
            Some((table, id)) => {
                let sql = format!("select count(*) from {table} where id = ?");
                ctx.value::<i64>(&sql, [id])? > 0
            }
            None => false,
        };
        if exists { Ok(()) } else { Err(ShopError::not_found("record", &self.0, "core_search").at(field)) }
    }

    fn place(&self) -> Option<(&'static str, i64)> {
        let Self(text) = self;
        let id = |id: Result<i64, String>| id.ok();
        Some(match text.split('-').next()? {
            "ORD" => ("orders", id(text.parse::<OrderId>().map(|c| c.0))?),
            "CUS" => ("customers", id(text.parse::<CustomerId>().map(|c| c.0))?),
            "PRD" => ("products", id(text.parse::<ProductId>().map(|c| c.0))?),
            "INV" => ("invoices", id(text.parse::<InvoiceId>().map(|c| c.0))?),
            "DL" => ("delivery_lists", id(text.parse::<DeliveryListId>().map(|c| c.0))?),
            "SHP" => ("shipments", id(text.parse::<ShipmentId>().map(|c| c.0))?),
            _ => return None,
        })
    }
}

impl JsonSchema for Record {
    fn schema_name() -> Cow<'static, str> {
        "Record".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "Code of a record.",
            "pattern": "^(ORD|CUS|PRD|INV|DL|SHP)-[0-9]{3,6}$",
            "examples": ["ORD-000212"]
        })
    }
}

impl ToSql for Record {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.as_str().into())
    }
}
