//! libFuzzer's way into the target `slot_set`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("slot_set", bytes));
