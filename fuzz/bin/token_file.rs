//! libFuzzer's way into the target `token_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("token_file", bytes));
