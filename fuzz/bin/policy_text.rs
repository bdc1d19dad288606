//! libFuzzer's way into the target `policy_text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("policy_text", bytes));
