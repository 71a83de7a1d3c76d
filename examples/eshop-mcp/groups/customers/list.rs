//! The list of customers.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    common::{Country, Currency, DateRange, Direction, Limit, Offset, Page},
    ctx::{Ctx, Listing},
    error::ShopError,
    groups::customers::view::{CustomerCard, CustomerKind, Segment, card, card_columns},
    query::Filter,
    values::words,
};

words!(/// What to sort by.
CustomerSort {
    Name = "name",
    CreatedAt = "created_at",
    LastOrderAt = "last_order_at",
    Orders = "orders",
    Open = "open_cents",
    Overdue = "overdue_cents",
});

/// Which customers; conditions add up, values within one list are alternatives.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParams {
    /// Part of the name, e-mail, phone, registration number, VAT number, or a town.
    #[schemars(length(min = 2, max = 80), example = &"novak")]
    text: Option<String>,
    kind: Option<CustomerKind>,
    /// Segments to include; all when absent.
    #[serde(default)]
    #[schemars(length(max = 3), example = [Segment::Club, Segment::Wholesale])]
    segment: Vec<Segment>,
    /// Country of the default billing address.
    country: Option<Country>,
    currency: Option<Currency>,
    /// Whether the customer agreed to newsletters.
    #[schemars(example = true)]
    marketing_consent: Option<bool>,
    /// Only customers who owe something past its due day.
    #[serde(default)]
    #[schemars(example = true)]
    with_overdue: bool,
    /// Only customers with a credit limit.
    #[serde(default)]
    #[schemars(example = true)]
    with_credit: bool,
    /// Day the customer was created.
    created: Option<DateRange>,
    /// Day of an order in this range that was not cancelled.
    ordered: Option<DateRange>,
    /// Without an order for at least this many days, or ever.
    #[schemars(range(min = 1, max = 1000), example = 180)]
    silent_days: Option<i64>,
    /// Also customers that were merged into others.
    #[serde(default)]
    #[schemars(example = true)]
    include_merged: bool,
    #[serde(default = "name")]
    sort: CustomerSort,
    #[serde(default = "asc")]
    direction: Direction,
    #[serde(default)]
    limit: Limit,
    #[serde(default)]
    offset: Offset,
}

fn name() -> CustomerSort {
    CustomerSort::Name
}

fn asc() -> Direction {
    Direction::Asc
}

pub(crate) fn list(ctx: &Ctx<'_>, params: ListParams) -> Result<Page<CustomerCard>, ShopError> {
    let filter = filter(ctx, &params)?;
    let columns = card_columns(ctx.today);
    let sort = match params.sort {
        CustomerSort::Name => "c.name",
        CustomerSort::CreatedAt => "c.created_at",
        sort => sort.as_str(),
    };
    let listing = Listing {
        columns: &columns,
        from: "customers c",
        order: &format!("{sort} {d}, c.id {d}", d = params.direction),
        limit: params.limit,
        offset: params.offset,
    };
    ctx.page(listing, &filter, card)
}

/// An order of the customer that counts.
const ORDER: &str = "select 1 from orders o where o.customer_id = c.id and o.status <> 'cancelled'";

fn filter(ctx: &Ctx<'_>, params: &ListParams) -> Result<Filter, ShopError> {
    let mut filter = Filter::default();
    if let Some(text) = &params.text {
        let town = "(select group_concat(city) from addresses a where a.customer_id = c.id)";
        let columns = ["c.name", "c.email", "c.phone", "c.reg_no", "c.vat_no", town];
        filter.contains(&columns, text);
    }
    filter.bind("c.kind = ?", params.kind.as_ref())?;
    filter.any("c.segment", &params.segment)?;
    filter.bind(
        "c.id in (select customer_id from addresses where kind = 'billing' and is_default = 1 and country = ?)",
        params.country.as_ref(),
    )?;
    filter.bind("c.currency = ?", params.currency.as_ref())?;
    let consent = params.marketing_consent.as_ref();
    filter.bind("c.marketing_consent = ?", consent)?;
    if params.with_overdue {
        filter.bind(
            "exists (select 1 from invoices i where i.customer_id = c.id and i.kind = 'invoice' and i.status = 'issued' and i.due_on < ?)",
            Some(&ctx.today),
        )?;
    }
    if params.with_credit {
        filter.push("c.credit_limit_cents > 0");
    }
    filter.days("c.created_at", "created", params.created.as_ref())?;
    if let Some(range) = params.ordered {
        range.check("ordered")?;
        // Both ends must hold for one order, so they stand in one condition; `~` sorts behind all days.
        let from = range.from.map(|day| day.to_string()).unwrap_or_default();
        let to = range.to.map_or("~".to_owned(), |day| format!("{day}~"));
        filter.bind(&format!("exists ({ORDER} and o.placed_at >= '{from}' and o.placed_at <= ?)"), Some(&to))?;
    }
    if let Some(days) = params.silent_days {
        let day = ctx.today.plus_days(-days);
        filter.bind(&format!("not exists ({ORDER} and substr(o.placed_at, 1, 10) > ?)"), Some(&day))?;
    }
    if !params.include_merged {
        filter.push("c.merged_into is null");
    }
    Ok(filter)
}
