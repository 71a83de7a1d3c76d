//! How late invoices are paid.

use std::collections::BTreeMap;

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, DateRange, Limit},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::analytics::{
        facts::czk_micro,
        figures::{Figure, Rate, mean, median, percent, quantile, round2},
        period::{Compare, Scope, Span, czk, previous},
        revenue::count,
    },
    values::words,
};

words!(/// What to group invoices by.
    DelayGroup { Method = "payment_method", Segment = "segment", Country = "country", Customer = "customer" });

/// Which invoices, and how to group them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DelayParams {
    /// Days on which invoices were issued; the last 180 when absent.
    period: Option<DateRange>,
    #[serde(default = "previous")]
    compare: Compare,
    #[serde(default = "czk")]
    currency: Currency,
    #[serde(default = "segment")]
    group_by: DelayGroup,
    #[serde(default)]
    limit: Limit,
}

fn segment() -> DelayGroup {
    DelayGroup::Segment
}

/// Delays of all and of groups, and what is open.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Delays {
    scope: Scope,
    invoices: Figure,
    /// Paid in full.
    paid: Figure,
    /// Of those paid, by the due day or before.
    on_time: Rate,
    delay: Delay,
    /// Most late on average first.
    groups: Vec<DelayRow>,
    /// What is not paid, by how long it is due.
    aging: Vec<Bucket>,
}

/// Days after the due day over invoices paid in full; negative is early.
#[derive(Debug, Serialize, JsonSchema)]
struct Delay {
    average_days: Option<f64>,
    median_days: Option<f64>,
    /// Nine of ten were paid within so many days.
    p90_days: Option<f64>,
    /// From the day of issue to the payment.
    average_days_to_pay: Option<f64>,
}

/// A group.
#[derive(Debug, Serialize, JsonSchema)]
struct DelayRow {
    /// Word, or customer code.
    key: String,
    /// For customers.
    name: Option<String>,
    invoices: i64,
    paid: i64,
    on_time_percent: Option<f64>,
    average_days: Option<f64>,
    open_cents: i64,
    /// The part of `open_cents` that is past due.
    overdue_cents: i64,
}

/// Open invoices by days past due.
#[derive(Debug, Serialize, JsonSchema)]
struct Bucket {
    /// `not_due`, or days such as `1-30`.
    days: String,
    invoices: i64,
    cents: i64,
    /// Of all that is open.
    share_percent: Option<f64>,
}

/// Buckets by their fewest and most days past due.
const BUCKETS: [(&str, i64, i64); 5] =
    [("not_due", i64::MIN, 0), ("1-30", 1, 30), ("31-60", 31, 60), ("61-90", 61, 90), ("91+", 91, i64::MAX)];

/// An invoice in the report's currency.
#[derive(Debug)]
struct Paper {
    key: String,
    name: Option<String>,
    issued: Date,
    due: Date,
    open: i64,
    /// Day of the last payment, when paid in full.
    paid: Option<Date>,
}

impl Paper {
    fn delay(&self) -> Option<i64> {
        self.paid.map(|paid| paid.days_since(self.due))
    }

    fn overdue_days(&self, today: Date) -> i64 {
        today.days_since(self.due)
    }
}

pub(crate) fn delay(ctx: &Ctx<'_>, params: DelayParams) -> Result<Delays, ShopError> {
    let scope = Scope::new(ctx, params.period, 180, params.compare, params.currency)?;
    let read = |span: Span| papers(ctx, span, &params);
    let now = read(scope.period)?;
    let before = scope.compared.map(read).transpose()?;
    let n = |papers: &[Paper]| count(papers.len());
    let n_paid = |papers: &[Paper]| count(papers.iter().filter(|p| p.paid.is_some()).count());
    let mut groups = groups(ctx, &now);
    groups.truncate(usize::try_from(params.limit.0).unwrap_or(usize::MAX));
    Ok(Delays {
        scope,
        invoices: Figure::new(n(&now), before.as_deref().map(n)),
        paid: Figure::new(n_paid(&now), before.as_deref().map(n_paid)),
        on_time: Rate::new(on_time(&now), before.as_deref().map(on_time)),
        delay: spread(&now),
        groups,
        aging: aging(ctx, &now),
    })
}

