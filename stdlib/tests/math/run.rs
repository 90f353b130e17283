//! Runs a function of the prelude over lists of arguments.

use girder_codelet::{VertexMemory, bind_sizes, run, verify};
use girder_ir::codelet::{Check, Codelet};
use girder_ir::ids::FieldId;
use girder_ir::types::ElemType;
pub use girder_ir::types::ElemType::{F32, F64};
use girder_source::{Diagnostics, Session, SourceMap};
use girder_syntax::ast;
use girder_typing::{Meaning, ModuleRef, Scope, specialise};
use smallvec::smallvec;

const MODULE: ModuleRef = ModuleRef(0);

/// `y[i] = name(x0[i], …)`, compiled.
pub struct Function {
    codelet: Codelet,
}

struct Library(ast::Module);

impl Scope for Library {
    fn lookup(&self, _: ModuleRef, path: &str) -> Option<Meaning<'_>> {
        self.0.items.iter().find_map(|i| match &i.kind {
            ast::ItemKind::Fn(f) if f.codelet && f.name.dotted() == path => {
                Some(Meaning::CodeletFn { module: MODULE, item: f })
            }
            _ => None,
        })
    }

    fn tree(&self, _: ModuleRef) -> &ast::Module {
        &self.0
    }
}

struct Arrays(Vec<Vec<u64>>);

impl VertexMemory for Arrays {
    fn load(&mut self, field: FieldId, flat_index: u64) -> u64 {
        self.0[field.as_u32() as usize][flat_index as usize]
    }

    fn store(&mut self, field: FieldId, flat_index: u64, bits: u64) {
        self.0[field.as_u32() as usize][flat_index as usize] = bits;
    }
}

impl Function {
    /// Compiles a function of the prelude or of `math` for arguments of one type.
    pub fn new(name: &str, ty: ElemType, arguments: usize) -> Function {
        let fields: Vec<String> = (0..arguments).map(|k| format!("in x{k}: {ty}[n]")).collect();
        let values: Vec<String> = (0..arguments).map(|k| format!("x{k}[i]")).collect();
        let (fields, values) = (fields.join(", "), values.join(", "));
        let caller =
            format!("codelet caller({fields}, out y: {ty}[n]) {{ for i in 0..n {{ y[i] = {name}({values}); }} }}");
        let text = |name| girder_stdlib::module(name).expect("a module of the library");
        let (prelude, math) = (text("prelude"), text("math"));
        let (mut map, session, mut diagnostics) = (SourceMap::default(), Session::default(), Diagnostics::default());
        let file = map.add("math.gir", format!("{prelude}\n{math}\n{caller}")).expect("a small file");
        let library = Library(girder_syntax::parse(&map, file, &session, &mut diagnostics));
        let codelet = library.0.items.iter().find_map(|i| match &i.kind {
            ast::ItemKind::Codelet(c) => {
                specialise(&library, MODULE, c, &i.attrs, &[], &session, &mut diagnostics).ok()
            }
            _ => None,
        });
        let reports: Vec<String> = diagnostics.iter().map(|d| d.render(&map, false, 100)).collect();
        assert!(reports.is_empty(), "{}", reports.join("\n"));
        let codelet = codelet.expect("no error was reported");
        verify(&codelet).unwrap();
        Function { codelet }
    }

    fn bits(&self, arguments: Vec<Vec<u64>>) -> Vec<u64> {
        let n = arguments[0].len();
        let shapes = vec![smallvec![n as u64]; arguments.len() + 1];
        let sizes = bind_sizes(&self.codelet, &shapes, &[]).unwrap();
        let facts = girder_codelet::facts(&self.codelet, &sizes);
        // Only the loop over the arguments may fail, by a limit.
        let is_loop = |s| self.codelet.sites[s].check == Check::Iterations;
        let holds = |s| is_loop(s) || facts.proven.contains(s);
        assert!(self.codelet.sites.keys().all(holds), "a function of one number cannot fail");
        let mut arrays = Arrays(arguments);
        arrays.0.push(vec![0; n]);
        run(&self.codelet, &sizes, &mut arrays, &[], 1, &Session::default()).unwrap();
        arrays.0.pop().expect("the result")
    }

    /// Returns the values for lists of `f32` arguments.
    pub fn f32(&self, arguments: &[&[f32]]) -> Vec<f32> {
        let bits = arguments.iter().map(|a| a.iter().map(|x| x.to_bits().into()).collect()).collect();
        self.bits(bits).into_iter().map(|b| f32::from_bits(b as u32)).collect()
    }

    /// Returns the values for lists of `f64` arguments.
    pub fn f64(&self, arguments: &[&[f64]]) -> Vec<f64> {
        let bits = arguments.iter().map(|a| a.iter().map(|x| x.to_bits()).collect()).collect();
        self.bits(bits).into_iter().map(f64::from_bits).collect()
    }
}
