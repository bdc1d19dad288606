//! libFuzzer's way into the target `quorum_statement`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("quorum_statement", bytes));
