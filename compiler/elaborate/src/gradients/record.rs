//! Recording: operations, and the writes of steps, as they are elaborated.
//!
//! Invariant: an operation is recorded on the tape of the body that received its steps.

use super::order::{Inside, Moment};
use super::tape::{Entry, EntryKind, Tape, What, each_touched, each_write, map_tensors};
use crate::elaborator::{Body, Elaborator, NodeKind};
use crate::value::{Given, Tensor, Value};
use girder_codelet::vertices::bind_family;
use girder_codelet::{Cover, facts_on};
use girder_ir::codelet::Dir;
use girder_ir::family::Field;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, ProgramId, VarId};
use girder_ir::program::{Effect, StepKind};
use girder_ir::types::ElemType;
use girder_ir::view::View;
use girder_source::{Result, Span};
use girder_syntax::ast;
use girder_typing::ModuleRef;
use std::rc::Rc;

/// Maximal number of vertices of a family whose writes are recorded one by one.
const MOST_FILLED: u64 = 1 << 10;

impl Elaborator<'_> {
    /// Returns whether operations are recorded now.
    pub fn is_taping(&self) -> bool {
        self.recorder.is_on() && self.recorder.paused == 0
    }

    /// Records an operation of the innermost body that began at a moment.
    pub fn record(&mut self, begin: Moment, kind: EntryKind, span: Span) {
        if !self.is_taping() {
            return;
        }
        let path = self.recorder.path(self.emission.path());
        let places = self.recorder.places(self.emission.places());
        let (origin, stage) = (self.emission.origin(), self.emission.stage());
        let during = begin..self.recorder.now();
        if let Some(body) = self.emission.body_mut() {
            body.tape.push(Rc::new(Entry { kind, during, span, origin, path, places, stage }));
        }
    }

    /// Returns the moment of the next write.
    pub fn moment(&self) -> Moment {
        self.recorder.now()
    }

    /// Returns a moment before a step with bodies, and the moment when the step begins.
    pub fn begin(&mut self) -> (Moment, Moment) {
        (self.recorder.tick(), self.recorder.now())
    }

    /// Records an operation of a body inside an open one, at its moment.
    pub(super) fn record_within(&mut self, root: usize, path: &[Inside], entry: Rc<Entry>) {
        if self.is_taping()
            && let Some(body) = self.emission.body_at(root, &[])
            && let Some(tape) = tape_at(&mut body.tape, path)
        {
            let position = tape.partition_point(|e| e.during.start < entry.during.start);
            tape.insert(position, entry);
        }
    }

    /// Runs `f` without recording; writes are still logged.
    pub fn untaped<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        self.recorder.paused += 1;
        let value = f(self);
        self.recorder.paused -= 1;
        value
    }

    /// Lets the last entry, whose step computed a whole temporary, name what that step writes instead.
    pub fn record_elision(&mut self, temp: VarId, dst: &View, span: Span) {
        if !self.recorder.is_on() {
            return;
        }
        let at = self.recorder.now().saturating_sub(1);
        self.recorder.log_view(dst, at, span);
        let paused = self.recorder.paused > 0;
        let Some(last) = self.emission.body_mut().and_then(|b| b.tape.last_mut()).filter(|_| !paused) else { return };
        let whole = |t: &mut Tensor| {
            if t.view.parts.len() == 1 && t.view == View::whole(temp, &t.view.shape()) {
                t.view = dst.reshape(&t.view.shape());
            }
        };
        match &mut Rc::make_mut(last).kind {
            EntryKind::Each { outs, .. } => outs.iter_mut().for_each(whole),
            EntryKind::Rule { out, .. } => map_tensors(out, &mut |t| {
                whole(t);
            }),
            EntryKind::Rows { put: false, value, .. } => whole(value),
            _ => {}
        }
    }

    /// Logs what a step writes.
    pub fn log_step(&mut self, kind: &NodeKind, at: Moment, span: Span) {
        if !self.recorder.is_on() {
            return;
        }
        match kind {
            NodeKind::Execute(set) => self.recorder.log_set(&self.graph, *set, at, span),
            NodeKind::Copy(copy) => self.recorder.log_copy(&self.graph, *copy, at, span),
            NodeKind::Effect(Effect::Read { into: view, .. } | Effect::Undef { what: view, .. }) => {
                self.recorder.log_view(view, at, span);
            }
            NodeKind::Call(program) => {
                let (reads, writes) = self.program_accesses(*program);
                writes.iter().for_each(|&v| self.recorder.log_var(v, at, span));
                self.record(at, EntryKind::Opaque { what: What::Call, reads, writes }, span);
            }
            NodeKind::Repeat { index: Some((var, ..)), .. } => self.recorder.log_var(*var, at, span),
            _ => {}
        }
    }

    /// Records that a compute set runs.
    pub fn record_set(&mut self, set: ComputeSetId, begin: Moment, span: Span) {
        if !self.is_taping() {
            return;
        }
        if let Some(filled) = filled_by(&self.graph, set) {
            filled.into_iter().for_each(|dst| self.record(begin, EntryKind::Fill { dst, stream: None }, span));
            return;
        }
        let (mut reads, mut writes) = (vec![], vec![]);
        set_accesses(&self.graph, set, &mut reads, &mut writes);
        self.record(begin, EntryKind::Opaque { what: What::Set, reads, writes }, span);
    }

    /// Records the compute set or copy that the last step executes.
    pub fn record_executed(&mut self, begin: Moment, span: Span) {
        let last = self.emission.body_mut().and_then(|b| b.nodes.last()).map(|n| n.kind.clone());
        match last {
            Some(NodeKind::Execute(set)) => self.record_set(set, begin, span),
            Some(NodeKind::Copy(copy)) if self.is_taping() && self.graph.copies[copy].crosses() => {
                let families = &self.graph.copies[copy].families;
                let reads = families.iter().flat_map(|f| &f.src.parts).map(|p| p.var).collect();
                let writes = families.iter().flat_map(|f| &f.dst.parts).map(|p| p.var).collect();
                self.record(begin, EntryKind::Opaque { what: What::Replicas, reads, writes }, span);
            }
            Some(NodeKind::Copy(copy)) if self.is_taping() => {
                for family in self.graph.copies[copy].families.clone() {
                    for i in 0..family.domain.count() {
                        let dst = family.dst.view(&family.domain, i);
                        let src = family.src.view(&family.domain, i);
                        let ty = dst.parts.first().map_or(ElemType::F32, |p| self.graph.vars[p.var].ty);
                        self.record(begin, EntryKind::Write { dst, src: Tensor { view: src, ty } }, span);
                    }
                }
            }
            _ => {}
        }
    }

    /// Records a `while`, whose number of iterations is not known.
    pub fn record_while(&mut self, bodies: [&Body; 2], begin: Moment, span: Span) {
        if !self.is_taping() {
            return;
        }
        let (mut reads, mut writes) = (vec![], vec![]);
        for body in bodies {
            each_touched(&body.tape, &mut |v| reads.push(v));
            each_write(&body.tape, &mut |v| writes.push(v));
        }
        self.record(begin, EntryKind::Opaque { what: What::While, reads, writes }, span);
    }

    /// Returns the variables that a program reads and writes.
    fn program_accesses(&self, program: ProgramId) -> (Vec<VarId>, Vec<VarId>) {
        let (mut reads, mut writes) = (vec![], vec![]);
        let mut left = vec![self.graph.programs[program].body];
        while let Some(step) = left.pop() {
            match &self.graph.steps[step].kind {
                StepKind::Seq(list) | StepKind::Par(list) => left.extend(list),
                StepKind::Execute(set) => set_accesses(&self.graph, *set, &mut reads, &mut writes),
                StepKind::Copy(copy) => {
                    for f in &self.graph.copies[*copy].families {
                        reads.extend(f.src.parts.iter().map(|p| p.var));
                        writes.extend(f.dst.parts.iter().map(|p| p.var));
                    }
                }
                StepKind::Repeat { body, .. } => left.push(*body),
                StepKind::While { before, body, .. } => left.extend([*before, *body]),
                StepKind::If { then, els, .. } => left.extend([*then, *els]),
                StepKind::Switch { cases, default, .. } => {
                    left.extend(cases.iter().map(|(_, s)| *s));
                    left.push(*default);
                }
                StepKind::Call(p) => left.push(self.graph.programs[*p].body),
                StepKind::Effect(Effect::Read { into, .. }) => writes.extend(into.vars()),
                StepKind::Effect(_) => {}
            }
        }
        (reads, writes)
    }

    /// Calls one of the library's functions that change a tensor at an index known only at run time, and records it;
    /// `None` for another function.
    pub fn call_at_index(
        &mut self,
        (module, item): (ModuleRef, usize),
        f: &ast::Fn,
        given: &[Given],
        span: Span,
    ) -> Option<Result<Value>> {
        let library = self.modules.get(module).prefix.clone();
        let name = f.name.dotted();
        let put = match (library.as_str(), name.as_str()) {
            ("rows", "row" | "rows") => Some(false),
            ("rows", "put_row" | "put_rows") => Some(true),
            ("slices", "scatter_add") => None,
            _ => return None,
        };
        let argument = |name: &str| {
            let k = f.params.iter().position(|p| p.name.name == name)?;
            let named = given.iter().find(|g| g.name == name);
            named.or_else(|| given.get(k).filter(|g| g.name.is_empty())).map(|g| g.value.clone())
        };
        let tensor = |v: Option<Value>| if let Some(Value::Tensor(t)) = v { Some(Tensor::clone(&t)) } else { None };
        let x = tensor(argument("x"))?;
        let at = tensor(argument("k").or_else(|| argument("start")).or_else(|| argument("index")))?;
        let count = match argument("count") {
            Some(Value::Int(n)) => Some(n as u64),
            _ if name == "put_rows" => Some(tensor(argument("value"))?.view.shape().first().copied().unwrap_or(1)),
            _ => None,
        };
        let value = tensor(argument("value"));
        let begin = self.moment();
        let done = self.untaped(|this| this.enter_call((module, Some(item)), f, &[], given.to_vec(), span));
        let kind = match (put, &done, value) {
            (Some(false), Ok(Value::Tensor(out)), _) => {
                EntryKind::Rows { put: false, x, at, count, value: Tensor::clone(out) }
            }
            (Some(true), Ok(_), Some(value)) => EntryKind::Rows { put: true, x, at, count, value },
            (None, Ok(_), Some(value)) => EntryKind::ScatterAdd { x, index: at, value },
            _ => return Some(done),
        };
        self.record(begin, kind, span);
        Some(done)
    }
}

