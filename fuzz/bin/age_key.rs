//! libFuzzer's way into the target `age_key`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("age_key", bytes));
