//! libFuzzer's way into the target `mavlink_batch`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("mavlink_batch", bytes));
