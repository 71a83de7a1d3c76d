//! libFuzzer on `checks/envelope.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gatekey_fuzz::envelope::check(input));
