//! libFuzzer's way into the target `pending_enrolment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("pending_enrolment", bytes));
