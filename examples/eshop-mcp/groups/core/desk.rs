//! Who sits at the desk, which shop it is, and what was done here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, Limit},
    ctx::{Ctx, User},
    date::Date,
    error::ShopError,
    query::Filter,
    record::Record,
};

/// No parameters.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

pub(crate) fn whoami(ctx: &Ctx<'_>, _: Nothing) -> Result<User, ShopError> {
    Ok(ctx.user.clone())
}

/// The shop in short.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ShopCard {
    name: String,
    email: String,
    phone: String,
    vat_no: String,
    /// Home currency.
    currency: Currency,
    today: Date,
    people: Vec<User>,
    warehouses: Vec<WarehouseCard>,
}

/// A warehouse in short.
#[derive(Debug, Serialize, JsonSchema)]
struct WarehouseCard {
    code: String,
    name: String,
}

pub(crate) fn shop_info(ctx: &Ctx<'_>, _: Nothing) -> Result<ShopCard, ShopError> {
    let setting = |key: &str| ctx.value::<String>("select value from settings where key = ?", [key]);
    let people = ctx.all("select id, login, name, role from users order by id", [], |row| {
        Ok(User { id: row.get(0)?, login: row.get(1)?, name: row.get(2)?, role: row.get(3)? })
    })?;
    let warehouses = ctx.all("select code, name from warehouses order by id", [], |row| {
        Ok(WarehouseCard { code: row.get(0)?, name: row.get(1)? })
    })?;
    Ok(ShopCard {
        name: setting("name")?,
        email: setting("email")?,
        phone: setting("phone")?,
        vat_no: setting("vat_no")?,
        currency: Currency::Czk,
        today: ctx.today,
        people,
        warehouses,
    })
}

/// Which lines of the activity log.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActivityParams {
    about: Option<Record>,
    /// Login of the person.
    #[schemars(example = &"hana")]
    user: Option<String>,
    /// First day.
    #[schemars(example = &"2026-11-20")]
    since: Option<Date>,
    #[serde(default)]
    limit: Limit,
}

/// Lines of the activity log.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ActivityList {
    items: Vec<ActivityLine>,
}

/// One write.
#[derive(Debug, Serialize, JsonSchema)]
struct ActivityLine {
    /// Moment in shop time.
    at: String,
    /// Login.
    user: String,
    /// The tool that wrote.
    tool: String,
    /// Code of the record.
    about: String,
    summary: String,
}

pub(crate) fn activity_list(ctx: &Ctx<'_>, params: ActivityParams) -> Result<ActivityList, ShopError> {
    let mut filter = Filter::default();
    filter.bind("a.about = ?", params.about.as_ref())?;
    filter.bind("u.login = ?", params.user.as_ref())?;
    filter.bind("a.at >= ?", params.since.as_ref())?;
    let sql = format!(
        "select a.at, u.login, a.tool, a.about, a.summary from activity a
         join users u on u.id = a.user_id{} order by a.id desc limit {}",
        filter.to_sql(),
        params.limit.0
    );
    let items = ctx.all(&sql, rusqlite::params_from_iter(&filter.values), |row| {
        Ok(ActivityLine {
            at: row.get(0)?,
            user: row.get(1)?,
            tool: row.get(2)?,
            about: row.get(3)?,
            summary: row.get(4)?,
        })
    })?;
    Ok(ActivityList { items })
}
