//! Words and codes of the catalog and the shelves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::{code, words};

code!(/// Supplier code.
    SupplierId, "SUP-", 2, "SUP-02");
code!(/// Reservation code.
    ReservationId, "RES-", 4, "RES-0002");

words!(/// State of a product; only active ones are sold.
    ProductStatus { Active = "active", Draft = "draft", Archived = "archived" });
words!(/// State of a variant; discontinued ones are sold no more.
    VariantStatus { Active = "active", Discontinued = "discontinued" });
words!(/// Price list, as the customer's segment.
    PriceList { Retail = "retail", Club = "club", Wholesale = "wholesale" });
words!(/// Kind of stock movement.
MovementKind {
    Receipt = "receipt",
    Sale = "sale",
    Return = "return",
    Adjust = "adjust",
    Transfer = "transfer",
});

/// Slug of a category.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(example = &"tents")]
pub(crate) struct Slug(#[schemars(regex(pattern = "^[a-z]{3,20}$"))] pub(crate) String);
