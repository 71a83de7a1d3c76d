//! How a write opens a customer and closes it again, and the rules that several writes share.

use rusqlite::params;

use crate::{
    common::{Address, Change, Country, Currency, CustomerId, Version},
    ctx::{Ctx, Role},
    error::ShopError,
    groups::customers::view::{AddressKind, CustomerChange, CustomerKind, Segment, state_of},
};

/// Longer payment terms than this take a manager.
const MAX_CLERK_TERMS_DAYS: i64 = 30;

/// A customer that is being written.
#[derive(Debug)]
pub(crate) struct Edit {
    pub(crate) id: CustomerId,
    pub(crate) version: i64,
    pub(crate) kind: CustomerKind,
    pub(crate) currency: Currency,
    pub(crate) changes: Vec<Change>,
}

/// Opens a customer for writing; `field` and `version_field` are the arguments' names for errors.
///
/// # Errors
/// `Refused` with `not_found`, `conflict`, or `state` when the customer was merged into another.
pub(crate) fn open(
    ctx: &Ctx<'_>,
    id: CustomerId,
    expected: Option<Version>,
    (field, version_field): (&str, &str),
) -> Result<Edit, ShopError> {
    let sql = "select version, kind, currency, merged_into from customers where id = ?";
    let found = ctx.one(sql, [id], |row| {
        let edit = Edit { id, version: row.get(0)?, kind: row.get(1)?, currency: row.get(2)?, changes: Vec::new() };
        Ok((edit, row.get::<_, Option<CustomerId>>(3)?))
    })?;
    match found {
        None => Err(ShopError::not_found("customer", id, "customers_list").at(field)),
        Some((_, Some(other))) => {
            let message = format!("customer {id} was merged into {other}");
            Err(ShopError::state(message, format!("use {other}")).at(field))
        }
        Some((edit, None)) => {
            Version::check(expected, edit.version, &format!("customer {id}"))
                .map_err(|error| error.at(version_field))?;
            Ok(edit)
        }
    }
}

impl Edit {
    /// Records a change.
    pub(crate) fn changed(&mut self, field: &str, from: Option<impl ToString>, to: Option<impl ToString>) {
        self.changes.push(Change::new(field, from, to));
    }

    /// Closes the customer: new version, activity, answer.
    ///
    /// # Errors
    /// `Db` when the database fails.
    pub(crate) fn close(
        self,
        ctx: &Ctx<'_>,
        message: &str,
        follow_up: Option<String>,
    ) -> Result<CustomerChange, ShopError> {
        touch(ctx, self.id)?;
        ctx.log(self.id, message)?;
        Ok(CustomerChange { customer: state_of(ctx, self.id)?, changes: self.changes, follow_up })
    }
}

/// Raises the version of a customer.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn touch(ctx: &Ctx<'_>, id: CustomerId) -> Result<(), ShopError> {
    ctx.run("update customers set version = version + 1, updated_at = ? where id = ?", params![ctx.now(), id])?;
    Ok(())
}

/// Refuses a value that another customer has already.
///
/// # Errors
/// `Refused` with `state`, naming the other customer.
pub(crate) fn require_free(ctx: &Ctx<'_>, id: Option<CustomerId>, field: &str, value: &str) -> Result<(), ShopError> {
    let sql = format!(
        "select id, merged_into is not null from customers where lower({field}) = lower(?1) and id is not ?2
         order by merged_into is not null limit 1"
    );
    let other: Option<(CustomerId, bool)> = ctx.one(&sql, params![value, id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (other, hint) = match other {
        None => return Ok(()),
        // A merge hands numbers on, but an e-mail stays with the closed record.
        Some((_, true)) if field != "email" => return Ok(()),
        Some((other, true)) => (other, "it stays with that merged record; give another".to_owned()),
        Some((other, false)) => (other, format!("use {other}, or join the two with `customers_merge`")),
    };
    let message = format!("customer {other} has the {field} {value}");
    Err(ShopError::state(message, hint).at(field))
}

/// Refuses payment terms and price lists that the kind of customer or the person's role does not allow.
///
/// # Errors
/// `Refused` with `invalid` or `forbidden`.
pub(crate) fn check_terms(
    ctx: &Ctx<'_>,
    kind: CustomerKind,
    segment: Option<Segment>,
    terms_days: Option<i64>,
) -> Result<(), ShopError> {
    if let (CustomerKind::Person, Some(Segment::Wholesale)) = (kind, segment) {
        let allowed = "retail or club for a person";
        return Err(ShopError::invalid("segment", "wholesale", allowed));
    }
    let Some(days) = terms_days else {
        return Ok(());
    };
    if kind == CustomerKind::Person && days > 0 {
        let allowed = "0 for a person";
        return Err(ShopError::invalid("payment_terms_days", days, allowed));
    }
    if days > MAX_CLERK_TERMS_DAYS {
        ctx.user.check("payment_terms_days over 30", Role::Manager)?;
    }
    Ok(())
}

/// Refuses a postcode of another length than those of its country.
///
/// # Errors
/// `Refused` with `invalid`.
pub(crate) fn check_postcode(address: &Address, field: &str) -> Result<(), ShopError> {
    let n_digits = address.postcode.bytes().filter(u8::is_ascii_digit).count();
    let expected = match address.country {
        Country::At => 4,
        Country::Cz | Country::Sk | Country::De | Country::Pl => 5,
    };
    if n_digits == expected {
        return Ok(());
    }
    Err(ShopError::invalid(
        &format!("{field}.postcode"),
        &address.postcode,
        &format!("{expected} digits in {}", address.country),
    ))
}

/// Stores an address, and returns its number; the first of its kind becomes the default.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn add_address(
    ctx: &Ctx<'_>,
    id: CustomerId,
    kind: AddressKind,
    address: &Address,
) -> Result<i64, ShopError> {
    ctx.insert(
        "insert into addresses (customer_id, kind, name, street, city, postcode, country, is_default)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7,
             not exists (select 1 from addresses where customer_id = ?1 and kind = ?2 and is_default = 1))",
        params![id, kind, address.name, address.street, address.city, address.postcode, address.country],
    )
}

/// Makes an address the default one of its kind.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn make_default(ctx: &Ctx<'_>, id: CustomerId, address: i64) -> Result<(), ShopError> {
    ctx.run(
        "update addresses set is_default = (id = ?2) where customer_id = ?1
         and kind = (select kind from addresses where id = ?2)",
        params![id, address],
    )?;
    Ok(())
}
