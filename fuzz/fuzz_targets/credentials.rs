#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hyperlink_fuzz::credentials(data));
