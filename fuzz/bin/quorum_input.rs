//! libFuzzer's way into the target `quorum_input`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("quorum_input", bytes));
