//! The `gatekey` program.
fn main() {}
