//! libFuzzer on `checks/line.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gatekey_fuzz::line::check(input));
