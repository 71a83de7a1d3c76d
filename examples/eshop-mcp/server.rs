//! The shop as an MCP server: list the tools, call a tool, introduce itself.
//!
//! Owns [`Shop`]: the database behind a lock and the table of tools, sorted by name. Refusals become tool
//! results with `isError`; unknown names and faults become JSON-RPC errors.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use rusqlite::Connection;
use serde_json::{Map, Value};

use crate::{date::Date, error::ShopError, groups, tool::Entry};

/// What every client is told once.
const INSTRUCTIONS: &str = "\
Back office of Hory & Stezky, an outdoor shop in Brno with an e-shop, a store in Praha and an outlet in Ostrava. \
Amounts are integers in hundredths and include VAT; days are YYYY-MM-DD. Records have codes: ORD-, CUS-, PRD-, \
INV-, DL-, SHP-, NOTE-, TASK-; variants of products have SKUs. `core_search` finds any record by words. \
Every write takes `dry_run`; writes on versioned records take `expected_version`. A refused call returns \
isError with {code, field, message, hint}; code is not_found, invalid, conflict, forbidden or state.";

/// The server.
pub(crate) struct Shop {
    /// Never held across an await.
    db: Mutex<Connection>,
    /// By name, so that lists come in a fixed order.
    tools: BTreeMap<&'static str, Entry>,
    today: Date,
}

impl Shop {
    pub(crate) fn new(db: Connection, today: Date) -> Self {
        let tools = groups::entries().into_iter().map(|entry| (entry.spec.name, entry)).collect();
        Self { db: Mutex::new(db), tools, today }
    }

    /// Calls a tool by name; `None` when there is no such tool.
    pub(crate) fn call(&self, name: &str, arguments: Map<String, Value>) -> Option<Result<Value, ShopError>> {
        let entry = self.tools.get(name)?;
        // A panicking call has rolled back, so the connection is fit for use.
        let mut db = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        Some(entry.call(&mut db, self.today, arguments))
    }
}

impl ServerHandler for Shop {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("eshop-mcp", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools.values().map(|entry| entry.definition.clone());
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let CallToolRequestParams { name, arguments, .. } = request;
        match self.call(&name, arguments.unwrap_or_default()) {
            None => Err(ErrorData::invalid_params(format!("unknown tool `{name}`"), None)),
            Some(Ok(result)) => Ok(CallToolResult::structured(result).into()),
            Some(Err(ShopError::Refused(refusal))) => match serde_json::to_value(&refusal) {
                Ok(refusal) => Ok(CallToolResult::structured_error(refusal).into()),
                Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
            },
            Some(Err(fault)) => Err(ErrorData::internal_error(fault.to_string(), None)),
        }
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.get(name).map(|entry| entry.definition.clone())
    }
}
