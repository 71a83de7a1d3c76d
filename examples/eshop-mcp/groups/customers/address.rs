//! Another address of a customer.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Address, Change, CustomerId, Version, first},
    ctx::Ctx,
    error::ShopError,
    groups::customers::{
        edit::{add_address, check_postcode, make_default, open},
        view::{AddressKind, CustomerAddress, CustomerState, addresses_of},
    },
};

/// The address to add.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddressParams {
    id: CustomerId,
    expected_version: Option<Version>,
    kind: AddressKind,
    address: Address,
    /// Take it for new orders when none is given; the first of its kind is taken anyway.
    #[serde(default)]
    #[schemars(example = true)]
    make_default: bool,
}

/// The customer with the new address.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Added {
    customer: CustomerState,
    /// Number of the new address.
    address: i64,
    /// All of the customer, billing first, defaults first.
    addresses: Vec<CustomerAddress>,
    /// What differs from before, one entry per field.
    changes: Vec<Change>,
}

pub(crate) fn add(ctx: &Ctx<'_>, params: AddressParams) -> Result<Added, ShopError> {
    let mut edit = open(ctx, params.id, params.expected_version, ("id", "expected_version"))?;
    let new = &params.address;
    check_postcode(new, "address")?;
    let sql = "select id from addresses where customer_id = ? and kind = ? and lower(name) = lower(?) and lower(street) = lower(?)
               and lower(city) = lower(?) and replace(postcode, ' ', '') = replace(?, ' ', '') and country = ?";
    let same: Option<i64> =
        ctx.one(sql, params![edit.id, params.kind, new.name, new.street, new.city, new.postcode, new.country], first)?;
    if let Some(same) = same {
        return Err(ShopError::state(
            format!("customer {} has this address: number {same}", edit.id),
            "to make it the default use `customers_update` with `default_address`",
        )
        .at("address"));
    }
    let sql = "select id from addresses where customer_id = ? and kind = ? and is_default = 1";
    let before: Option<i64> = ctx.one(sql, params![edit.id, params.kind], first)?;
    let address = add_address(ctx, edit.id, params.kind, new)?;
    if params.make_default {
        make_default(ctx, edit.id, address)?;
    }
    edit.changed("addresses", None::<i64>, Some(address));
    if params.make_default || before.is_none() {
        edit.changed(&format!("default_{}", params.kind), before, Some(address));
    }
    let message = format!("{} address {address} added in {}", params.kind, new.city);
    let change = edit.close(ctx, &message, None)?;
    Ok(Added {
        address,
        addresses: addresses_of(ctx, change.customer.id)?,
        customer: change.customer,
        changes: change.changes,
    })
}