/// Returns the tape of the body at the end of a path.
fn tape_at<'t>(tape: &'t mut Tape, path: &[Inside]) -> Option<&'t mut Tape> {
    let Some((first, rest)) = path.split_first() else { return Some(tape) };
    let entry = tape.iter_mut().find(|e| e.during == first.during)?;
    let inner = match &mut Rc::make_mut(entry).kind {
        EntryKind::Branch { arms, .. } | EntryKind::Par(arms) => arms.get_mut(first.arm)?,
        EntryKind::Repeat { body, .. } | EntryKind::Segment(body) => body,
        _ => return None,
    };
    tape_at(Rc::make_mut(inner), rest)
}

/// Returns the tape of a closed body, for the entry of the step that holds the body.
pub fn tape_of(body: &Body) -> Rc<Tape> {
    Rc::new(body.tape.clone())
}

/// Returns what a compute set writes, if it reads no floats and certainly writes each of these elements: no gradient
/// passes through them then.
fn filled_by(graph: &Graph, set: ComputeSetId) -> Option<Vec<View>> {
    let mut filled = vec![];
    for family in graph.sets[set].families.iter().map(|&id| &graph.families[id]) {
        let codelet = &graph.codelets[family.codelet];
        let is_passed = |f: &Field| {
            let decl = &codelet.fields[f.field];
            decl.dir == Dir::InOut || (decl.dir == Dir::In && decl.ty.is_float())
        };
        if family.domain.count() > MOST_FILLED || family.fields.iter().any(is_passed) {
            return None;
        }
        let Ok(Some(sizes)) = bind_family(graph, family) else { continue };
        let facts = facts_on(codelet, &sizes, graph.workers);
        for field in family.fields.iter().filter(|f| codelet.fields[f.field].dir == Dir::Out) {
            if facts.cover[field.field] != Cover::Full {
                return None;
            }
            filled.extend((0..family.domain.count()).map(|i| field.view(&family.domain, i)));
        }
    }
    Some(filled)
}

fn set_accesses(graph: &Graph, set: ComputeSetId, reads: &mut Vec<VarId>, writes: &mut Vec<VarId>) {
    for &id in &graph.sets[set].families {
        let family = &graph.families[id];
        let fields = &graph.codelets[family.codelet].fields;
        for f in &family.fields {
            let dir = fields[f.field].dir;
            if dir != Dir::Out {
                reads.extend(f.parts.iter().map(|p| p.var));
            }
            if dir != Dir::In {
                writes.extend(f.parts.iter().map(|p| p.var));
            }
        }
    }
}
