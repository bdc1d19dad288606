//! libFuzzer's way into the target `revocation_list`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("revocation_list", bytes));
