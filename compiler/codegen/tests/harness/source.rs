//! Codelets from source text.
//!
//! Invariant: a text that is not a codelet, or that this crate does not compile, ends the test.

use super::{Case, Neighbours, Spread};
use girder_codelet::sizes::Shape;
use girder_codelet::verify;
use girder_ir::codelet::Codelet;
use girder_ir::types::ElemType;
use girder_ir::types::ElemType::F64;
use girder_source::{Diagnostics, Session, SourceMap};
use girder_syntax::ast;
use girder_typing::{Meaning, ModuleRef, Scope, specialise};

struct Library(ast::Module);

impl Scope for Library {
    fn lookup(&self, _: ModuleRef, path: &str) -> Option<Meaning<'_>> {
        self.0.items.iter().find_map(|i| match &i.kind {
            ast::ItemKind::Fn(f) if f.codelet && f.name.dotted() == path => {
                Some(Meaning::CodeletFn { module: ModuleRef(0), item: f })
            }
            _ => None,
        })
    }

    fn tree(&self, _: ModuleRef) -> &ast::Module {
        &self.0
    }
}

/// Returns the codelet of a text, which may use the prelude.
pub fn codelet(text: &str) -> Codelet {
    let prelude = girder_stdlib::module("prelude").expect("there is a prelude");
    let (mut map, session, mut diagnostics) = (SourceMap::default(), Session::default(), Diagnostics::default());
    let file = map.add("test.gir", format!("{prelude}\n{text}")).expect("a small file");
    let library = Library(girder_syntax::parse(&map, file, &session, &mut diagnostics));
    let codelet = library.0.items.iter().rev().find_map(|i| match &i.kind {
        ast::ItemKind::Codelet(c) => {
            specialise(&library, ModuleRef(0), c, &i.attrs, &[], &session, &mut diagnostics).ok()
        }
        _ => None,
    });
    let reports: Vec<String> = diagnostics.iter().map(|d| d.render(&map, false, 100)).collect();
    assert!(reports.is_empty(), "{}", reports.join("\n"));
    let codelet = codelet.expect("no error was reported");
    verify(&codelet).expect("the codelet is well formed");
    codelet
}

/// Returns vertices with the given shapes, whose elements are spread around zero.
pub fn case(text: &str, shapes: &[&[u64]]) -> Case {
    vertices(text, shapes, (3, Neighbours::Separate), &[])
}

/// As [`case`], with a number of vertices in a layout; some fields may be shared.
pub fn vertices(text: &str, shapes: &[&[u64]], instances: (usize, Neighbours), shared: &[usize]) -> Case {
    let shapes: Vec<Shape> = shapes.iter().map(|s| Shape::from_slice(s)).collect();
    let mut n = 0u64;
    let fill = |ty: ElemType| {
        n += 1;
        let v = match n % 31 {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => -0.0,
            _ => ((n * 7919) % 2003) as f64 / 64.0 - 15.0,
        };
        girder_codelet::scalar::convert(F64, ty, v.to_bits())
    };
    let spread = |n| if shared.contains(&n) { Spread::Repeated } else { Spread::Contiguous };
    let spreads: Vec<Spread> = (0..shapes.len()).map(spread).collect();
    Case::with(codelet(text), shapes, &spreads, instances, fill)
}
