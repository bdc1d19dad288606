//! libFuzzer's way into the target `attribute_payload`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("attribute_payload", bytes));
