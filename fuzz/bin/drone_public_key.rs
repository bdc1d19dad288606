//! libFuzzer's way into the target `drone_public_key`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("drone_public_key", bytes));
