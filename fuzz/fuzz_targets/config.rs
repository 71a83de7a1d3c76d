//! libFuzzer on `checks/config.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gatekey_fuzz::config::check(input));
