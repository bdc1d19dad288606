//! libFuzzer's way into the target `access_tree`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("access_tree", bytes));
