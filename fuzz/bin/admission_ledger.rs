//! libFuzzer's way into the target `admission_ledger`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("admission_ledger", bytes));
