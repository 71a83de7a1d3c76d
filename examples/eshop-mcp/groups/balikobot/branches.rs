//! The search for a branch or box where a customer picks a parcel up.

use rusqlite::Row;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Country, Limit, Offset, Page},
    ctx::{Ctx, Listing},
    error::ShopError,
    groups::balikobot::{
        codes::{BranchCode, BranchKind, CarrierCode},
        terms::find,
    },
    query::Filter,
};

/// Which branches.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BranchesParams {
    /// Only this carrier's branches.
    carrier: Option<CarrierCode>,
    /// Part of the code, name, street or town.
    #[schemars(length(min = 2, max = 60), example = &"Brno")]
    text: Option<String>,
    /// Only branches in this country.
    country: Option<Country>,
    /// Postcode of the customer; the nearest numbers come first. Takes `country`.
    #[schemars(regex(pattern = r"^[0-9]{2,3}[ -]?[0-9]{2,3}$"), example = &"602 00")]
    near_postcode: Option<String>,
    kind: Option<BranchKind>,
    /// Also branches that are closed for now.
    #[serde(default)]
    #[schemars(example = true)]
    include_closed: bool,
    #[serde(default)]
    limit: Limit,
    #[serde(default)]
    offset: Offset,
}

/// A branch.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Branch {
    /// Pass as `branch` to balikobot_shipment_create.
    code: BranchCode,
    carrier: CarrierCode,
    name: String,
    kind: BranchKind,
    street: String,
    city: String,
    postcode: String,
    country: Country,
    opening: String,
    /// False when it takes no parcels for now.
    is_open: bool,
}

pub(crate) fn search(ctx: &Ctx<'_>, params: BranchesParams) -> Result<Page<Branch>, ShopError> {
    if let Some(code) = &params.carrier {
        find(ctx, code)?;
    }
    let mut filter = Filter::default();
    filter.bind("k.code = ?", params.carrier.as_ref().map(|code| &code.0))?;
    if let Some(text) = &params.text {
        filter.contains(&["b.code", "b.name", "b.street", "b.city"], text);
    }
    filter.bind("b.country = ?", params.country.as_ref())?;
    filter.bind("b.kind = ?", params.kind.as_ref())?;
    if !params.include_closed {
        filter.push("b.is_open = 1");
    }
    let listing = Listing {
        columns: "b.*, k.code as carrier",
        from: "branches b join carriers k on k.id = b.carrier_id",
        order: &order(&params)?,
        limit: params.limit,
        offset: params.offset,
    };
    ctx.page(listing, &filter, branch)
}

fn order(params: &BranchesParams) -> Result<String, ShopError> {
    let Some(postcode) = &params.near_postcode else {
        return Ok("b.country, b.postcode, b.code".to_owned());
    };
    if params.country.is_none() {
        let allowed = "a country, because postcodes of different countries do not compare";
        return Err(ShopError::invalid("country", "missing", allowed));
    }
    let digits: String = postcode.chars().filter(char::is_ascii_digit).collect();
    let number = "cast(replace(replace(b.postcode, ' ', ''), '-', '') as integer)";
    Ok(format!("abs({number} - {digits}), b.code"))
}

fn branch(row: &Row<'_>) -> rusqlite::Result<Branch> {
    Ok(Branch {
        code: BranchCode(row.get("code")?),
        carrier: CarrierCode(row.get("carrier")?),
        name: row.get("name")?,
        kind: row.get("kind")?,
        street: row.get("street")?,
        city: row.get("city")?,
        postcode: row.get("postcode")?,
        country: row.get("country")?,
        opening: row.get("opening")?,
        is_open: row.get("is_open")?,
    })
}
