//! libFuzzer's way into the target `certificate`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("certificate", bytes));
