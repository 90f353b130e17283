//! Any text compiles through the last pass or ends with a diagnostic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| girder_tests::properties::compiles_or_reports(text));
