//! The SQL for a variant's price on a day.

use crate::{
    common::Currency,
    date::Date,
    groups::store::codes::{PriceList, ProductStatus, VariantStatus},
};

/// The price of variant `v` in a list and currency on a day, as an SQL expression; null when there is none.
///
/// Words and days are of this program's types, so that they may stand in the text.
pub(crate) fn price_sql(list: PriceList, currency: Currency, day: Date) -> String {
    format!(
        "(select r.amount_cents from prices r where r.variant_id = v.id and r.list = '{list}' and r.currency = '{currency}'
          and r.valid_from <= '{day}' and (r.valid_to is null or r.valid_to >= '{day}')
          order by r.valid_from desc, r.id desc limit 1)"
    )
}

/// The condition that product `p` and variant `v` may be sold, as SQL.
pub(crate) fn sellable_sql() -> String {
    let (product, variant) = (ProductStatus::Active, VariantStatus::Active);
    format!("p.status = '{product}' and v.status = '{variant}'")
}
