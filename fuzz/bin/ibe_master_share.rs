//! libFuzzer's way into the target `ibe_master_share`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("ibe_master_share", bytes));
