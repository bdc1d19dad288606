//! libFuzzer's way into the target `age_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("age_file", bytes));
