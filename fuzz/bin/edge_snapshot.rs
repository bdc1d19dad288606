//! libFuzzer's way into the target `edge_snapshot`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("edge_snapshot", bytes));
