//! libFuzzer's way into the target `enrolment_request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("enrolment_request", bytes));
