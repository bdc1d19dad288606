//! libFuzzer's way into the target `abe_key`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("abe_key", bytes));
