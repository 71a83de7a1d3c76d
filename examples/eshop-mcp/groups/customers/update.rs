//! Changes to a customer's own data.

use rusqlite::params;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{Currency, CustomerId, Version, first},
    ctx::Ctx,
    error::ShopError,
    groups::customers::{
        edit::{Edit, check_terms, make_default, open, require_free},
        view::{CustomerChange, CustomerKind, Segment},
    },
};

/// What to change; what is absent stays.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateParams {
    id: CustomerId,
    expected_version: Option<Version>,
    /// Full name, or the company's as registered.
    #[schemars(length(min = 2, max = 80), example = &"Jana Nováková")]
    name: Option<String>,
    /// E-mail; no two customers share one.
    #[schemars(length(max = 120), regex(pattern = r"^[^@\s]+@[^@\s]+\.[^@\s]+$"), example = &"jana.novakova@mail.example")]
    email: Option<String>,
    /// Phone with country code; empty to clear it.
    #[schemars(regex(pattern = r"^(\+[0-9][0-9 ]{7,18})?$"), example = &"+420 731 204 118")]
    phone: Option<String>,
    /// Company registration number; empty to clear that of a person.
    #[schemars(regex(pattern = "^([0-9]{6,12})?$"), example = &"25013577")]
    reg_no: Option<String>,
    /// VAT number with country prefix; empty to clear it.
    #[schemars(regex(pattern = "^((CZ|SK|DE|AT|PL)U?[0-9]{8,10})?$"), example = &"CZ25013577")]
    vat_no: Option<String>,
    /// Price list of later orders.
    segment: Option<Segment>,
    /// Currency, while the customer has no orders, invoices or credit limit.
    currency: Option<Currency>,
    /// Days to pay on later invoices; 0 for persons, over 30 takes role manager.
    #[schemars(range(min = 0, max = 60), example = 21)]
    payment_terms_days: Option<i64>,
    /// Whether the customer agrees to newsletters.
    #[schemars(example = false)]
    marketing_consent: Option<bool>,
    /// Number of one of the customer's addresses, from customers_get, to be the default of its kind.
    #[schemars(range(min = 1), example = 34)]
    default_address: Option<i64>,
}

pub(crate) fn update(ctx: &Ctx<'_>, params: UpdateParams) -> Result<CustomerChange, ShopError> {
    let mut edit = open(ctx, params.id, params.expected_version, ("id", "expected_version"))?;
    check(ctx, &edit, &params)?;
    let terms = params.payment_terms_days.map(|days| days.to_string());
    let consent = params.marketing_consent.map(|agrees| if agrees { "yes" } else { "no" });
    let fields = [
        ("name", params.name.as_deref()),
        ("email", params.email.as_deref()),
        ("phone", params.phone.as_deref()),
        ("reg_no", params.reg_no.as_deref()),
        ("vat_no", params.vat_no.as_deref()),
        ("segment", params.segment.map(Segment::as_str)),
        ("currency", params.currency.map(Currency::as_str)),
        ("payment_terms_days", terms.as_deref()),
        ("marketing_consent", consent),
    ];
    for (field, value) in fields {
        set(ctx, &mut edit, field, value)?;
    }
    if let Some(address) = params.default_address {
        set_default(ctx, &mut edit, address)?;
    }
    if edit.changes.is_empty() {
        return Err(ShopError::state(
            format!("customer {} already has these values", edit.id),
            "give at least one field that differs from `customers_get`",
        ));
    }
    let names: Vec<&str> = edit.changes.iter().map(|change| change.field.as_str()).collect();
    let message = format!("changed {}", names.join(", "));
    edit.close(ctx, &message, None)
}

fn check(ctx: &Ctx<'_>, edit: &Edit, params: &UpdateParams) -> Result<(), ShopError> {
    check_terms(ctx, edit.kind, params.segment, params.payment_terms_days)?;
    if let Some(email) = &params.email {
        require_free(ctx, Some(edit.id), "email", email)?;
    }
    match params.reg_no.as_deref() {
        Some("") if edit.kind == CustomerKind::Company => {
            let allowed = "the registration number of the company";
            return Err(ShopError::invalid("reg_no", "empty", allowed));
        }
        Some("") | None => {}
        Some(reg_no) => require_free(ctx, Some(edit.id), "reg_no", reg_no)?,
    }
    match params.currency {
        Some(currency) if currency != edit.currency => check_currency(ctx, edit, currency),
        _ => Ok(()),
    }
}

/// Refuses another currency once amounts in the present one exist.
fn check_currency(ctx: &Ctx<'_>, edit: &Edit, currency: Currency) -> Result<(), ShopError> {
    let n_papers: i64 = ctx.value(
        "select (select count(*) from orders where customer_id = ?1) + (select count(*) from invoices where customer_id = ?1)",
        [edit.id],
    )?;
    if n_papers > 0 {
        return Err(ShopError::state(
            format!(
                "customer {} has {n_papers} orders and invoices in {}; {currency} would mix them",
                edit.id, edit.currency
            ),
            "create a second customer with `customers_create` for the other currency",
        )
        .at("currency"));
    }
    let sql = "select credit_limit_cents from customers where id = ?";
    if ctx.value::<i64>(sql, [edit.id])? > 0 {
        return Err(ShopError::state(
            format!("customer {} has a credit limit in {}", edit.id, edit.currency),
            "set it to 0 with `customers_credit_limit_set` first",
        )
        .at("currency"));
    }
    Ok(())
}

/// Sets a column when it differs; an empty text clears it.
fn set(ctx: &Ctx<'_>, edit: &mut Edit, field: &str, value: Option<&str>) -> Result<(), ShopError> {
    let Some(value) = value else { return Ok(()) };
    // Texts on both sides; the column's affinity turns digits back into integers.
    let (read, write) = match field {
        "marketing_consent" => ("iif(marketing_consent, 'yes', 'no')", "?1 = 'yes'"),
        "payment_terms_days" => ("cast(payment_terms_days as text)", "?1"),
        field => (field, "?1"),
    };
    let before: Option<String> = ctx.value(&format!("select {read} from customers where id = ?"), [edit.id])?;
    let after = Some(value).filter(|value| !value.is_empty());
    if before.as_deref() != after {
        ctx.run(&format!("update customers set {field} = {write} where id = ?2"), params![after, edit.id])?;
        edit.changed(field, before, after);
    }
    Ok(())
}

fn set_default(ctx: &Ctx<'_>, edit: &mut Edit, address: i64) -> Result<(), ShopError> {
    let sql = "select kind, is_default from addresses where id = ? and customer_id = ?";
    let found: Option<(String, bool)> =
        ctx.one(sql, params![address, edit.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let Some((kind, is_default)) = found else {
        let error = ShopError::not_found("address", address, "customers_get");
        return Err(error.at("default_address"));
    };
    if is_default {
        return Ok(());
    }
    let sql = "select id from addresses where customer_id = ? and kind = ? and is_default = 1";
    let before: Option<i64> = ctx.one(sql, params![edit.id, kind], first)?;
    make_default(ctx, edit.id, address)?;
    edit.changed(&format!("default_{kind}"), before, Some(address));
    Ok(())
}
