//! A shop to test against: calls tools as a client would and holds every answer to its schema.

use std::collections::BTreeMap;

use rusqlite::{Params, types::FromSql};
use serde_json::{Map, Value};

use crate::{
    common::first,
    ctx::Role,
    db,
    error::{Code, Refusal, ShopError},
    groups,
    tool::Entry,
};

/// A fresh shop on its usual day.
pub(crate) struct TestShop {
    db: rusqlite::Connection,
    tools: BTreeMap<&'static str, Entry>,
}

impl TestShop {
    /// A shop with an admin at the desk.
    pub(crate) fn new() -> Self {
        Self::with_role(Role::Admin)
    }

    /// A shop with a person of this role at the desk.
    pub(crate) fn with_role(role: Role) -> Self {
        let tools = groups::entries().into_iter().map(|e| (e.spec.name, e)).collect();
        Self { db: db::open(None, role).unwrap(), tools }
    }

    /// Calls a tool that must succeed; its answer must fit its output schema.
    pub(crate) fn ok(&mut self, name: &str, arguments: Value) -> Value {
        match self.call(name, arguments) {
            Ok(answer) => answer,
            Err(refusal) => panic!("{name} refused: {refusal:?}"),
        }
    }

    /// Calls a tool that must refuse with this code.
    pub(crate) fn refused(&mut self, name: &str, code: Code, arguments: Value) -> Refusal {
        match self.call(name, arguments) {
            Ok(answer) => panic!("{name} answered {answer}"),
            Err(refusal) => {
                assert_eq!(refusal.code, code, "{refusal:?}");
                refusal
            }
        }
    }

    /// Reads one value straight from the database.
    pub(crate) fn sql<T: FromSql>(&self, sql: &str, params: impl Params) -> T {
        self.db.query_row(sql, params, first).unwrap()
    }

    /// Digest of all tables, to prove that nothing was written.
    pub(crate) fn contents(&self) -> String {
        let mut tables = self.db.prepare("select name from sqlite_schema where type = 'table' order by name").unwrap();
        let names: Vec<String> = tables.query_map([], first).unwrap().map(Result::unwrap).collect();
        let mut text = String::new();
        for name in names {
            let mut rows = self.db.prepare(&format!("select * from {name}")).unwrap();
            let n_columns = rows.column_count();
            let mut rows = rows.query([]).unwrap();
            while let Some(row) = rows.next().unwrap() {
                for i in 0..n_columns {
                    text.push_str(&format!("{:?}|", row.get_ref(i).unwrap()));
                }
            }
        }
        text
    }

    fn call(&mut self, name: &str, arguments: Value) -> Result<Value, Refusal> {
        let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap();
        let entry = &self.tools[name];
        let today = "2026-11-27".parse().unwrap();
        match entry.call(&mut self.db, today, arguments) {
            Ok(answer) => {
                let schema = entry.definition.output_schema.as_ref().unwrap();
                let schema = Value::Object(schema.as_ref().clone());
                if let Err(error) = jsonschema::validate(&schema, &answer) {
                    panic!("{name}: {error} at {} in {answer}", error.instance_path());
                }
                Ok(answer)
            }
            Err(ShopError::Refused(refusal)) => Err(*refusal),
            Err(fault) => panic!("{name} failed: {fault:?}"),
        }
    }
}
