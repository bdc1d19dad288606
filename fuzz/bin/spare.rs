//! libFuzzer's way into the target `spare`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("spare", bytes));
