//! libFuzzer's way into the target `ibe_public_shares`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("ibe_public_shares", bytes));
