//! Any text parses to a tree or to diagnostics, and a tree without errors formats to a fixed point.
#![no_main]

use girder_source::{Diagnostics, Session, SourceMap};
use libfuzzer_sys::fuzz_target;

fn parsed(text: &str) -> Option<String> {
    let (mut map, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let file = map.add("fuzz.gir", text)?;
    let tree = girder_syntax::parse(&map, file, &Session::default(), &mut diagnostics);
    (!diagnostics.has_errors()).then(|| girder_syntax::format(&tree, text))
}

fuzz_target!(|text: &str| {
    if let Some(once) = parsed(text) {
        assert_eq!(parsed(&once).as_deref(), Some(once.as_str()));
    }
});
