//! libFuzzer's way into the target `token`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("token", bytes));
