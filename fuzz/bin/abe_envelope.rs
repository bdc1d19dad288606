//! libFuzzer's way into the target `abe_envelope`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("abe_envelope", bytes));
