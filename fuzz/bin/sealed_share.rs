//! libFuzzer's way into the target `sealed_share`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("sealed_share", bytes));
