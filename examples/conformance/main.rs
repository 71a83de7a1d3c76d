//! conformance: a real MCP server with everything that the official conformance suite asks a server for.
//!
//! It stands in for the server that uses all of the protocol, in both eras, so that the suite can be run against the proxy
//! and a difference is the proxy's. `offers.json` is what it lists, `server.rs` speaks MCP, `tools.rs` and `prompts.rs`
//! answer, `rounds.rs` asks the client between two calls and `tasks.rs` goes on after one. It must know nothing of the gate.

mod prompts;
mod rounds;
mod server;
mod tasks;
mod tools;

use std::{error::Error, io::Write as _, sync::Arc};

use clap::Parser;
use rmcp::{
    ServiceExt as _,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService, stdio,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use tokio::net::TcpListener;

use crate::server::{Server, Shared};

/// The command line of the server.
#[derive(Debug, Parser)]
#[command(
    name = "conformance",
    about = "An MCP server for the conformance suite, over HTTP on a port of the system's choice"
)]
struct Options {
    /// Serves one client over stdin and stdout instead.
    #[arg(long)]
    stdio: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let shared = Arc::new(Shared::try_new()?);
    if Options::parse().stdio {
        Server::new(shared).serve(stdio()).await?.waiting().await?;
        return Ok(());
    }
    // Pages of the same machine may call, on any port; a page elsewhere that names it by DNS may not.
    let config =
        StreamableHttpServerConfig::default().with_allowed_origins(["http://127.0.0.1:*", "http://localhost:*"]);
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(Server::new(Arc::clone(&shared))), sessions, config);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "listening on http://{}/mcp", listener.local_addr()?)?;
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
