//! libFuzzer on `checks/sse.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gatekey_fuzz::sse::check(input));
