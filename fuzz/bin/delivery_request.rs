//! libFuzzer's way into the target `delivery_request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("delivery_request", bytes));
