//! libFuzzer's way into the target `ratchet`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("ratchet", bytes));
