//! libFuzzer's way into the target `deployment_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("deployment_file", bytes));
