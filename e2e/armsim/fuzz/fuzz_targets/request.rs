#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| armsim_fuzz::request(data));
