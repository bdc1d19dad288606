//! libFuzzer's way into the target `attribute_answer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("attribute_answer", bytes));
