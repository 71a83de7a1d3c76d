//! libFuzzer on `checks/headers.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gatekey_fuzz::headers::check(input));
