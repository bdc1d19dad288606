//! libFuzzer's way into the target `office_input`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("office_input", bytes));
