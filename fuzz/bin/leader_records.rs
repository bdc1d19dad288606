//! libFuzzer's way into the target `leader_records`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("leader_records", bytes));
