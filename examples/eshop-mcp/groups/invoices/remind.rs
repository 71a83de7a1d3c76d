//! Reminders of overdue invoices, each sterner than the one before.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Change, InvoiceId, Version},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    groups::invoices::{
        edit::{Edit, open},
        overdue::{LAST_LEVEL, REMINDER_GAP_DAYS, next_day},
        view::{InvoiceState, InvoiceStatus, Reminder, ReminderChannel, reminders_of},
    },
};

/// Which invoice, and how to remind.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemindParams {
    id: InvoiceId,
    expected_version: Option<Version>,
    /// Level that you expect to send, 1 to 3; the call fails when another one is next.
    #[schemars(range(min = 1, max = 3), example = 2)]
    level: Option<i64>,
    #[serde(default = "email")]
    channel: ReminderChannel,
    /// Text instead of the standard one of the level; number, amount and days are not added to it.
    #[schemars(length(min = 20, max = 1000), example = &"Dear customer, invoice 2026000250 is still open. Please pay it this week.")]
    message: Option<String>,
    /// Fee to charge in hundredths of the invoice's currency; not with the first reminder.
    #[serde(default)]
    #[schemars(range(min = 0, max = 50_000), example = 10_000)]
    fee_cents: i64,
}

fn email() -> ReminderChannel {
    ReminderChannel::Email
}

/// The reminder as sent.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Reminded {
    reminder: Reminder,
    /// Address of the e-mail, or of the letter on one line.
    recipient: String,
    days_overdue: i64,
    /// All reminders of the invoice, oldest first, with this one.
    history: Vec<Reminder>,
    /// First day for the next level; absent after the last.
    next_from: Option<Date>,
    invoice: InvoiceState,
    /// What differs from before, one entry per field.
    changes: Vec<Change>,
    /// What to do next, if anything follows from it.
    follow_up: Option<String>,
}

pub(crate) fn send(ctx: &Ctx<'_>, params: RemindParams) -> Result<Reminded, ShopError> {
    let mut edit = open(ctx, params.id, params.expected_version, "id")?;
    let days_overdue = days_overdue(ctx, &edit)?;
    let before = reminders_of(ctx, edit.id)?;
    let level = next_level(ctx, &edit, &before, &params)?;
    let message = match &params.message {
        Some(message) => message.clone(),
        None => standard(&edit, level, days_overdue),
    };
    let recipient = recipient(ctx, edit.id, params.channel)?;
    ctx.run(
        "insert into reminders (invoice_id, level, channel, fee_cents, message, sent_at, user_id) values (?, ?, ?, ?, ?, ?, ?)",
        params![edit.id, level, params.channel, params.fee_cents, message, ctx.now(), ctx.user.id],
    )?;
    let from = before.last().map(|last| last.level);
    edit.changed("reminder_level", from, Some(level));
    let is_last = level == LAST_LEVEL;
    let follow_up =
        is_last.then(|| "no reminder is left: call the customer, and plan it with core_task_create".to_owned());
    let text = format!("reminder {level} by {} to {recipient}", params.channel);
    let change = edit.close(ctx, &text, follow_up)?;
    Ok(Reminded {
        reminder: Reminder {
            level,
            channel: params.channel,
            fee_cents: params.fee_cents,
            message,
            sent_at: ctx.now(),
            by: Some(ctx.user.login.clone()),
        },
        recipient,
        days_overdue,
        history: reminders_of(ctx, change.invoice.id)?,
        next_from: (!is_last).then(|| ctx.today.plus_days(REMINDER_GAP_DAYS)),
        invoice: change.invoice,
        changes: change.changes,
        follow_up: change.follow_up,
    })
}

/// Refuses what is not overdue.
fn days_overdue(ctx: &Ctx<'_>, edit: &Edit) -> Result<i64, ShopError> {
    edit.require_invoice("a credit note is the shop's own debt")?;
    edit.require(&[InvoiceStatus::Issued], "see `invoices_overdue_list` for those that are owed")?;
    let days = edit.due_on.map_or(0, |due| ctx.today.days_since(due));
    if days > 0 {
        return Ok(days);
    }
    let due = edit.due_on.map(|due| due.to_string()).unwrap_or_default();
    Err(ShopError::state(
        format!("invoice {} is due on {due}, which has not passed", edit.id),
        "see `invoices_overdue_list` for those past their day",
    ))
}

fn next_level(ctx: &Ctx<'_>, edit: &Edit, before: &[Reminder], params: &RemindParams) -> Result<i64, ShopError> {
    let level = before.iter().map(|last| last.level).max().unwrap_or(0) + 1;
    if level > LAST_LEVEL {
        return Err(ShopError::state(
            format!("invoice {} has had all {LAST_LEVEL} reminders", edit.id),
            "call the customer, or lower the credit limit with `customers_credit_limit_set`",
        ));
    }
    let from = before.last().and_then(|last| next_day(&last.sent_at));
    if let Some(from) = from.filter(|from| *from > ctx.today) {
        return Err(ShopError::state(
            format!("the last reminder is less than {REMINDER_GAP_DAYS} days old"),
            format!("send the next one on {from} or later"),
        ));
    }
    if let Some(wanted) = params.level.filter(|wanted| *wanted != level) {
        let allowed = format!("{level}, the next one");
        return Err(ShopError::invalid("level", wanted, &allowed));
    }
    if level == 1 && params.fee_cents > 0 {
        let allowed = "0 with the first reminder";
        return Err(ShopError::invalid("fee_cents", params.fee_cents, allowed));
    }
    Ok(level)
}

fn standard(edit: &Edit, level: i64, days: i64) -> String {
    let number = edit.number.as_deref().unwrap_or_default();
    let cents = edit.open_cents();
    let open = format!("{}.{:02} {}", cents / 100, cents % 100, edit.currency);
    match level {
        1 => format!(
            "Invoice {number} was due {days} days ago; {open} is open. Please check whether your payment has gone out."
        ),
        2 => format!(
            "Invoice {number} is {days} days overdue. Please pay {open} within a week, or tell us what is in the way."
        ),
        _ => format!(
            "Last reminder: invoice {number} is {days} days overdue. Unless {open} arrives within a week, we stop deliveries on invoice."
        ),
    }
}

fn recipient(ctx: &Ctx<'_>, id: InvoiceId, channel: ReminderChannel) -> Result<String, ShopError> {
    let column = match channel {
        ReminderChannel::Email => "c.email",
        ReminderChannel::Post => {
            "(select a.name || ', ' || a.street || ', ' || a.postcode || ' ' || a.city || ', ' || a.country from addresses a
              where a.customer_id = c.id and a.kind = 'billing' order by a.is_default desc, a.id limit 1)"
        }
    };
    let sql = format!("select {column} from invoices i join customers c on c.id = i.customer_id where i.id = ?");
    let recipient: Option<String> = ctx.value(&sql, [id])?;
    recipient.ok_or_else(|| {
        ShopError::state(
            "the customer has no billing address",
            "send it by email, or add one with `customers_address_add`",
        )
        .at("channel")
    })
}
