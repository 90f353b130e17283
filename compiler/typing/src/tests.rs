//! Tests of codelets from source text: the results in the interpreter, and the diagnostics.
//!
//! Invariant: every codelet that is returned is verified.

mod arrays;
mod calls;
mod control;
mod cost;
mod errors;
mod generics;
mod limits;
mod mutations;
mod reductions;
mod shares;
mod values;

use super::{Meaning, ModuleRef, Scope, header, infer_args, specialise};
use girder_codelet::cost::Points;
use girder_codelet::{Interpreter, Sizes, Stop, VertexMemory, bind_sizes, run, verify};
use girder_ir::codelet::{Codelet, Dir, Elementary, GenericArg};
use girder_ir::ids::FieldId;
use girder_ir::types::{ElemType, Scalar};
use girder_source::{Diagnostics, Session, SourceMap, Span};
use girder_syntax::ast;

/// A parsed file.
pub(super) struct World {
    pub map: SourceMap,
    pub tree: ast::Module,
    pub session: Session,
}

pub(super) const MODULE: ModuleRef = ModuleRef(0);

impl World {
    pub fn new(source: &str) -> World {
        let mut map = SourceMap::default();
        let file = map.add("test.gir", source).expect("a small file");
        let (session, mut diagnostics) = (Session::default(), Diagnostics::default());
        let tree = girder_syntax::parse(&map, file, &session, &mut diagnostics);
        let reported: Vec<_> = diagnostics.iter().map(|d| d.render(&map, false, 100)).collect();
        assert!(reported.is_empty(), "{}", reported.join("\n"));
        World { map, tree, session }
    }

    /// Parses a file that may have syntax errors; `None` if it has no codelet.
    pub fn mended(source: &str) -> Option<World> {
        let mut map = SourceMap::default();
        let file = map.add("test.gir", source)?;
        let session = Session::default();
        let tree = girder_syntax::parse(&map, file, &session, &mut Diagnostics::default());
        let has = tree.items.iter().any(|i| matches!(i.kind, ast::ItemKind::Codelet(_)));
        has.then_some(World { map, tree, session })
    }

    pub fn item(&self) -> (&ast::Codelet, &[ast::Attr]) {
        let found = self.tree.items.iter().find_map(|i| match &i.kind {
            ast::ItemKind::Codelet(c) => Some((c, &i.attrs[..])),
            _ => None,
        });
        found.expect("a codelet")
    }

    pub fn function(&self, name: &str) -> &ast::Fn {
        let found = self.tree.items.iter().find_map(|i| match &i.kind {
            ast::ItemKind::Fn(f) if f.name.dotted() == name => Some(f),
            _ => None,
        });
        found.expect("a function")
    }

    pub fn compile(&self, args: &[GenericArg], diagnostics: &mut Diagnostics) -> Option<Codelet> {
        let (item, attrs) = self.item();
        let r = specialise(self, MODULE, item, attrs, args, &self.session, diagnostics);
        assert_eq!(r.is_err(), diagnostics.has_errors(), "an error is reported exactly if there is no codelet");
        let codelet = r.ok()?;
        if let Err(what) = verify(&codelet) {
            panic!("{what}");
        }
        Some(codelet)
    }
}

impl Scope for World {
    fn lookup(&self, _: ModuleRef, path: &str) -> Option<Meaning<'_>> {
        self.tree.items.iter().find_map(|i| match &i.kind {
            ast::ItemKind::Fn(f) if f.name.dotted() == path => {
                if f.codelet {
                    Some(Meaning::CodeletFn { module: MODULE, item: f })
                } else {
                    Some(Meaning::Other("a function on tensors"))
                }
            }
            ast::ItemKind::Decl(ast::Decl::Let(l)) => match (&l.pattern, &self.tree.exprs[l.value].kind) {
                (ast::Pattern::Name(n), ast::ExprKind::Int { value, .. }) if n.name == path => {
                    Some(Meaning::Int(*value as i64))
                }
                (ast::Pattern::Name(n), ast::ExprKind::Float { value, .. }) if n.name == path => {
                    Some(Meaning::Float(*value))
                }
                _ => None,
            },
            ast::ItemKind::Decl(ast::Decl::Var(v)) if v.name.dotted() == path => Some(Meaning::Other("a variable")),
            _ => None,
        })
    }

    fn elementary(&self, _: ModuleRef, item: &ast::Fn) -> Option<Elementary> {
        Elementary::from_name(&item.name.dotted())
    }

    fn tree(&self, _: ModuleRef) -> &ast::Module {
        &self.tree
    }
}

/// The elements of a field with their shape, or the value of a `const` field.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Data {
    pub shape: Vec<u64>,
    pub bits: Vec<u64>,
}

/// An element type of Rust, with its bits.
pub(super) trait Element: Copy {
    fn bits(self) -> u64;
}

macro_rules! element {
    ($($t:ty, $v:ident => $bits:expr;)*) => { $(
        impl Element for $t { fn bits(self) -> u64 { let $v = self; $bits } }
    )* };
}
element! {
    f32, v => v.to_bits().into();
    f64, v => v.to_bits();
    i32, v => v as u32 as u64;
    u32, v => v.into();
    i64, v => v as u64;
    u64, v => v;
    u8, v => v.into();
    bool, v => v.into();
}

pub(super) fn array<T: Element>(shape: &[u64], values: &[T]) -> Data {
    Data { shape: shape.to_vec(), bits: values.iter().map(|v| v.bits()).collect() }
}

pub(super) fn vector<T: Element>(values: &[T]) -> Data {
    array(&[values.len() as u64], values)
}

pub(super) fn scalar<T: Element>(value: T) -> Data {
    array(&[], &[value])
}

