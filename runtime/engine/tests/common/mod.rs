//! Graphs built by hand: codelets, variables, families and steps without a front end, and stages without passes.

#![allow(dead_code)]

#[path = "../../../../compiler/host/tests/common/codelets.rs"]
pub mod codelets;
pub mod stages;

use cranelift_entity::EntityRef;
use girder_engine::{RunHost, StreamError};
use girder_ir::family::{Const, CopyFamily, CopySource, Domain, Family, Field, FieldPart, Offset, TileMap, fit_affine};
use girder_ir::graph::{ComputeSet, CopySet, Graph, Init, Stream, Var, VarClass};
use girder_ir::ids::*;
use girder_ir::placement::Mapping;
use girder_ir::program::{Effect, Program, Step, StepKind};
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::View;
use girder_source::{OriginId, Span};
use smallvec::SmallVec;

/// A graph under construction.
pub struct Maker {
    pub graph: Graph,
    pub origin: OriginId,
}

impl Maker {
    pub fn new() -> Maker {
        let mut graph = Graph { name: "test".into(), ..Graph::default() };
        let origin = graph.origins.add(Span::new(10, 20), None, "main");
        Maker { graph, origin }
    }

    pub fn var(&mut self, name: &str, ty: ElemType, shape: &[u64], mapping: Mapping) -> VarId {
        self.graph.vars.push(Var {
            name: name.into(),
            class: VarClass::Var,
            ty,
            shape: shape.into(),
            init: None,
            mapping: Some(mapping),
            within: None,
            origin: self.origin,
        })
    }

    pub fn temp(&mut self, name: &str, ty: ElemType, shape: &[u64], mapping: Mapping) -> VarId {
        let id = self.var(name, ty, shape, mapping);
        self.graph.vars[id].class = VarClass::Temp;
        id
    }

    pub fn init(&mut self, var: VarId, init: Init) {
        self.graph.vars[var].init = Some(init);
    }

    pub fn whole(&self, var: VarId) -> View {
        View::whole(var, &self.graph.vars[var].shape)
    }

    pub fn set(&mut self, name: &str) -> ComputeSetId {
        self.graph.sets.push(ComputeSet { name: name.into(), families: vec![], origin: self.origin })
    }

    /// Adds one family from the views of its instances.
    pub fn family(
        &mut self,
        set: ComputeSetId,
        codelet: SpecId,
        domain: &[u32],
        fields: Vec<Vec<View>>,
        consts: Vec<Const>,
        tile: TileMap,
    ) -> FamilyId {
        let domain = Domain(domain.into());
        let edges: Vec<FieldId> = self.graph.codelets[codelet].edges().map(|(f, _)| f).collect();
        let const_ids: Vec<FieldId> =
            self.graph.codelets[codelet].fields.keys().filter(|f| !edges.contains(f)).collect();
        let fields = edges.iter().zip(&fields).map(|(&f, views)| field(f, &domain, views)).collect();
        let family = Family {
            set,
            codelet,
            domain,
            fields,
            consts: const_ids.into_iter().zip(consts).collect(),
            tile: Some(tile),
            within: None,
            origin: self.origin,
            statements: None,
        };
        let id = self.graph.families.push(family);
        self.graph.sets[set].families.push(id);
        id
    }

    pub fn copy(&mut self, name: &str, pairs: Vec<(View, View)>) -> CopyId {
        let family = |(dst, src): (View, View)| CopyFamily {
            domain: Domain::default(),
            dst: field(FieldId::new(0), &Domain::default(), &[dst]),
            src: field(FieldId::new(0), &Domain::default(), &[src]),
            source: CopySource::Own,
            origin: self.origin,
        };
        let families = pairs.into_iter().map(family).collect();
        self.graph.copies.push(CopySet { name: name.into(), families, origin: self.origin })
    }

    pub fn stream(&mut self, name: &str, input: bool, ty: ElemType, shape: &[u64]) -> StreamId {
        let (name, shape) = (name.into(), shape.into());
        self.graph.streams.push(Stream {
            name,
            input,
            ty,
            shape,
            wrap: false,
            shuffle: None,
            ahead: 0,
            same: false,
            rows: None,
            offloaded: false,
            origin: self.origin,
        })
    }

    /// Adds the steps of a tree in pre-order and makes it a program.
    pub fn program(&mut self, name: &str, tree: Tree) -> ProgramId {
        let body = self.step(tree);
        self.graph.programs.push(Program { name: name.into(), entry: true, body, origin: self.origin })
    }

