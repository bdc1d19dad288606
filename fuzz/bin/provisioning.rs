//! libFuzzer's way into the target `provisioning`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("provisioning", bytes));
