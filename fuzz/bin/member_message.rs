//! libFuzzer's way into the target `member_message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("member_message", bytes));
