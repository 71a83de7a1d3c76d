//! Invoices past their due day, how old the debts are, and who can be reminded.

use rusqlite::params_from_iter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, CustomerId, Direction, Limit, MoneyRange, Offset},
    ctx::{Ctx, Listing},
    date::Date,
    error::ShopError,
    groups::invoices::view::{CARD_COLUMNS, CARD_TABLES, InvoiceCard, card},
    query::Filter,
    values::words,
};

/// Reminders of one invoice go out at least this many days apart.
pub(crate) const REMINDER_GAP_DAYS: i64 = 7;
/// The last reminder has this level.
pub(crate) const LAST_LEVEL: i64 = 3;

words!(/// How many days past due.
    AgeBucket { D14 = "1-14", D30 = "15-30", D60 = "31-60", D90 = "61-90", Older = "over_90" });
words!(/// What to sort by: days past due, or what is open.
    OverdueSort { Days = "days_overdue", Open = "open_cents" });

/// Which overdue invoices; conditions add up.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OverdueParams {
    /// Only this customer's invoices.
    customer_id: Option<CustomerId>,
    /// At least this many days past due.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1000), example = 14)]
    min_days: i64,
    /// At most this many days past due.
    #[schemars(range(min = 1, max = 1000), example = 60)]
    max_days: Option<i64>,
    /// What is open.
    open: Option<MoneyRange>,
    /// Levels of the last reminder; 0 for none yet.
    #[serde(default)]
    #[schemars(length(max = 4), inner(range(min = 0, max = 3)), example = [0, 1])]
    levels: Vec<i64>,
    /// Only invoices that invoices_reminder_send takes today.
    #[serde(default)]
    #[schemars(example = true)]
    remindable: bool,
    #[serde(default = "days")]
    sort: OverdueSort,
    #[serde(default = "desc")]
    direction: Direction,
    #[serde(default)]
    limit: Limit,
    #[serde(default)]
    offset: Offset,
}

fn one() -> i64 {
    1
}

fn days() -> OverdueSort {
    OverdueSort::Days
}

fn desc() -> Direction {
    Direction::Desc
}

/// Matches, and how old all of them are.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OverduePage {
    items: Vec<Debt>,
    /// Matches on all pages.
    total: i64,
    /// Pass as `offset` for the next page; absent on the last.
    next_offset: Option<u32>,
    /// Over all matches, per currency and age.
    aging: Vec<Aging>,
}

/// An overdue invoice.
#[derive(Debug, Serialize, JsonSchema)]
struct Debt {
    invoice: InvoiceCard,
    age: AgeBucket,
    /// Where to write or call.
    contact: Contact,
    /// The latest that went out.
    last_reminder: Option<Sent>,
    /// Absent after the last level.
    next_reminder: Option<Next>,
}

/// How the customer is reached.
#[derive(Debug, Serialize, JsonSchema)]
struct Contact {
    email: String,
    phone: Option<String>,
}

/// Level and moment of a reminder.
#[derive(Debug, Serialize, JsonSchema)]
struct Sent {
    /// 1 to 3.
    level: i64,
    sent_at: String,
}

/// The reminder that comes next.
#[derive(Debug, Serialize, JsonSchema)]
struct Next {
    /// 1 to 3.
    level: i64,
    /// First day on which it may go out.
    from: Date,
}

/// Debts of one age in one currency.
#[derive(Debug, Serialize, JsonSchema)]
struct Aging {
    currency: Currency,
    age: AgeBucket,
    invoices: i64,
    customers: i64,
    open_cents: i64,
}

/// Level and moment of the last reminder, joined to each invoice.
const LAST: &str =
    "left join (select invoice_id, max(level) as level, max(sent_at) as sent_at from reminders group by 1) r
    on r.invoice_id = i.id";

