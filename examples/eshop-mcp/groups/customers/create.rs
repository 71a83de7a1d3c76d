//! A new customer.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Address, Country, Currency, CustomerId},
    ctx::Ctx,
    error::ShopError,
    groups::customers::{
        edit::{add_address, check_postcode, check_terms, require_free},
        view::{AddressKind, CustomerAddress, CustomerKind, CustomerState, Segment, addresses_of, state_of},
    },
};

/// The customer to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateParams {
    kind: CustomerKind,
    /// Full name, or the company's as registered.
    #[schemars(length(min = 2, max = 80), example = &"Jana Dvořáková")]
    name: String,
    /// E-mail; no two customers share one.
    #[schemars(length(max = 120), regex(pattern = r"^[^@\s]+@[^@\s]+\.[^@\s]+$"), example = &"jana.dvorakova@mail.example")]
    email: String,
    /// Phone with country code.
    #[schemars(regex(pattern = r"^\+[0-9][0-9 ]{7,18}$"), example = &"+420 731 204 118")]
    phone: Option<String>,
    /// Company registration number; required for companies.
    #[schemars(regex(pattern = "^[0-9]{6,12}$"), example = &"25013577")]
    reg_no: Option<String>,
    /// VAT number with country prefix.
    #[schemars(regex(pattern = "^(CZ|SK|DE|AT|PL)U?[0-9]{8,10}$"), example = &"CZ25013577")]
    vat_no: Option<String>,
    /// Billing address.
    billing: Address,
    /// Shipping address; the billing one when absent.
    shipping: Option<Address>,
    /// Currency of all orders; when absent that of the billing country: CZK, PLN, otherwise EUR.
    currency: Option<Currency>,
    /// Segment, which is also the price list; retail when absent.
    #[serde(default = "retail")]
    segment: Segment,
    /// Days to pay on invoice; 0 for persons, over 30 takes role manager.
    #[serde(default)]
    #[schemars(range(min = 0, max = 60), example = 14)]
    payment_terms_days: i64,
    /// Whether the customer agreed to newsletters.
    #[serde(default)]
    #[schemars(example = true)]
    marketing_consent: bool,
}

fn retail() -> Segment {
    Segment::Retail
}

/// The new customer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Created {
    customer: CustomerState,
    addresses: Vec<CustomerAddress>,
    /// Others with the same name or phone; perhaps the same person.
    similar: Vec<Similar>,
    /// What to do next, if anything follows from it.
    follow_up: Option<String>,
}

/// A customer that may be the same.
#[derive(Debug, Serialize, JsonSchema)]
struct Similar {
    id: CustomerId,
    name: String,
    email: String,
    phone: Option<String>,
}

pub(crate) fn create(ctx: &Ctx<'_>, params: CreateParams) -> Result<Created, ShopError> {
    check(ctx, &params)?;
    let similar = similar(ctx, &params)?;
    let currency = params.currency.unwrap_or(match params.billing.country {
        Country::Cz => Currency::Czk,
        Country::Pl => Currency::Pln,
        Country::Sk | Country::De | Country::At => Currency::Eur,
    });
    let id = CustomerId(ctx.insert(
        "insert into customers (kind, name, email, phone, reg_no, vat_no, currency, segment, payment_terms_days,
             marketing_consent, created_at, updated_at) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11)",
        params![
            params.kind,
            params.name,
            params.email,
            params.phone,
            params.reg_no,
            params.vat_no,
            currency,
            params.segment,
            params.payment_terms_days,
            params.marketing_consent,
            ctx.now()
        ],
    )?);
    add_address(ctx, id, AddressKind::Billing, &params.billing)?;
    let shipping = params.shipping.as_ref().unwrap_or(&params.billing);
    add_address(ctx, id, AddressKind::Shipping, shipping)?;
    ctx.log(id, "customer created")?;
    let follow_up = match similar.first() {
        Some(other) => Some(format!(
            "compare with {} by customers_get, and join them with customers_merge if they are the same",
            other.id
        )),
        None if params.kind == CustomerKind::Company => {
            Some("orders on invoice take a credit limit first: customers_credit_limit_set".to_owned())
        }
        None => None,
    };
    Ok(Created { customer: state_of(ctx, id)?, addresses: addresses_of(ctx, id)?, similar, follow_up })
}

fn check(ctx: &Ctx<'_>, params: &CreateParams) -> Result<(), ShopError> {
    if params.kind == CustomerKind::Company && params.reg_no.is_none() {
        let allowed = "the registration number of the company";
        return Err(ShopError::invalid("reg_no", "absent", allowed));
    }
    let terms = Some(params.payment_terms_days);
    check_terms(ctx, params.kind, Some(params.segment), terms)?;
    check_postcode(&params.billing, "billing")?;
    if let Some(shipping) = &params.shipping {
        check_postcode(shipping, "shipping")?;
    }
    require_free(ctx, None, "email", &params.email)?;
    match &params.reg_no {
        Some(reg_no) => require_free(ctx, None, "reg_no", reg_no),
        None => Ok(()),
    }
}

fn similar(ctx: &Ctx<'_>, params: &CreateParams) -> Result<Vec<Similar>, ShopError> {
    let sql = "select id, name, email, phone from customers where merged_into is null
               and (lower(name) = lower(?1) or replace(phone, ' ', '') = replace(?2, ' ', '')) order by id limit 5";
    ctx.all(sql, params![params.name, params.phone], |row| {
        Ok(Similar { id: row.get(0)?, name: row.get(1)?, email: row.get(2)?, phone: row.get(3)? })
    })
}
