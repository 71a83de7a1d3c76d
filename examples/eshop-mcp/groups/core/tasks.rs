//! Tasks of the staff.

use rusqlite::{OptionalExtension as _, Row, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Limit, TaskId, first},
    ctx::Ctx,
    date::Date,
    error::ShopError,
    query::Filter,
    record::Record,
    values::words,
};

words!(/// Priority.
    Priority { Normal = "normal", High = "high", Low = "low" });
words!(/// State.
    TaskStatus { Open = "open", Done = "done" });

/// Which tasks.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParams {
    status: Option<TaskStatus>,
    /// Login.
    #[schemars(example = &"petr")]
    assignee: Option<String>,
    about: Option<Record>,
    /// Last due day.
    #[schemars(example = &"2026-11-30")]
    due_by: Option<Date>,
    #[serde(default)]
    limit: Limit,
}

/// Tasks.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Tasks {
    items: Vec<Task>,
}

/// One task.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Task {
    id: TaskId,
    title: String,
    /// Code of the record.
    about: Option<String>,
    /// Login.
    assignee: String,
    priority: String,
    status: String,
    due_on: Option<Date>,
}

const COLUMNS: &str = "select t.id, t.title, t.about, u.login, t.priority, t.status, t.due_on
                       from tasks t join users u on u.id = t.assignee_id";

pub(crate) fn list(ctx: &Ctx<'_>, params: ListParams) -> Result<Tasks, ShopError> {
    let mut filter = Filter::default();
    filter.bind("t.status = ?", params.status.as_ref())?;
    filter.bind("u.login = ?", params.assignee.as_ref())?;
    filter.bind("t.about = ?", params.about.as_ref())?;
    filter.bind("t.due_on <= ?", params.due_by.as_ref())?;
    let sql =
        format!("{COLUMNS}{} order by t.due_on is null, t.due_on, t.id limit {}", filter.to_sql(), params.limit.0);
    let items = ctx.all(&sql, rusqlite::params_from_iter(&filter.values), task)?;
    Ok(Tasks { items })
}

/// The task to add.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateParams {
    /// What to do.
    #[schemars(length(min = 3, max = 200), example = &"Call about the missing tent poles")]
    title: String,
    about: Option<Record>,
    /// Login; yourself when absent.
    #[schemars(example = &"petr")]
    assignee: Option<String>,
    /// Due day.
    #[schemars(example = &"2026-11-30")]
    due_on: Option<Date>,
    priority: Option<Priority>,
}

pub(crate) fn create(ctx: &Ctx<'_>, params: CreateParams) -> Result<Task, ShopError> {
    if let Some(about) = &params.about {
        about.check(ctx, "about")?;
    }
    if let Some(due_on) = params.due_on.filter(|day| *day < ctx.today) {
        return Err(ShopError::invalid("due_on", due_on, &format!("{} or later", ctx.today)));
    }
    let assignee_id = match &params.assignee {
        None => ctx.user.id,
        Some(login) => user_id(ctx, login)?,
    };
    let id = ctx.insert(
        "insert into tasks (title, about, assignee_id, priority, status, due_on, created_by, created_at)
         values (?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            params.title,
            params.about,
            assignee_id,
            params.priority.unwrap_or(Priority::Normal),
            TaskStatus::Open,
            params.due_on,
            ctx.user.id,
            ctx.now()
        ],
    )?;
    ctx.log(TaskId(id), &format!("task added: {}", params.title))?;
    Ok(ctx.db.query_row(&format!("{COLUMNS} where t.id = ?"), [id], task)?)
}

fn user_id(ctx: &Ctx<'_>, login: &str) -> Result<i64, ShopError> {
    let id = ctx.db.query_row("select id from users where login = ?", [login], first).optional()?;
    match id {
        Some(id) => Ok(id),
        None => {
            let logins: String = ctx.value("select group_concat(login, ', ') from users", [])?;
            Err(ShopError::invalid("assignee", format!("`{login}`"), &logins))
        }
    }
}

fn task(row: &Row<'_>) -> rusqlite::Result<Task> {
    Ok(Task {
        id: row.get(0)?,
        title: row.get(1)?,
        about: row.get(2)?,
        assignee: row.get(3)?,
        priority: row.get(4)?,
        status: row.get(5)?,
        due_on: row.get(6)?,
    })
}
