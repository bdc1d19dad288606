//! libFuzzer's way into the target `link_coded_broadcast`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("link_coded_broadcast", bytes));
