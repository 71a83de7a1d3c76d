//! The `gatekey` program: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    gatekey::cli::main()
}
