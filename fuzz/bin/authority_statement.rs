//! libFuzzer's way into the target `authority_statement`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("authority_statement", bytes));