pub(crate) fn list(ctx: &Ctx<'_>, params: OverdueParams) -> Result<OverduePage, ShopError> {
    let filter = filter(ctx, &params)?;
    let column = match params.sort {
        // The longest overdue is the earliest due.
        OverdueSort::Days => "-julianday(i.due_on)",
        OverdueSort::Open => "open_cents",
    };
    let from = format!("{CARD_TABLES} {LAST}");
    let listing = Listing {
        columns: &format!("{CARD_COLUMNS}, c.email, c.phone, r.level, r.sent_at"),
        from: &from,
        order: &format!("{column} {d}, i.id {d}", d = params.direction),
        limit: params.limit,
        offset: params.offset,
    };
    let page = ctx.page(listing, &filter, |row| debt(row, ctx.today))?;
    let sql = format!(
        "select i.currency, {} as age, count(*), count(distinct i.customer_id), sum(i.total_cents - i.paid_cents)
         from {from}{} group by 1, 2 order by 1, max(i.due_on) desc",
        age_column(ctx.today),
        filter.to_sql()
    );
    let aging = ctx.all(&sql, params_from_iter(&filter.values), |row| {
        Ok(Aging {
            currency: row.get(0)?,
            age: row.get(1)?,
            invoices: row.get(2)?,
            customers: row.get(3)?,
            open_cents: row.get(4)?,
        })
    })?;
    Ok(OverduePage { items: page.items, total: page.total, next_offset: page.next_offset, aging })
}

fn filter(ctx: &Ctx<'_>, params: &OverdueParams) -> Result<Filter, ShopError> {
    let mut filter = Filter::default();
    filter.push("i.kind = 'invoice'");
    filter.push("i.status = 'issued'");
    let last_due = ctx.today.plus_days(-params.min_days);
    filter.bind("i.due_on <= ?", Some(&last_due))?;
    if let Some(max_days) = params.max_days {
        if max_days < params.min_days {
            let allowed = format!("{} (`min_days`) or more", params.min_days);
            return Err(ShopError::invalid("max_days", max_days, &allowed));
        }
        filter.bind("i.due_on >= ?", Some(&ctx.today.plus_days(-max_days)))?;
    }
    filter.bind("i.customer_id = ?", params.customer_id.as_ref())?;
    let open = params.open.as_ref();
    filter.money("i.total_cents - i.paid_cents", "i.currency", "open", open)?;
    filter.any("coalesce(r.level, 0)", &params.levels)?;
    if params.remindable {
        filter.bind("coalesce(r.level, 0) < ?", Some(&LAST_LEVEL))?;
        let day = ctx.today.plus_days(-REMINDER_GAP_DAYS);
        filter.bind("coalesce(substr(r.sent_at, 1, 10), '') <= ?", Some(&day))?;
    }
    Ok(filter)
}

fn age_column(today: Date) -> String {
    let day = |n_days: i64| today.plus_days(-n_days);
    format!(
        "case when i.due_on >= '{}' then '1-14' when i.due_on >= '{}' then '15-30' when i.due_on >= '{}' then '31-60'
         when i.due_on >= '{}' then '61-90' else 'over_90' end",
        day(14),
        day(30),
        day(60),
        day(90)
    )
}

fn debt(row: &rusqlite::Row<'_>, today: Date) -> rusqlite::Result<Debt> {
    let invoice = card(row, today)?;
    let level: Option<i64> = row.get("level")?;
    let sent_at: Option<String> = row.get("sent_at")?;
    let last_reminder = level.zip(sent_at).map(|(level, sent_at)| Sent { level, sent_at });
    let level = level.unwrap_or(0) + 1;
    let from = match &last_reminder {
        Some(last) => next_day(&last.sent_at),
        None => invoice.due_on.map(|due| due.plus_days(1)),
    };
    Ok(Debt {
        age: age(invoice.days_overdue.unwrap_or(1)),
        invoice,
        contact: Contact { email: row.get("email")?, phone: row.get("phone")? },
        last_reminder,
        next_reminder: from.filter(|_| level <= LAST_LEVEL).map(|from| Next { level, from }),
    })
}

/// First day for another reminder after one of this moment.
pub(crate) fn next_day(sent_at: &str) -> Option<Date> {
    let day: Date = sent_at.split('T').next()?.parse().ok()?;
    Some(day.plus_days(REMINDER_GAP_DAYS))
}

fn age(days: i64) -> AgeBucket {
    match days {
        ..=14 => AgeBucket::D14,
        15..=30 => AgeBucket::D30,
        31..=60 => AgeBucket::D60,
        61..=90 => AgeBucket::D90,
        _ => AgeBucket::Older,
    }
}
