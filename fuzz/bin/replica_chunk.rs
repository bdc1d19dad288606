//! libFuzzer's way into the target `replica_chunk`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("replica_chunk", bytes));