fn papers(ctx: &Ctx<'_>, span: Span, params: &DelayParams) -> Result<Vec<Paper>, ShopError> {
    let to = czk_micro(ctx, params.currency)?;
    let key = match params.group_by {
        DelayGroup::Method => "coalesce(o.payment_method, 'none')",
        DelayGroup::Segment => "c.segment",
        DelayGroup::Country => "coalesce((select country from addresses a where a.id = o.billing_address_id), 'none')",
        DelayGroup::Customer => "printf('CUS-%04d', c.id)",
    };
    let sql = format!(
        "select {key}, c.name, i.issued_on, i.due_on,
             cast(round(max(i.total_cents - i.paid_cents, 0) * 1.0 * k.czk_micro / ?3) as integer),
             case when i.paid_cents >= i.total_cents then (select max(p.paid_on) from payments p where p.invoice_id = i.id) end
         from invoices i join customers c on c.id = i.customer_id join currencies k on k.code = i.currency
         left join orders o on o.id = i.order_id
         where i.kind = 'invoice' and i.status in ('issued', 'paid') and i.issued_on between ?1 and ?2 order by i.id"
    );
    let is_customer = params.group_by == DelayGroup::Customer;
    ctx.all(&sql, params![span.from, span.to, to], |row| {
        Ok(Paper {
            key: row.get(0)?,
            name: is_customer.then(|| row.get(1)).transpose()?,
            issued: row.get(2)?,
            due: row.get(3)?,
            open: row.get(4)?,
            paid: row.get(5)?,
        })
    })
}

fn on_time(papers: &[Paper]) -> (i64, i64) {
    let delays: Vec<i64> = papers.iter().filter_map(Paper::delay).collect();
    let in_time = delays.iter().filter(|days| **days <= 0).count();
    (count(in_time), count(delays.len()))
}

fn spread(papers: &[Paper]) -> Delay {
    let delays = delays(papers.iter());
    let to_pay: Vec<f64> =
        papers.iter().filter_map(|paper| Some(paper.paid?.days_since(paper.issued) as f64)).collect();
    Delay {
        average_days: mean(&delays).map(round2),
        median_days: median(&delays).map(round2),
        p90_days: quantile(&delays, 90).map(round2),
        average_days_to_pay: mean(&to_pay).map(round2),
    }
}

fn delays<'a>(papers: impl Iterator<Item = &'a Paper>) -> Vec<f64> {
    papers.filter_map(Paper::delay).map(|days| days as f64).collect()
}

fn groups(ctx: &Ctx<'_>, papers: &[Paper]) -> Vec<DelayRow> {
    let mut parts: BTreeMap<&str, Vec<&Paper>> = BTreeMap::new();
    for paper in papers {
        parts.entry(&paper.key).or_default().push(paper);
    }
    let mut rows: Vec<DelayRow> = parts
        .into_iter()
        .map(|(key, papers)| {
            let delays = delays(papers.iter().copied());
            let in_time = delays.iter().filter(|days| **days <= 0.0).count();
            let open = |is_wanted: &dyn Fn(&Paper) -> bool| {
                papers.iter().filter(|paper| is_wanted(paper)).map(|paper| paper.open).sum()
            };
            DelayRow {
                key: key.to_owned(),
                name: papers.first().and_then(|paper| paper.name.clone()),
                invoices: count(papers.len()),
                paid: count(delays.len()),
                on_time_percent: percent(count(in_time), count(delays.len())),
                average_days: mean(&delays).map(round2),
                open_cents: open(&|_| true),
                overdue_cents: open(&|paper| paper.overdue_days(ctx.today) > 0),
            }
        })
        .collect();
    rows.sort_by(|a, b| {
        let late = |row: &DelayRow| row.average_days.unwrap_or(f64::MIN);
        late(b).total_cmp(&late(a)).then(a.key.cmp(&b.key))
    });
    rows
}

fn aging(ctx: &Ctx<'_>, papers: &[Paper]) -> Vec<Bucket> {
    let all: i64 = papers.iter().map(|paper| paper.open).sum();
    BUCKETS
        .iter()
        .map(|(name, least, most)| {
            let here: Vec<&Paper> = papers
                .iter()
                .filter(|paper| paper.open > 0)
                .filter(|paper| (*least..=*most).contains(&paper.overdue_days(ctx.today)))
                .collect();
            let cents = here.iter().map(|paper| paper.open).sum();
            Bucket { days: (*name).to_owned(), invoices: count(here.len()), cents, share_percent: percent(cents, all) }
        })
        .collect()
}
