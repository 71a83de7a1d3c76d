//! eshop-mcp: the back office of a small outdoor shop as a real MCP server over stdio.
//!
//! It stands in for the kind of server that the gate is made for: 95 tools, about 96,000 tokens of
//! schemas, one embedded database. `groups/mod.rs` lists the tools, `tool.rs` is the frame they are
//! written in, `server.rs` speaks MCP, `db.rs` and `schema.sql` own the data. It must know nothing of
//! the gate.

mod common;
mod ctx;
mod date;
mod db;
mod error;
mod groups;
mod query;
mod record;
mod schema;
mod seed;
mod server;
#[cfg(test)]
mod testkit;
mod tokens;
mod tool;
mod values;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use rmcp::{ServiceExt as _, transport::stdio};

use crate::{ctx::Role, date::Date, server::Shop};

/// The command line of the shop.
#[derive(Debug, Parser)]
#[command(name = "eshop-mcp", about = "The back office of an outdoor shop as an MCP server over stdio")]
struct Options {
    /// Database file; created and filled when it does not exist. In memory when absent.
    #[arg(long, value_name = "FILE")]
    db: Option<PathBuf>,
    /// Role of the person at the desk.
    #[arg(long, value_enum, default_value_t = Role::Admin)]
    role: Role,
    /// The day on which the shop believes to be.
    #[arg(long, value_name = "YYYY-MM-DD", default_value = "2026-11-27")]
    today: Date,
    /// Prints what each tool's definition costs in tokens, and stops.
    #[arg(long, hide = true)]
    tokens: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            match writeln!(std::io::stderr(), "error: {error}") {
                // Nobody is left to tell when stderr itself is gone.
                Ok(()) | Err(_) => ExitCode::FAILURE,
            }
        }
    }
}

async fn run(options: Options) -> Result<(), Box<dyn std::error::Error>> {
    if options.tokens {
        std::io::stdout().write_all(tokens::report(&groups::entries()).as_bytes())?;
        return Ok(());
    }
    let db = db::open(options.db.as_deref(), options.role)?;
    let shop = Shop::new(db, options.today);
    shop.serve(stdio()).await?.waiting().await?;
    Ok(())
}
