//! libFuzzer's way into the target `mavlink_system_ids`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("mavlink_system_ids", bytes));
