//! libFuzzer's way into the target `kgc_input`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("kgc_input", bytes));
