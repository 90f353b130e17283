//! A program that compiles gives the same values in all modes, or fails in all of them for the same reason.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| girder_tests::properties::modes_agree(text));
