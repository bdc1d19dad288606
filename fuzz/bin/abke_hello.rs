//! libFuzzer's way into the target `abke_hello`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("abke_hello", bytes));
