//! libFuzzer's way into the target `partial_key`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("partial_key", bytes));
