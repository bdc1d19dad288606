//! libFuzzer's way into the target `state_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("state_file", bytes));
