//! libFuzzer's way into the target `envelope_header`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("envelope_header", bytes));
