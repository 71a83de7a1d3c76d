//! libFuzzer on `checks/frontmatter.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gatekey_fuzz::frontmatter::check(input));
