//! libFuzzer's way into the target `message_ristretto255`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("message_ristretto255", bytes));
