//! libFuzzer's way into the target `path_message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("path_message", bytes));
