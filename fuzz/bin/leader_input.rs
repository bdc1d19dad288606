//! libFuzzer's way into the target `leader_input`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("leader_input", bytes));
