//! Any text compiles through the last pass or ends with a diagnostic.
#![no_main]

use girder::{Arguments, Compilation, Options, Stage};
use girder_source::{Limits, Session};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let limits = Limits { elements: 1 << 12, instances: 1 << 10, static_steps: 20_000, ..Limits::default() };
    let machine = girder_machine::builtin("small").expect("`small` is built in");
    let session = Session { limits, ..Session::default() };
    let mut compilation = Compilation::new(Options { machine, arguments: Arguments::default(), session });
    if let Ok(root) = compilation.add("fuzz.gir", text) {
        let done = compilation.stage(root, Stage::Allocated);
        assert_eq!(done.is_err(), compilation.diagnostics.has_errors());
    }
});
