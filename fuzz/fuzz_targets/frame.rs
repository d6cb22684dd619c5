//! See `exercise.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bumpless_fuzz::frame(bytes));
