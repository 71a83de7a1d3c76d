//! The frame that every tool is written in.
//!
//! A tool is a [`Spec`] and a handler. From the types of the handler the frame makes both schemas; it checks
//! the person's role and the arguments, opens the transaction, and commits or rolls back. So a handler cannot
//! forget any of it: a read runs in a transaction that is always rolled back, and a write gets its `dry_run`
//! parameter, its `applied` result and its rollback from here. Read [`read`] and [`write`] first.

use std::sync::Arc;

use jsonschema::Validator;
use rmcp::model::{Tool, ToolAnnotations};
use rusqlite::Connection;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::{
    ctx::{Ctx, Role, User},
    date::Date,
    error::{Code, ShopError},
    schema,
};

/// What a tool does to the shop, as told to clients.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Effect {
    /// Changes nothing.
    Read,
    /// Only adds; each call adds again.
    Add,
    /// Replaces values; the same call again changes nothing more.
    Set,
    /// Takes something away or cannot be undone; each call acts again or is refused.
    Destroy,
    /// Only adds, and reaches outside the shop: an e-mail, a carrier.
    AddOutside,
    /// Cannot be undone and reaches outside the shop.
    DestroyOutside,
}

impl Effect {
    fn annotations(self) -> ToolAnnotations {
        let (read_only, destructive, idempotent, open_world) = match self {
            Self::Read => (true, false, true, false),
            Self::Add => (false, false, false, false),
            Self::Set => (false, true, true, false),
            Self::Destroy => (false, true, false, false),
            Self::AddOutside => (false, false, false, true),
            Self::DestroyOutside => (false, true, false, true),
        };
        ToolAnnotations::new()
            .read_only(read_only)
            .destructive(destructive)
            .idempotent(idempotent)
            .open_world(open_world)
    }
}

/// What a tool says about itself, in four parts, and who may call it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spec {
    /// `group_noun_verb`.
    pub(crate) name: &'static str,
    /// For people, three words or so.
    pub(crate) title: &'static str,
    /// What it does.
    pub(crate) does: &'static str,
    /// When to use it, and which tool to use instead otherwise.
    pub(crate) when: &'static str,
    /// What else it changes. For reads: [`NONE`].
    pub(crate) effects: &'static str,
    /// What it cannot do or refuses. The frame adds the role.
    pub(crate) limits: &'static str,
    pub(crate) effect: Effect,
    pub(crate) role: Role,
}

/// The side effects of a read.
pub(crate) const NONE: &str = "none";

type Run = Box<dyn Fn(&Ctx<'_>, Value) -> Result<Value, ShopError> + Send + Sync>;

/// A tool of the table: definition, check and handler.
pub(crate) struct Entry {
    pub(crate) spec: Spec,
    /// As `tools/list` gives it.
    pub(crate) definition: Tool,
    /// Compiled from the definition's input schema.
    arguments: Validator,
    run: Run,
}

/// Makes a tool that reads.
pub(crate) fn read<P, R>(spec: Spec, handler: fn(&Ctx<'_>, P) -> Result<R, ShopError>) -> Entry
where
    P: DeserializeOwned + JsonSchema + 'static,
    R: Serialize + JsonSchema + 'static,
{
    debug_assert!(matches!(spec.effect, Effect::Read), "{} is no read", spec.name);
    entry(spec, schema::input::<P>(), schema::output::<R>(), run(handler))
}

/// Makes a tool that writes.
///
/// The handler's parameters have no `dry_run`: the frame adds it, and takes it off before. The answer is
/// `{"applied": bool, "result": R}`. The handler must leave a line in the activity log.
pub(crate) fn write<P, R>(spec: Spec, handler: fn(&Ctx<'_>, P) -> Result<R, ShopError>) -> Entry
where
    P: DeserializeOwned + JsonSchema + 'static,
    R: Serialize + JsonSchema + 'static,
{
    debug_assert!(!matches!(spec.effect, Effect::Read), "{} is no write", spec.name);
    let mut input = schema::input::<P>();
    let properties = input.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        properties.insert(
            "dry_run".into(),
            json!({
                "type": "boolean",
                "description": "Compute and check everything, store nothing.",
                "default": false,
                "examples": [true]
            }),
        );
    }
    entry(spec, input, schema::output::<Written<R>>(), run(handler))
}

/// The answer of a write.
#[derive(Debug, Serialize, JsonSchema)]
struct Written<R> {
    /// False for a dry run.
    applied: bool,
    result: R,
}

fn run<P, R>(handler: fn(&Ctx<'_>, P) -> Result<R, ShopError>) -> Run
where
    P: DeserializeOwned + 'static,
    R: Serialize + 'static,
{
    Box::new(move |ctx, arguments| {
        // The schema has been checked, so what is left are rules that a schema cannot hold.
        let parameters = serde_json::from_value(arguments)
            .map_err(|error| ShopError::refused(Code::Invalid, error.to_string(), "correct the value".into()))?;
        let mut result = serde_json::to_value(handler(ctx, parameters)?)?;
        schema::drop_nulls(&mut result);
        Ok(result)
    })
}

#[expect(clippy::expect_used, reason = "schemas come from types of this program, and a test builds them all")]
fn entry(spec: Spec, input: Map<String, Value>, output: Map<String, Value>, run: Run) -> Entry {
    let arguments = jsonschema::draft202012::options()
        .should_validate_formats(true)
        .build(&Value::Object(input.clone()))
        .expect("schemars writes valid schemas");
    let definition = Tool::new(spec.name, describe(&spec), Arc::new(input))
        .with_title(spec.title)
        .with_raw_output_schema(Arc::new(output))
        .with_annotations(spec.effect.annotations());
    Entry { spec, definition, arguments, run }
}

fn describe(spec: &Spec) -> String {
    let Spec { does, when, effects, limits, role, .. } = *spec;
    let role = match role {
        Role::Viewer => String::new(),
        role => format!(" Takes role {role}."),
    };
    format!("{does}\nWhen: {when}\nSide effects: {effects}\nLimits: {limits}{role}")
}

impl Entry {
    /// Calls the tool: role, arguments, transaction, handler.
    ///
    /// # Errors
    /// `Refused` for everything the model should read; other variants are faults of the shop.
    pub(crate) fn call(
        &self,
        db: &mut Connection,
        today: Date,
        arguments: Map<String, Value>,
    ) -> Result<Value, ShopError> {
        let transaction = db.transaction()?;
        let user = User::acting(&transaction)?;
        user.check(self.spec.name, self.spec.role)?;
        let mut arguments = Value::Object(arguments);
        schema::drop_nulls(&mut arguments);
        schema::check(&self.arguments, &self.definition.input_schema, &arguments)?;
        let ctx = Ctx::new(&transaction, today, user, self.spec.name);
        if matches!(self.spec.effect, Effect::Read) {
            // Dropping the transaction rolls it back: a read cannot write.
            return (self.run)(&ctx, arguments);
        }
        let dry_run =
            arguments.as_object_mut().and_then(|members| members.remove("dry_run")).is_some_and(|value| value == true);
        let result = (self.run)(&ctx, arguments)?;
        debug_assert!(ctx.has_logged(), "{} left no activity", self.spec.name);
        if !dry_run {
            transaction.commit()?;
        }
        Ok(json!({ "applied": !dry_run, "result": result }))
    }
}
