//! libFuzzer's way into the target `deputy_input`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("deputy_input", bytes));