struct Memory(Vec<Data>);

impl VertexMemory for Memory {
    fn load(&mut self, field: FieldId, at: u64) -> u64 {
        self.0[field.as_u32() as usize].bits[at as usize]
    }

    fn store(&mut self, field: FieldId, at: u64, bits: u64) {
        self.0[field.as_u32() as usize].bits[at as usize] = bits;
    }
}

/// Runs a codelet with one value per field. Returns the fields afterwards, or the source text and message of the check
/// that failed.
pub(super) fn run_with(
    source: &str,
    args: &[GenericArg],
    fields: &[Data],
) -> Result<Vec<Data>, (String, Option<String>)> {
    let world = World::new(source);
    let mut diagnostics = Diagnostics::default();
    let codelet = world.compile(args, &mut diagnostics);
    let reported: Vec<_> = diagnostics.iter().map(|d| d.render(&world.map, false, 100)).collect();
    let Some(codelet) = codelet else { panic!("{}", reported.join("\n")) };
    let shapes: Vec<_> = fields.iter().map(|d| d.shape.clone().into()).collect();
    let consts: Vec<u64> = fields.iter().map(|d| d.bits.first().copied().unwrap_or(0)).collect();
    let typed = codelet.fields.values().zip(&consts).map(|(f, &b)| Scalar::new(f.ty, b));
    let sizes = bind_sizes(&codelet, &shapes, &typed.collect::<Vec<_>>()).expect("shapes fit");
    let mut memory = Memory(fields.to_vec());
    match run(&codelet, &sizes, &mut memory, &consts, 6, &world.session) {
        Ok(()) => Ok(memory.0),
        Err(Stop::Failed(f)) => {
            let site = &codelet.sites[f.site];
            Err((world.map.text(site.span).to_string(), site.message.as_ref().map(|m| m.to_string())))
        }
        Err(Stop::Cancelled | Stop::Raced(_) | Stop::Exhausted) => panic!("nobody cancels or watches"),
    }
}

/// Runs a codelet with these fields and six workers; returns the execution count of each point.
pub(super) fn run_costed(codelet: &Codelet, fields: &[Data], points: &Points) -> (Sizes, Vec<u64>) {
    let shapes: Vec<_> = fields.iter().map(|d| d.shape.clone().into()).collect();
    let consts: Vec<u64> = fields.iter().map(|d| d.bits.first().copied().unwrap_or(0)).collect();
    let sizes = bind_sizes(codelet, &shapes, &[]).expect("shapes fit");
    let mut interpreter = Interpreter::new(codelet);
    interpreter.count(points);
    let mut memory = Memory(fields.to_vec());
    let done = interpreter.run(&sizes, &mut memory, &consts, 6, &Session::default());
    done.expect("no check fails");
    (sizes, interpreter.counters().to_vec())
}

/// Returns the last field after a run without generics.
pub(super) fn last(source: &str, fields: &[Data]) -> Data {
    run_with(source, &[], fields).expect("no check fails").pop().expect("a field")
}

/// Runs `codelet c(…, out y: f32) { body }`; returns `y`.
pub(super) fn y_f32(body: &str) -> f32 {
    let source = format!("codelet c(out y: f32) {{ {body} }}");
    f32::from_bits(last(&source, &[scalar(0.0f32)]).bits[0] as u32)
}

/// As [`y_f32`], for `i64`.
pub(super) fn y_int(body: &str) -> i64 {
    let source = format!("codelet c(inout y: i64) {{ {body} }}");
    last(&source, &[scalar(0i64)]).bits[0] as i64
}

/// Returns the diagnostics of a source: code, and the text under the main label.
pub(super) fn reports_of(source: &str, args: &[GenericArg]) -> Vec<(String, String)> {
    let world = World::new(source);
    let mut diagnostics = Diagnostics::default();
    world.compile(args, &mut diagnostics);
    diagnostics
        .iter()
        .map(|d| (d.code.to_string(), world.map.text(d.labels.first().map_or(Span::NONE, |l| l.span)).to_string()))
        .collect()
}

/// Asserts the diagnostics of a source, in order.
#[track_caller]
pub(super) fn reports(source: &str, expected: &[(&str, &str)]) {
    let found = reports_of(source, &[]);
    let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(found, expected);
}

/// As [`reports`] for the body of a codelet with fields `a: f32[n]`, `k: i32` (`in`), `s: f32` (`const`),
/// `y: f32[n]` (`out`), `z: f32` (`inout`).
#[track_caller]
pub(super) fn body_reports(body: &str, expected: &[(&str, &str)]) {
    let head = "codelet c(in a: f32[n], in k: i32, const s: f32, out y: f32[n], inout z: f32)";
    reports(&format!("{head} {{ {body} }}"), expected);
}

/// Infers the generic arguments from views of these types bound to all fields.
pub(super) fn inferred(source: &str, explicit: &[GenericArg], types: &[ElemType]) -> Result<Vec<GenericArg>, String> {
    let world = World::new(source);
    let mut diagnostics = Diagnostics::default();
    let header = header(&world, MODULE, world.item().0, &mut diagnostics).expect("a right header");
    let fields: Vec<_> = header
        .fields
        .iter()
        .enumerate()
        .filter(|(_, f)| f.dir != Dir::Const)
        .map(|(i, _)| FieldId::from_u32(i as u32))
        .zip(types.iter().copied())
        .collect();
    infer_args(&header, explicit, &fields, header.span, &mut diagnostics)
        .map_err(|_| diagnostics.iter().map(|d| format!("{}: {}", d.code, d.message)).collect::<Vec<_>>().join("\n"))
}