    fn step(&mut self, tree: Tree) -> StepId {
        let id = self.graph.steps.push(Step { kind: StepKind::Seq(vec![]), origin: self.origin, reverse: false });
        let kind = match tree {
            Tree::Seq(list) => StepKind::Seq(list.into_iter().map(|t| self.step(t)).collect()),
            Tree::Par(list) => StepKind::Par(list.into_iter().map(|t| self.step(t)).collect()),
            Tree::Execute(set) => StepKind::Execute(set),
            Tree::Copy(copy) => StepKind::Copy(copy),
            Tree::Repeat(count, index, body) => StepKind::Repeat { count, index, body: self.step(*body) },
            Tree::While(before, cond, body) => {
                let before = self.step(*before);
                StepKind::While { before, cond, body: self.step(*body) }
            }
            Tree::If(cond, then, els) => {
                let then = self.step(*then);
                StepKind::If { cond, then, els: self.step(*els) }
            }
            Tree::Switch(on, cases, default) => {
                let cases = cases.into_iter().map(|(keys, t)| (keys, self.step(t))).collect();
                StepKind::Switch { on, cases, default: self.step(*default) }
            }
            Tree::Call(program) => StepKind::Call(program),
            Tree::Effect(effect) => StepKind::Effect(effect),
        };
        self.graph.steps[id].kind = kind;
        id
    }
}

/// The steps of a program.
pub enum Tree {
    Seq(Vec<Tree>),
    Par(Vec<Tree>),
    Execute(ComputeSetId),
    Copy(CopyId),
    Repeat(u64, Option<(VarId, i32, i32)>, Box<Tree>),
    While(Box<Tree>, View, Box<Tree>),
    If(View, Box<Tree>, Box<Tree>),
    Switch(View, Vec<(Vec<(i64, i64)>, Tree)>, Box<Tree>),
    Call(ProgramId),
    Effect(Effect),
}

/// Returns the field with one view per instance; all views have the same signature.
fn field(id: FieldId, domain: &Domain, views: &[View]) -> Field {
    let first = &views[0];
    let part = |k: usize| {
        let p = &first.parts[k];
        let offsets: Vec<u32> = views.iter().map(|v| v.parts[k].offset as u32).collect();
        let offset = fit_affine(domain, &offsets).map_or_else(|| Offset::Table(offsets.into()), Offset::Affine);
        FieldPart { lo: p.lo.clone(), len: p.len.clone(), var: p.var, offset, stride: p.stride.clone() }
    };
    assert_eq!(views.len() as u64, domain.count());
    let parts: SmallVec<[FieldPart; 1]> = (0..first.parts.len()).map(part).collect();
    Field { field: id, digits: first.digits.clone(), axes: first.axes.clone(), parts }
}

/// Records all calls, and reads packets from a list.
#[derive(Default, Clone, PartialEq, Debug)]
pub struct Recorder {
    pub packets: Vec<Vec<u8>>,
    pub next: usize,
    pub written: Vec<Vec<u8>>,
    pub printed: Vec<(String, Vec<u64>, Vec<u8>)>,
    pub progress: Vec<(u64, u64)>,
}

impl RunHost for Recorder {
    fn read(&mut self, _: StreamId, into: &mut [u8]) -> Result<(), StreamError> {
        let packet = self.packets.get(self.next).ok_or(StreamError::Ended)?;
        into.copy_from_slice(packet);
        self.next += 1;
        Ok(())
    }

    fn write(&mut self, _: StreamId, bytes: &[u8]) -> Result<(), StreamError> {
        self.written.push(bytes.to_vec());
        Ok(())
    }

    fn print(&mut self, label: &str, _: ElemType, shape: &[u64], bytes: &[u8]) {
        self.printed.push((label.to_string(), shape.to_vec(), bytes.to_vec()));
    }

    fn print_text(&mut self, text: &str) {
        self.printed.push((text.to_string(), vec![0], vec![]));
    }

    fn progress(&mut self, done: u64, total: u64) {
        self.progress.push((done, total));
    }
}

pub fn i32s(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

pub fn to_i32s(bytes: &[u8]) -> Vec<i32> {
    bytes.chunks_exact(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect()
}

pub fn int(v: i32) -> Scalar {
    Scalar::new(ElemType::I32, v as u32 as u64)
}
