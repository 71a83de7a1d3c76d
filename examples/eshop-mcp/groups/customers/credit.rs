//! How much a customer may owe on invoices.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Change, CustomerId, Money, TaskId, Version},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::customers::{
        edit::{Edit, open},
        view::{Credit, CustomerKind, CustomerState, credit_of},
    },
};

/// Highest limit, in hundredths of any currency.
const MAX_CENTS: i64 = 100_000_000;
/// A debt this many days past due keeps a limit from being raised.
const BAD_DEBT_DAYS: i64 = 30;

/// The limit to set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitParams {
    id: CustomerId,
    expected_version: Option<Version>,
    /// New limit in the customer's currency; 0 stops orders on invoice.
    limit: Money,
    /// Why; kept in the customer's history.
    #[schemars(length(min = 3, max = 200), example = &"Paid on time for a year.")]
    reason: String,
    /// Day on which to look at it again; you get a task for it.
    #[schemars(example = &"2027-05-27")]
    review_on: Option<Date>,
}

/// The limit before and after.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LimitSet {
    customer: CustomerState,
    before: Credit,
    after: Credit,
    /// Task for the review.
    task: Option<TaskId>,
    /// What differs from before, one entry per field.
    changes: Vec<Change>,
    /// What to do next, if anything follows from it.
    follow_up: Option<String>,
}

pub(crate) fn set(ctx: &Ctx<'_>, params: LimitParams) -> Result<LimitSet, ShopError> {
    let mut edit = open(ctx, params.id, params.expected_version, ("id", "expected_version"))?;
    let before = credit_of(ctx, edit.id)?;
    check(ctx, &edit, &before, &params)?;
    let (from, to) = (before.limit_cents, params.limit.cents);
    ctx.run("update customers set credit_limit_cents = ? where id = ?", params![to, edit.id])?;
    edit.changed("credit_limit_cents", Some(from), Some(to));
    let task = params.review_on.map(|day| review(ctx, &edit, day)).transpose()?;
    let after = credit_of(ctx, edit.id)?;
    let over = after.used_cents - to;
    let follow_up = (over > 0).then(|| {
        format!("{over} cents are owed above the limit: orders on invoice are refused until they are paid, see invoices_list")
    });
    let message = format!("credit limit {from} -> {to} {}: {}", params.limit.currency, params.reason);
    let change = edit.close(ctx, &message, follow_up)?;
    Ok(LimitSet {
        customer: change.customer,
        before,
        after,
        task,
        changes: change.changes,
        follow_up: change.follow_up,
    })
}

fn check(ctx: &Ctx<'_>, edit: &Edit, before: &Credit, params: &LimitParams) -> Result<(), ShopError> {
    let Money { cents, currency } = params.limit;
    if currency != edit.currency {
        let allowed = edit.currency.as_str();
        return Err(ShopError::invalid("limit.currency", currency, allowed));
    }
    if !(0..=MAX_CENTS).contains(&cents) {
        let allowed = format!("0 to {MAX_CENTS}");
        return Err(ShopError::invalid("limit.cents", cents, &allowed));
    }
    if edit.kind == CustomerKind::Person && cents > 0 {
        return Err(ShopError::invalid("limit.cents", cents, "0 for a person"));
    }
    if let Some(day) = params.review_on.filter(|day| *day <= ctx.today) {
        let allowed = format!("later than {}", ctx.today);
        return Err(ShopError::invalid("review_on", day, &allowed));
    }
    if cents == before.limit_cents {
        return Err(ShopError::state(
            format!("the limit of customer {} is {cents} already", edit.id),
            "give another amount; see `customers_get` for what is used of it",
        ));
    }
    if cents > before.limit_cents {
        check_debts(ctx, edit)?;
    }
    Ok(())
}

/// Refuses to lend more to a customer with an old debt.
fn check_debts(ctx: &Ctx<'_>, edit: &Edit) -> Result<(), ShopError> {
    let last_day = ctx.today.plus_days(-BAD_DEBT_DAYS);
    let n_debts: i64 = ctx.value(
        "select count(*) from invoices where customer_id = ? and kind = 'invoice' and status = 'issued' and due_on < ?",
        params![edit.id, last_day],
    )?;
    if n_debts == 0 {
        return Ok(());
    }
    Err(ShopError::state(
        format!("customer {} has {n_debts} invoices more than {BAD_DEBT_DAYS} days past due", edit.id),
        "have them paid first: `invoices_overdue_list`, `invoices_reminder_send`",
    )
    .at("limit"))
}

fn review(ctx: &Ctx<'_>, edit: &Edit, day: Date) -> Result<TaskId, ShopError> {
    let id = ctx.insert(
        "insert into tasks (title, about, assignee_id, priority, status, due_on, created_by, created_at)
         values (?1, ?2, ?3, 'normal', 'open', ?4, ?3, ?5)",
        params![format!("Review the credit limit of {}", edit.id), edit.id.to_string(), ctx.user.id, day, ctx.now()],
    )?;
    Ok(TaskId(id))
}
