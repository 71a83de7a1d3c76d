//! What the gate costs: calls through gatekey beside the same calls through no proxy, an ideal one and others.
//!
//! `cargo bench --bench relay` runs it all; `--quick` and `--only seq,conc64` run less. One program plays every part, by
//! its first argument: `echo` is the server, `ideal` a proxy that only moves bytes, `load` the client. Without one it is
//! the driver, which starts the others and prints a table. Numbers of one machine mean little, so every contender is
//! measured in turn, round after round, and compared with the ideal one of the same round. Reads `/proc`: Linux only.
//!
//! Reading order: `scenario.rs`, `driver.rs`, `contender.rs`, `load.rs`; `echo.rs` and `ideal.rs` stand for themselves.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a table and its progress are for printing")]

mod contender;
mod driver;
mod echo;
mod http;
mod ideal;
mod lanes;
mod load;
mod message;
mod pipe;
mod process;
mod sample;
mod scenario;
mod serve;
mod table;
mod task;
mod usage;

use std::{error::Error, process::ExitCode};

use clap::{Parser, Subcommand};

/// What can go wrong, for people.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Measures gatekey beside no proxy, an ideal one and installed others.
#[derive(Parser)]
#[command(name = "relay", args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    run: driver::Options,
    /// What cargo passes to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

/// The parts besides the driver, which starts them.
#[derive(Subcommand)]
enum Part {
    /// An MCP server that does next to nothing
    Echo(echo::Options),
    /// A proxy that only moves bytes
    #[command(subcommand)]
    Ideal(ideal::Mode),
    /// A client that measures what it is told and prints one JSON object
    Load { task: String },
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match args.part {
        None => return driver::run(&args.run),
        Some(Part::Echo(options)) => echo::run(&options, &runtime)?,
        Some(Part::Ideal(mode)) => ideal::run(mode, &runtime)?,
        Some(Part::Load { task }) => {
            let task = serde_json::from_str(&task)?;
            println!("{}", serde_json::to_string(&runtime.block_on(load::run(&task)))?);
        }
    }
    Ok(ExitCode::SUCCESS)
}
