//! libFuzzer's way into the target `message_bls12381`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("message_bls12381", bytes));
