//! libFuzzer's way into the target `link_endpoints`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("link_endpoints", bytes));
