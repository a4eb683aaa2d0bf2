//! The target `messages` as a program of libFuzzer's.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quiver_fuzz::messages::run(bytes));
