//! libFuzzer's way into the target `edge_input`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("edge_input", bytes));
