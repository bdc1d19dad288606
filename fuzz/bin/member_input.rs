//! libFuzzer's way into the target `member_input`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("member_input", bytes));
