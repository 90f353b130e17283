//! Any text parses to a tree or to diagnostics, and a tree without errors formats to a fixed point.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| girder_tests::properties::formats(text));
