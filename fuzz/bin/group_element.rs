//! libFuzzer's way into the target `group_element`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("group_element", bytes));
