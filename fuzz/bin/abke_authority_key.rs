//! libFuzzer's way into the target `abke_authority_key`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("abke_authority_key", bytes));
