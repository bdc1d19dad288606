//! libFuzzer's way into the target `release_payload`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("release_payload", bytes));
