//! libFuzzer's way into the target `datagram_member_input`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::targets::run("datagram_member_input", bytes));
