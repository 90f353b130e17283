//! Small graphs for the tests of this crate.
//!
//! Invariant: steps are numbered in pre-order, as the front end numbers them.

use girder_ir::codelet::*;
use girder_ir::family::{CopyFamily, CopySource, Domain, Family, Field, TileMap};
use girder_ir::graph::{ComputeSet, CopySet, Graph, Var, VarClass};
use girder_ir::ids::*;
use girder_ir::placement::Mapping;
use girder_ir::program::{Effect, Program, Step, StepKind};
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::View;
use girder_machine::Machine;
use girder_source::{OriginId, Span};
use smallvec::{SmallVec, smallvec};

/// Returns the small machine.
pub(crate) fn machine() -> Machine {
    girder_machine::builtin("small").unwrap()
}

/// A program as a value.
#[derive(Clone, Debug)]
pub(crate) enum Tree {
    Seq(Vec<Tree>),
    Execute(ComputeSetId),
    Copy(CopyId),
    Repeat(u64, Option<VarId>, Box<Tree>),
    While(Box<Tree>, View, Box<Tree>),
    If(View, Box<Tree>, Box<Tree>),
    Call(ProgramId),
    Par(Vec<Tree>),
    Effect(Effect),
}

/// The vertices of one family: a codelet, `views[field][instance]`, and perhaps tiles.
pub(crate) struct Vertices<'a> {
    pub codelet: SpecId,
    pub views: &'a [Vec<View>],
    pub tiles: Option<&'a [u32]>,
}

/// A graph under construction.
pub(crate) struct Build {
    pub graph: Graph,
    origin: OriginId,
}

impl Build {
    pub fn new() -> Build {
        let mut graph = Graph::default();
        let origin = graph.origins.add(Span::NONE, None, "");
        Build { graph, origin }
    }

    /// Returns an `f32` variable.
    pub fn var(&mut self, name: &str, class: VarClass, shape: &[u64], mapping: Option<Mapping>) -> View {
        let var = Var {
            name: name.into(),
            class,
            ty: ElemType::F32,
            shape: shape.into(),
            init: None,
            mapping,
            within: None,
            origin: self.origin,
        };
        View::whole(self.graph.vars.push(var), shape)
    }

    /// Returns a temporary, unmapped.
    pub fn temp(&mut self, name: &str, shape: &[u64]) -> View {
        self.var(name, VarClass::Temp, shape, None)
    }

    /// Returns a codelet with rank-1 fields `a`, `b`, … of these directions; it writes element 0 of each `out` field.
    pub fn codelet(&mut self, name: &str, dirs: &[Dir]) -> SpecId {
        let mut c = Codelet {
            name: name.into(),
            args: vec![],
            multi: false,
            fields: Default::default(),
            sizes: Default::default(),
            locals: Default::default(),
            exprs: Default::default(),
            sites: Default::default(),
            body: vec![],
            pipelined: false,
            separate_elements: false,
            cycles: None,
            elementary: Default::default(),
            span: Span::NONE,
        };
        for (&dir, letter) in dirs.iter().zip('a'..) {
            let size = c.sizes.push(format!("n{letter}").into());
            let dims: SmallVec<[DimDecl; 3]> = smallvec![DimDecl::Size(size)];
            let name = letter.to_string().into();
            let field = c.fields.push(FieldDecl { name, dir, ty: ElemType::F32, dims, align: 1, span: Span::NONE });
            if dir == Dir::Out {
                let site =
                    c.sites.push(Site { check: Check::Index, span: Span::NONE, calls: smallvec![], message: None });
                let mut constant =
                    |s: Scalar| c.exprs.push(Expr { kind: ExprKind::Const(s), ty: s.ty, span: Span::NONE });
                let zero = constant(Scalar::int(ElemType::I64, 0).unwrap());
                let value = constant(Scalar::f32(1.0));
                c.body.push(Stmt::Store { field, index: smallvec![zero], value, site });
            }
        }
        self.graph.codelets.push(c)
    }

    /// Returns a compute set.
    pub fn set(&mut self, name: &str, families: &[Vertices]) -> ComputeSetId {
        let set = self.graph.sets.next_key();
        let family = |graph: &mut Graph, v: &Vertices| {
            let count = v.views[0].len() as u32;
            let domain = Domain(if count == 1 { smallvec![] } else { smallvec![count] });
            let ids = graph.codelets[v.codelet].fields.keys();
            let fields = ids.zip(v.views).map(|(f, views)| Field::from_views(f, &domain, views).unwrap()).collect();
            let tile = v.tiles.map(|t| TileMap::fit(&domain, t));
            let (codelet, origin) = (v.codelet, self.origin);
            graph.families.push(Family {
                set,
                codelet,
                domain,
                fields,
                consts: smallvec![],
                tile,
                within: None,
                origin,
                statements: None,
            })
        };
        let families = families.iter().map(|v| family(&mut self.graph, v)).collect();
        self.graph.sets.push(ComputeSet { name: name.into(), families, origin: self.origin })
    }

    /// Returns a copy of views to views.
    pub fn copy(&mut self, name: &str, pairs: &[(View, View)]) -> CopyId {
        let field = |v: &View| Field::uniform(FieldId::from_u32(0), v);
        let family = |(dst, src): &(View, View)| CopyFamily {
            domain: Domain::default(),
            dst: field(dst),
            src: field(src),
            source: CopySource::Own,
            origin: self.origin,
        };
        let families = pairs.iter().map(family).collect();
        self.graph.copies.push(CopySet { name: name.into(), families, origin: self.origin })
    }

    /// Returns a step that copies one view to another.
    pub fn copy_step(&mut self, dst: &View, src: &View) -> Tree {
        let name = format!("copy{}", self.graph.copies.len());
        Tree::Copy(self.copy(&name, &[(dst.clone(), src.clone())]))
    }

    /// Returns a step that prints a view.
    pub fn print_step(&self, value: &View) -> Tree {
        Tree::Effect(Effect::Print { label: "".into(), value: value.clone() })
    }

    /// Returns a program or a body that others call.
    pub fn program(&mut self, name: &str, entry: bool, tree: &Tree) -> ProgramId {
        let body = self.step(tree);
        self.graph.programs.push(Program { name: name.into(), entry, body, origin: self.origin })
    }

    fn step(&mut self, tree: &Tree) -> StepId {
        let origin = self.origin;
        let id = self.graph.steps.push(Step { kind: StepKind::Effect(Effect::Sync), origin, reverse: false });
        let kind = match tree {
            Tree::Seq(list) => StepKind::Seq(list.iter().map(|t| self.step(t)).collect()),
            Tree::Par(list) => StepKind::Par(list.iter().map(|t| self.step(t)).collect()),
            Tree::Execute(set) => StepKind::Execute(*set),
            Tree::Copy(copy) => StepKind::Copy(*copy),
            Tree::Call(p) => StepKind::Call(*p),
            Tree::Effect(e) => StepKind::Effect(e.clone()),
            Tree::Repeat(count, index, body) => {
                StepKind::Repeat { count: *count, index: index.map(|v| (v, 0, 1)), body: self.step(body) }
            }
            Tree::While(before, cond, body) => {
                let before = self.step(before);
                StepKind::While { before, cond: cond.clone(), body: self.step(body) }
            }
            Tree::If(cond, then, els) => {
                let then = self.step(then);
                StepKind::If { cond: cond.clone(), then, els: self.step(els) }
            }
        };
        self.graph.steps[id].kind = kind;
        id
    }
}
