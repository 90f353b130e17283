//! The programs of the language reference parse without diagnostics.

use girder_source::{Diagnostics, Session, SourceMap};
use girder_syntax::{ast, parse};

fn parsed(text: &str) -> (ast::Module, SourceMap, Diagnostics) {
    let mut map = SourceMap::default();
    let file = map.add("test.gir", text).expect("small");
    let mut diagnostics = Diagnostics::default();
    let module = parse(&map, file, &Session::default(), &mut diagnostics);
    (module, map, diagnostics)
}

#[test]
fn programs_parse_without_diagnostics() {
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs")).expect("the folder is there")
    {
        let path = entry.expect("readable").path();
        let text = std::fs::read_to_string(&path).expect("text");
        let (_, map, diagnostics) = parsed(&text);
        let all: String = diagnostics.iter().map(|d| d.render(&map, false, 100)).collect();
        assert!(all.is_empty(), "{}\n{all}", path.display());
    }
}
