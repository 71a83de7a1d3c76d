//! Joining two records of one customer.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Change, CustomerId, Version},
    ctx::Ctx,
    error::ShopError,
    groups::customers::{
        edit::{Edit, open, touch},
        view::{Credit, CustomerState, credit_of, state_of},
    },
};

/// Which record stays, and which one is closed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MergeParams {
    /// Customer that stays.
    id: CustomerId,
    expected_version: Option<Version>,
    /// Customer that is closed; its papers move to the other.
    duplicate_id: CustomerId,
    /// Version of the duplicate that you last read; a newer one makes the call fail with `conflict`.
    #[schemars(example = 2)]
    duplicate_version: Option<Version>,
    /// How it is known that both are the same.
    #[schemars(length(min = 3, max = 200), example = &"Same phone; confirmed by e-mail.")]
    reason: String,
}

/// The joined customer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Merged {
    customer: CustomerState,
    /// The duplicate, which takes no orders and no changes any more.
    closed: CustomerState,
    /// How much moved.
    moved: Moved,
    credit: Credit,
    /// What the customer that stays took over, one entry per field.
    changes: Vec<Change>,
    /// What to do next, if anything follows from it.
    follow_up: Option<String>,
}

/// Number of records that moved.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct Moved {
    orders: usize,
    /// With credit notes.
    invoices: usize,
    addresses: usize,
    notes: usize,
    tasks: usize,
}

pub(crate) fn merge(ctx: &Ctx<'_>, params: MergeParams) -> Result<Merged, ShopError> {
    if params.id == params.duplicate_id {
        let allowed = "another customer than `id`";
        return Err(ShopError::invalid("duplicate_id", params.duplicate_id, allowed));
    }
    let mut kept = open(ctx, params.id, params.expected_version, ("id", "expected_version"))?;
    let names = ("duplicate_id", "duplicate_version");
    let duplicate = open(ctx, params.duplicate_id, params.duplicate_version, names)?;
    check(&kept, &duplicate)?;
    take_over(ctx, &mut kept, duplicate.id)?;
    let moved = move_all(ctx, kept.id, duplicate.id)?;
    close(ctx, kept.id, duplicate.id, &params.reason)?;
    let credit = credit_of(ctx, kept.id)?;
    let over = credit.used_cents - credit.limit_cents;
    let follow_up = (over > 0 && credit.limit_cents > 0)
        .then(|| format!("{over} cents are owed above the credit limit: see customers_credit_limit_set"));
    let message = format!("{} merged into this one: {}", duplicate.id, params.reason);
    let change = kept.close(ctx, &message, follow_up)?;
    Ok(Merged {
        customer: change.customer,
        closed: state_of(ctx, duplicate.id)?,
        moved,
        credit,
        changes: change.changes,
        follow_up: change.follow_up,
    })
}

/// Refuses to join what would mix currencies, or a person with a company.
fn check(kept: &Edit, duplicate: &Edit) -> Result<(), ShopError> {
    let pairs = [
        ("currency", kept.currency.as_str(), duplicate.currency.as_str()),
        ("kind", kept.kind.as_str(), duplicate.kind.as_str()),
    ];
    for (field, of_kept, of_duplicate) in pairs {
        if of_kept != of_duplicate {
            return Err(ShopError::state(
                format!("{field} of {} is {of_kept}, of {} {of_duplicate}", kept.id, duplicate.id),
                "leave them apart, and connect them with `core_note_create`",
            )
            .at("duplicate_id"));
        }
    }
    Ok(())
}

/// Fills what the customer that stays does not have.
fn take_over(ctx: &Ctx<'_>, kept: &mut Edit, duplicate: CustomerId) -> Result<(), ShopError> {
    for field in ["phone", "reg_no", "vat_no"] {
        let value = |id: CustomerId| -> Result<Option<String>, ShopError> {
            ctx.value(&format!("select {field} from customers where id = ?"), [id])
        };
        let (before, other) = (value(kept.id)?, value(duplicate)?);
        if let (None, Some(other)) = (before, other) {
            ctx.run(&format!("update customers set {field} = ? where id = ?"), params![other, kept.id])?;
            kept.changed(field, None::<String>, Some(other));
        }
    }
    Ok(())
}

fn move_all(ctx: &Ctx<'_>, kept: CustomerId, duplicate: CustomerId) -> Result<Moved, ShopError> {
    let papers = |table: &str| {
        ctx.run(
            &format!(
                "update {table} set customer_id = ?1, version = version + 1, updated_at = ?3 where customer_id = ?2"
            ),
            params![kept, duplicate, ctx.now()],
        )
    };
    let remarks = |table: &str| {
        ctx.run(
            &format!("update {table} set about = ?1 where about = ?2"),
            params![kept.to_string(), duplicate.to_string()],
        )
    };
    let (orders, invoices) = (papers("orders")?, papers("invoices")?);
    // Defaults stay those of the customer that stays, wherever there is one.
    ctx.run(
        "update addresses set is_default = 0 where customer_id = ?2 and exists
             (select 1 from addresses k where k.customer_id = ?1 and k.kind = addresses.kind and k.is_default = 1)",
        params![kept, duplicate],
    )?;
    let addresses =
        ctx.run("update addresses set customer_id = ?1 where customer_id = ?2", params![kept, duplicate])?;
    Ok(Moved { orders, invoices, addresses, notes: remarks("notes")?, tasks: remarks("tasks")? })
}

/// Closes the duplicate; what was merged into it before belongs to the other now too.
fn close(ctx: &Ctx<'_>, kept: CustomerId, duplicate: CustomerId, reason: &str) -> Result<(), ShopError> {
    ctx.run("update customers set merged_into = ?1 where id = ?2 or merged_into = ?2", params![kept, duplicate])?;
    ctx.run("update customers set credit_limit_cents = 0, marketing_consent = 0 where id = ?", [duplicate])?;
    touch(ctx, duplicate)?;
    ctx.log(duplicate, &format!("merged into {kept}: {reason}"))
}
